package journal

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/worker"
)

var (
	ids   = []string{"one", "two"}
	begin = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
)

func fresh(h Header) (func(role.Event) []role.Action, error) { return worker.New(h.ID).Step, nil }

// play lets two workers go through a run without audits, in which every seventh action fails once, and keeps the
// journal of the first.
func play(t *testing.T, o Options, rounds uint32) {
	t.Helper()
	terms := terms.Terms{Job: "job", Spec: canon.Sum("spec"), SpecCID: "spec",
		Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis"},
		Rounds:  rounds, Units: 3, Segments: 2, UnitFlops: 1,
		Deadlines: terms.Deadlines{Train: 20, Audit: 20, Attest: 20, Challenge: 2}, Window: 2}
	s, err := run.New(terms, []crew.Member{{ID: "one", Role: crew.Worker}, {ID: "two", Role: crew.Worker}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Create(o, Header{Time: begin, Role: "worker", ID: "one", Job: "job"})
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]func(role.Event) []role.Action{}
	for _, id := range ids {
		steps[id], _ = fresh(Header{ID: id})
	}
	now, turn := begin, 0
	tell := func(id string, e role.Event) []role.Action {
		actions := steps[id](e)
		if now = now.Add(time.Second); id == "one" {
			if err := j.Note(now, e, actions); err != nil {
				t.Fatal(err)
			}
		}
		return actions
	}
	for height := int64(2); s.Phase != progress.Done; height++ {
		if height > 1000 {
			t.Fatalf("the run does not end: phase %d of round %d", s.Phase, s.Round)
		}
		for _, id := range ids {
			for queue := tell(id, role.Block{Height: height, Run: s}); len(queue) > 0; queue = queue[1:] {
				e := role.Event(role.Failed{Action: queue[0], Err: errors.New("the seventh")})
				if turn++; turn%7 != 0 {
					s, e = perform(t, s, height, id, queue[0])
				}
				queue = append(queue, tell(id, e)...)
			}
		}
		s, _ = s.Tick(transition.Env{Height: height, Beacon: canon.Sum("beacon", []byte{byte(height), byte(height >> 8)})})
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func perform(t *testing.T, s run.State, height int64, id string, a role.Action) (run.State, role.Event) {
	t.Helper()
	env := transition.Env{Height: height}
	var err error
	switch a := a.(type) {
	case role.Load:
		return s, role.Loaded{Action: a}
	case role.Train:
		segments := []canon.Digest{a.Base.Root, canon.Sum("middle", []byte{byte(a.Work.Unit)}),
			canon.Sum("end", []byte{byte(a.Work.Unit)})}
		return s, role.Trained{Action: a, Commit: work.Commitment{Segments: segments, Update: canon.Sum("update"),
			UpdateCID: "cid", Bytes: 1}}
	case role.Advance:
		return s, role.Advanced{Action: a,
			Next: terms.Checkpoint{Round: a.Base.Round + 1, Root: canon.Sum("next", a.Base.Root[:]), CID: "next"}}
	case role.Commit:
		s, _, err = s.Commit(env, id, a.Work, a.Commit)
	case role.Attest:
		s, _, err = s.Attest(env, a.Next.Round-1, progress.Vote{Member: id, Next: a.Next})
	case role.Reveal:
	default:
		t.Fatalf("%T", a)
	}
	if err != nil {
		return s, role.Failed{Action: a, Err: err}
	}
	return s, role.Finished{Action: a}
}

func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths
}

func replay(t *testing.T, path string, with func(Header) (func(role.Event) []role.Action, error)) *Report {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Replay(bytes.NewReader(b), with)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return r
}

func TestReplayGivesTheSameActions(t *testing.T) {
	dir := t.TempDir()
	play(t, Options{Dir: dir}, 4)
	paths := files(t, dir)
	if len(paths) != 1 {
		t.Fatalf("%v", paths)
	}
	r := replay(t, paths[0], fresh)
	if r.Different != 0 || r.Unjudged != 0 || r.Torn || r.Actions < 20 || r.Events < 40 || r.From != 2 || r.To < 10 ||
		r.Header.ID != "one" {
		t.Errorf("%+v", r)
	}
	// A role that forgets an action, or asks for another content of it, is found out.
	for name, spoil := range map[string]func([]role.Action) []role.Action{
		"forgets": func(all []role.Action) []role.Action {
			return slices.DeleteFunc(all, func(a role.Action) bool { return strings.HasPrefix(a.Key(), "reveal") })
		},
		"changes": func(all []role.Action) []role.Action {
			for i, a := range all {
				if c, ok := a.(role.Commit); ok {
					c.Commit.Loss++
					all[i] = c
				}
			}
			return all
		},
	} {
		r := replay(t, paths[0], func(h Header) (func(role.Event) []role.Action, error) {
			step, _ := fresh(h)
			return func(e role.Event) []role.Action { return spoil(step(e)) }, nil
		})
		if r.Different == 0 || len(r.Differences) != min(r.Different, maxDifferences) ||
			slices.Equal(r.Differences[0].Asked, r.Differences[0].Logged) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Every file of a long journal can be played alone, and the oldest go.
func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	const file, all = 20_000, 90_000
	play(t, Options{Dir: dir, File: file, All: all}, 60)
	paths := files(t, dir)
	var total int64
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
		r := replay(t, p, fresh)
		if r.Different != 0 || !r.Header.Continues || r.Events < 5 {
			t.Errorf("%s: %+v", p, r)
		}
	}
	if len(paths) < 3 || total > all+file {
		t.Errorf("%d files of %d bytes together", len(paths), total)
	}
}

func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	play(t, Options{Dir: dir}, 2)
	whole, err := os.ReadFile(files(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := Replay(bytes.NewReader(whole[:len(whole)-20]), fresh)
	if err != nil || !r.Torn || r.Different != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	middle := bytes.Replace(whole, []byte(`"event":"Trained"`), []byte(`"event":"Trained`), 1)
	if _, err := Replay(bytes.NewReader(middle), fresh); !errors.Is(err, ErrFormat) {
		t.Errorf("a line in the middle: %v", err)
	}
	for _, text := range []string{"", "{}", `{"format":2}`, "x"} {
		if _, err := Replay(strings.NewReader(text), fresh); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A journal can hold every type of event and action.
func TestVocabularyIsWhole(t *testing.T) {
	var decls []ast.Decl
	for _, path := range []string{"role.go", "consumer/consumer.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "role", path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, file.Decls...)
	}
	found := 0
	for _, d := range decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "event" && f.Name.Name != "Key" {
			continue
		}
		found++
		if of := f.Recv.List[0].Type.(*ast.Ident).Name; vocabulary[of] == nil {
			t.Errorf("%s is not in the vocabulary", of)
		}
	}
	if found != len(vocabulary) {
		t.Errorf("%d events and actions of roles, %d in the vocabulary", found, len(vocabulary))
	}
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("{\"format\":1,\"id\":\"one\"}\n{\"event\":\"Block\",\"height\":3,\"block\":\"AAAA\"}\n"))
	f.Add([]byte("{\"format\":1,\"id\":\"one\"}\n{\"event\":\"Finished\",\"action\":\"Load\",\"value\":{}}\n"))
	f.Add([]byte("{\"format\":1,\"id\":\"one\"}\n{\"event\":\"Load\",\"value\":{}}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Replay(bytes.NewReader(b), fresh); err != nil && !errors.Is(err, ErrFormat) {
			t.Error(err)
		}
	})
}
