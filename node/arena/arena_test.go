package arena

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	module "github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/compute/model/architecture"
	modelfolder "github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/arena/hidden"
)

const vocab = 16

// contest is a contest in memory, on which one evaluator reports.
type contest struct {
	module.Standing
	t      *testing.T
	dir    string
	height int64
	mux    *http.ServeMux
	url    string
	seals  int
	failed error // of the next message
}

func begin(t *testing.T) *contest {
	t.Helper()
	c := &contest{t: t, dir: t.TempDir(), mux: http.NewServeMux()}
	server := httptest.NewServer(c.mux)
	t.Cleanup(server.Close)
	c.url = server.URL
	set, err := MakeSet(c.dir, strings.Repeat("a text of letters ", 100), Tokens{Vocab: vocab, Window: 8, Examples: 120,
		Encode: func(text string) (ids []uint32) {
			for _, b := range []byte(text) {
				ids = append(ids, uint32(b)%vocab)
			}
			return ids
		}})
	c.must(err)
	path, err := SetOf(c.dir, set.Root())
	c.must(err)
	ServeSet(c.mux, path)
	c.Standing.Contest, err = arena.Create(1, "host", arena.Terms{Title: "x", Prize: 1, Panel: 3, Set: set.Root(),
		Vocab: vocab, Examples: uint32(len(set.Examples)), Length: 8, MaxBytes: 1 << 20, Most: 9, Entering: 10, Revealing: 10,
		Judging: 100, Places: 2, Tokenizer: canon.Sum("tokenizer")}, 0)
	c.must(err)
	c.SetURL, c.Phase, c.Until, c.Panel = c.url, arena.Sealing, 100, []string{"judge", "other"}
	return c
}

func (c *contest) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// write writes the folder of a model.
func (c *contest) write(name string, seed uint64, positions int, changes ...func(map[string]*tensor.Tensor)) string {
	c.t.Helper()
	return c.writeOf(vocab, name, seed, positions, changes...)
}

// writeOf is write for a model with another vocabulary.
func (c *contest) writeOf(tokens int, name string, seed uint64, positions int,
	changes ...func(map[string]*tensor.Tensor)) string {
	c.t.Helper()
	config, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": tokens, "n_positions": positions,
		"n_embd": 16, "n_layer": 1, "n_head": 2, "n_inner": 32})
	c.must(err)
	dir := filepath.Join(c.dir, name)
	c.must(os.MkdirAll(dir, 0o755))
	m := modelfolder.Model{Config: config, Tensors: config.Init(seed)}
	for _, change := range changes {
		change(m.Tensors)
	}
	list, err := m.Files(1 << 30)
	c.must(err)
	for _, f := range list {
		c.must(folder.WriteFileBy(filepath.Join(dir, f.Name), f.Write))
	}
	return dir
}

// enter enters a model and serves it.
func (c *contest) enter(dir string) *Entrant {
	c.t.Helper()
	e, err := Prepare(filepath.Join(dir, "entry"), dir, nil)
	c.must(err)
	model, salt := e.Model()
	c.Entries++
	name := filepath.Base(dir)
	c.All = append(c.All, arena.Entry{Contest: 1, Number: c.Entries, Account: name, Model: model, URL: c.url + "/" + name,
		Commitment: arena.Commitment(1, name, model, salt)})
	e.Serve(c.mux, "/"+name+"/")
	return e
}

// Contests implements Market.
func (c *contest) Contests(context.Context, bool) ([]arena.Contest, error) {
	return []arena.Contest{c.Standing.Contest}, nil
}

type market struct{ *contest }

// Contest implements Market.
func (m market) Contest(context.Context, uint64) (module.Standing, error) { return m.Standing, nil }

// Seal implements Market.
func (m market) Seal(_ context.Context, _ uint64, seal canon.Digest) error {
	if m.failed != nil {
		return m.failed
	}
	_, o, err := m.Standing.Contest.Seal("judge", seal, 1, m.height)
	if err == nil {
		m.seals++
		m.Opinions = append(m.Opinions, o)
	}
	return err
}

// OpenReport implements Market.
func (m market) OpenReport(_ context.Context, _ uint64, r arena.Report, salt canon.Digest) error {
	_, o, err := m.Standing.Contest.OpenReport(m.Opinions[0], r, salt, m.All, 1, m.height)
	if err == nil {
		m.Opinions[0] = o
	}
	return err
}

func (c *contest) judge() *Judge {
	return &Judge{Dir: filepath.Join(c.dir, "judge"), Account: "judge", Threads: 1,
		Private: true, Say: func(text string) { c.t.Log(text) }}
}

// open lets the phase of opening begin.
func (c *contest) open() {
	c.Phase, c.Until, c.Seed = arena.Opening, c.height+100, canon.Sum("seed")
}

// An evaluator seals and opens a report about entries of all kinds. It continues after a message that failed, with the
// report that it computed before, and without the files.
func TestJudge(t *testing.T) {
	c := begin(t)
	first := c.write("first", 1, 8)
	c.enter(first)
	c.enter(c.write("second", 2, 8))
	same := c.write("same", 1, 8)
	c.enter(same)
	c.enter(c.write("short", 3, 4)) // its context is shorter than the examples
	broken := c.write("broken", 4, 8)
	c.must(os.WriteFile(filepath.Join(broken, "model.safetensors"), []byte("no tensors"), 0o600))
	c.enter(broken)
	c.All = append(c.All, arena.Entry{Number: 6, Account: "away", Model: canon.Sum("x"), URL: c.url + "/away"},
		arena.Entry{Number: 7, Account: "silent"}, arena.Entry{Number: 8, Account: "liar", Model: canon.Sum("y"),
			URL: c.url + "/first"})
	c.failed = errors.New("no connection")
	c.height = 10
	if err := c.judge().Block(t.Context(), market{c}, c.height); err != nil || c.seals > 0 {
		t.Errorf("an entry cannot be got yet: %v, %d seals", err, c.seals)
	}
	c.height = 60
	if err := c.judge().Block(t.Context(), market{c}, c.height); !errors.Is(err, c.failed) {
		t.Error(err)
	}
	c.failed = nil
	c.mux = nil
	c.must(c.judge().Block(t.Context(), market{c}, c.height))
	c.must(c.judge().Block(t.Context(), market{c}, c.height)) // nothing is left to do
	if c.seals != 1 {
		t.Fatalf("%d seals", c.seals)
	}
	c.open()
	c.must(c.judge().Block(t.Context(), market{c}, c.height))
	r := c.Opinions[0].Report
	if r == nil {
		t.Fatal("no report")
	}
	var got []arena.Status
	for _, j := range r.Entries {
		got = append(got, j.Status)
	}
	want := []arena.Status{arena.Placed, arena.Placed, arena.Copy, arena.Invalid, arena.Invalid, arena.Absent,
		arena.Unrevealed, arena.Absent}
	if !slices.Equal(got, want) || r.Entries[2].Of != 1 || r.Entries[0].Group == 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "judge", "1", dirModels)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the models stay")
	}
}

// Files at private addresses are not asked for, unless the evaluator allows it: a stranger names the URL.
func TestJudgeAsksPublicAddresses(t *testing.T) {
	c := begin(t)
	asked := false
	c.mux.HandleFunc("/private/", func(http.ResponseWriter, *http.Request) { asked = true })
	c.SetURL += "/private"
	j := c.judge()
	j.Private = false
	c.must(j.Block(t.Context(), market{c}, 80))
	if asked || c.seals != 1 {
		t.Errorf("asked %v, %d seals", asked, c.seals)
	}
}

// A hidden set that cannot be got, or is another one, is reported.
func TestJudgeWithoutSet(t *testing.T) {
	for _, url := range []string{"/nowhere", "/other"} {
		c := begin(t)
		c.enter(c.write("first", 1, 8))
		c.mux.HandleFunc("/other/"+files.NameSet, func(w http.ResponseWriter, _ *http.Request) {
			s, _ := hidden.New(canon.Sum("key"), vocab, slices.Repeat([][]uint32{{1, 2}}, 120))
			_, _ = w.Write(s.Encode())
		})
		c.SetURL += url
		c.height = 80
		c.must(c.judge().Block(t.Context(), market{c}, c.height))
		c.open()
		c.must(c.judge().Block(t.Context(), market{c}, c.height))
		if r := c.Opinions[0].Report; r == nil || !r.Absent {
			t.Errorf("%s: %+v", url, r)
		}
	}
}

// Entries are made once, and a model whose files were changed is not revealed.
func TestEntrants(t *testing.T) {
	c := begin(t)
	dir := c.write("first", 1, 8)
	keep := filepath.Join(c.dir, "keep")
	e, err := Prepare(keep, dir, nil)
	c.must(err)
	c.must(e.Entered(3))
	again, err := Prepare(keep, dir, nil)
	c.must(err)
	model, salt := e.Model()
	if m, s := again.Model(); m != model || s != salt || again.Entry() != 3 || salt.IsZero() {
		t.Errorf("%+v", again)
	}
	all, err := Entrants(keep)
	if err != nil || len(all) != 1 || all[0].Entry() != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	c.must(os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600))
	wrong := func(err error, code string) {
		t.Helper()
		if known, ok := errors.AsType[*Error](err); !ok || known.Code != code {
			t.Errorf("%v, wanted %s", err, code)
		}
	}
	_, err = Entrants(keep)
	wrong(err, Changed)
	_, err = Prepare(keep, filepath.Join(c.dir, "none"), nil)
	wrong(err, BadFolder)
	c.must(os.WriteFile(filepath.Join(dir, "model.py"), nil, 0o600))
	_, err = Prepare(keep, dir, nil)
	wrong(err, HasCode)
}

// A host shows the score of a model by the ladder, and keeps it.
func TestScoreModel(t *testing.T) {
	c := begin(t)
	dir := c.write("first", 1, 8)
	set, err := SetOf(c.dir, c.Terms.Set)
	c.must(err)
	s, err := ScoreModel(t.Context(), set, dir, 1, nil)
	if err != nil || !s.Best || s.Loss < 2 || s.Loss > 4 {
		t.Errorf("%+v, %v", s, err)
	}
	if again, err := ScoreModel(t.Context(), set, dir, 1, nil); err != nil || again.Best || again.Loss != s.Loss ||
		again.Queries != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := ScoreModel(t.Context(), set, c.write("short", 1, 4), 1, nil); err == nil {
		t.Error("a model with a short context has a score")
	}
}
