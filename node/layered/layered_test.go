package layered

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/layered/wire"
)

// model is a small model whose weights are far from each other.
func model(t *testing.T, seed uint64) (architecture.Config, map[string]*tensor.Tensor) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 4, "hidden_size": 16,
		"num_attention_heads": 2, "vocab_size": 256, "intermediate_size": 24, "max_position_embeddings": 96,
		"initializer_range": 0.3})
	if err != nil {
		t.Fatal(err)
	}
	return c, c.Init(seed)
}

// written are the folders of a model in stages.
func written(t *testing.T, stages int, seed uint64) string {
	t.Helper()
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "parts")
	if err := os.WriteFile(filepath.Join(from, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, tensors := model(t, seed)
	if _, err := part.Write(to, from, c, tensors, part.Manifest{Stages: stages}); err != nil {
		t.Fatal(err)
	}
	return to
}

// peers are holders in this process, by address.
type peers map[string]*served

// served is a holder, and the ways in which it fails.
type served struct {
	holder *Holder
	left   atomic.Int64 // questions that it answers before it is gone; below 0: it is never gone
	lies   bool
	nan    bool // it answers with values that are no numbers
}

func (p peers) dial(_ context.Context, addr string, _ int) (Conversation, error) {
	s := p[addr]
	if s == nil || s.left.Load() == 0 {
		return nil, errors.New("no peer listens")
	}
	return &talk{s, s.holder.Dialogue("front")}, nil
}

type talk struct {
	*served
	with *Dialogue
}

func (t *talk) Ask(_ context.Context, question []byte) ([]byte, error) {
	if t.left.Load() == 0 {
		return nil, errors.New("gone")
	}
	t.left.Add(-1)
	answer := slices.Clone(t.with.Answer(question))
	if t.lies && len(answer) > 2 && question[0] != wire.KindHello {
		answer[len(answer)-2] ^= 1
	}
	if t.nan && question[0] == wire.KindPass {
		copy(answer[1:], []byte{0, 0, 0xc0, 0x7f})
	}
	return answer, nil
}

// every is true for each sequence.
func every(uint64) bool { return true }

func (t *talk) Close() { t.with.End() }

// start opens a holder of each stage in turn; more has further ones.
func start(t *testing.T, dir string, stages int, more ...int) (peers, []string) {
	t.Helper()
	all, list := peers{}, []string(nil)
	for stage := 1; stage <= stages; stage++ {
		more = append([]int{stage}, more...)
	}
	for i, stage := range more {
		h, err := Open(filepath.Join(dir, part.Name(stage)), 1, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		addr := fmt.Sprint(i, "-", stage)
		all[addr], list = &served{holder: h}, append(list, addr)
		all[addr].left.Store(-1)
	}
	return all, list
}

// front opens the front of the parts in a folder.
func front(t *testing.T, dir string, p peers, list []string, log *strings.Builder) (*generate.Pipeline, *Line) {
	t.Helper()
	m, _, err := part.ReadFront(filepath.Join(dir, part.Name(section.Front)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Connect(t.Context(), Config{Layout: m.Layout, Weights: m.Weights, Peers: list, Dial: p.dial,
		Timeout: 1e11, CheckPPM: 1_000_000, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	model, err := generate.NewPipeline(m.Layout, m.Tensors, 1, l)
	if err != nil {
		t.Fatal(err)
	}
	return model, l
}

// texts writes three texts at once. Of one that fails it has the error.
func texts(t *testing.T, m generate.Model) (all [3]string) {
	t.Helper()
	s := generate.NewScheduler(m, generate.Limits{Texts: 3, Memory: 1 << 30})
	number := map[*generate.Text]int{}
	for i, prompt := range []int{70, 3, 1} {
		r := generate.Request{Prompt: make([]int32, prompt), Tokens: 9,
			Sampling: generate.Sampling{Temperature: 1, Seed: uint64(i)}}
		for k := range r.Prompt {
			r.Prompt[k] = int32(k * (i + 5) % 256)
		}
		x, err := s.Submit(r)
		if err != nil {
			t.Fatal(err)
		}
		number[x] = i
	}
	for waiting, running := s.Load(); waiting+running > 0; waiting, running = s.Load() {
		tokens, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tokens {
			if x.Err != nil {
				all[number[x.Text]] = x.Err.Error()
				continue
			}
			all[number[x.Text]] += fmt.Sprint(x.ID, " ", x.Log, " ")
		}
	}
	return all
}

// whole is what the model writes in one process.
func whole(t *testing.T, seed uint64) [3]string {
	t.Helper()
	c, tensors := model(t, seed)
	b := generate.NewBatch(c, 1)
	if err := b.SetWeights(tensors); err != nil {
		t.Fatal(err)
	}
	return texts(t, b)
}

// TestReplicasContinueTexts has a holder leave after each number of answers: the replica continues with the same bits.
func TestReplicasContinueTexts(t *testing.T) {
	want, dir := whole(t, 1), written(t, 3, 1)
	var log strings.Builder
	for left := int64(2); left < 12; left += 3 {
		p, list := start(t, dir, 3, 2)
		m, l := front(t, dir, p, list, &log)
		p[list[1]].left.Store(left)
		if got := texts(t, m); got != want {
			t.Errorf("left after %d answers: %q, the whole model writes %q", left, got, want)
		}
		l.checks.Wait()
		for addr, s := range p {
			if n := s.holder.held.section.Memory(every); n != 0 && s.left.Load() != 0 {
				t.Errorf("%s remembers %d bytes of texts that have ended", addr, n)
			}
		}
	}
	if !strings.Contains(log.String(), "a holder continues a text of another") {
		t.Error("no text was continued")
	}
}

// A text fails if no replica is there, and the next ones do not.
func TestStageWithoutHolder(t *testing.T) {
	want, dir := whole(t, 1), written(t, 2, 1)
	var log strings.Builder
	p, list := start(t, dir, 2)
	m, _ := front(t, dir, p, list, &log)
	p[list[0]].left.Store(3)
	if got := texts(t, m); !strings.Contains(got[0], ErrNoHolder.Error()) || !strings.Contains(got[2], "do not answer") {
		t.Errorf("%q", got)
	}
	p[list[0]].left.Store(-1)
	if got := texts(t, m); got != want {
		t.Errorf("%q, the whole model writes %q", got, want)
	}
	for _, some := range [][]string{list[:1], {list[0], "absent"}} {
		if _, err := Connect(t.Context(), Config{Layout: p[list[0]].holder.held.section.Layout,
			Weights: p[list[0]].holder.current().hello.Weights, Peers: some, Dial: p.dial, Timeout: 1e11}); !errors.Is(err,
			ErrNoHolder) {
			t.Errorf("a model of which a stage is missing: %v", err)
		}
	}
}

// A holder that computes other values is found when its texts are computed again, and a third one decides.
func TestLiarsAreFound(t *testing.T) {
	want, dir := whole(t, 1), written(t, 2, 1)
	for _, more := range [][]int{{1, 1}, {1}} {
		var log strings.Builder
		p, list := start(t, dir, 2, more...)
		p[list[1]].lies = true // the holder of stage 1, which is asked first
		if p[list[1]].holder.current().hello.Stage != 1 {
			t.Fatal("another stage")
		}
		m, l := front(t, dir, p, list, &log)
		if got := texts(t, m); got == want {
			t.Error("lies change no text")
		}
		l.checks.Wait()
		if len(more) == 1 {
			if !strings.Contains(log.String(), "no two agree") {
				t.Error(log.String())
			}
			continue
		}
		for _, h := range l.holders {
			if h.excluded != (h.addr == list[1]) {
				t.Errorf("holder %s: excluded %t", h.addr, h.excluded)
			}
		}
		if got := texts(t, m); got != want {
			t.Errorf("%q, the whole model writes %q", got, want)
		}
	}
}

// At an epoch the folder of a stage gets other weights: a front of these is answered, and that of others no more.
func TestEpochs(t *testing.T) {
	dir, next := written(t, 2, 1), written(t, 2, 2)
	var log strings.Builder
	p, list := start(t, dir, 2)
	for stage := 1; stage <= 2; stage++ {
		at := filepath.Join(dir, part.Name(stage))
		if err := errors.Join(os.RemoveAll(at), os.Rename(filepath.Join(next, part.Name(stage)), at)); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := front(t, dir, p, list, &log)
	if got, want := texts(t, before), whole(t, 1); got != want {
		t.Errorf("before the epoch: %q, the whole model writes %q", got, want)
	}
	after, _ := front(t, next, p, list, &log)
	if got, want := texts(t, after), whole(t, 2); got != want {
		t.Errorf("after the epoch: %q, the whole model writes %q", got, want)
	}
	if _, err := part.Read(filepath.Join(next, part.Name(section.Front))); !errors.Is(err, part.ErrPart) {
		t.Error(err)
	}
}

// A holder refuses a sequence whose keys and values exceed its memory, a question that is no frame or comes before
// KindHello, one about another model, and one that continues a sequence which has not begun or has another limit.
func TestHoldersRefuse(t *testing.T) {
	dir := written(t, 2, 1)
	h, err := Open(filepath.Join(dir, part.Name(1)), 1, 2*2*2*16*96*2) // two layers of keys and values, half of 96 tokens
	if err != nil {
		t.Fatal(err)
	}
	pass := func(id uint64, start, limit int) []byte {
		row := section.Row{ID: id, Start: start, Count: 1, Limit: limit}
		return wire.Question{Kind: wire.KindPass, Passes: []section.Pass{{Rows: []section.Row{row},
			Hidden: make([]float32, 16)}}}.Encode()
	}
	hello := wire.Question{Kind: wire.KindHello, Model: h.current().hello.Weights}.Encode()
	d := h.Dialogue("front")
	for _, c := range []struct {
		question []byte
		refused  string
	}{
		{pass(1, 0, 9), "first question"},
		{wire.Question{Kind: wire.KindHello, Model: [32]byte{1}}.Encode(), "this is a stage of model"},
		{hello, ""},
		{nil, "not a frame"},
		{pass(1, 3, 9), "has not begun"},
		{pass(1, 0, 9), ""},
		{pass(1, 0, 9), ""}, // again
		{pass(2, 0, 96), "no room"},
		{pass(1, 1, 8), "has not 1 tokens here"}, // of another limit
		{pass(1, 1, 9), ""},
	} {
		answer := string(d.Answer(c.question))
		if (answer[0] == 0) != (c.refused != "") || !strings.Contains(answer, c.refused) {
			t.Errorf("%q: %q", c.refused, answer)
		}
	}
	d.End()
	if n := h.held.section.Memory(every); n != 0 {
		t.Errorf("%d bytes of a dialogue that has ended", n)
	}
}

// The files of a part are those of the manifest.
func TestPartsAreChecked(t *testing.T) {
	dir, other := written(t, 2, 1), written(t, 2, 2)
	from, to := filepath.Join(other, part.Name(2)), filepath.Join(dir, part.Name(2))
	raw, err := os.ReadFile(filepath.Join(from, "model.safetensors"))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "model.safetensors"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Read(to); !errors.Is(err, part.ErrPart) {
		t.Errorf("weights of another model: %v", err)
	}
	c, tensors := model(t, 1)
	if _, err := part.Write(dir, dir, c, tensors, part.Manifest{Stages: 2}); !errors.Is(err, part.ErrExists) {
		t.Error(err)
	}
	if _, err := part.Write(dir+"5", dir, c, tensors, part.Manifest{Stages: 5}); !errors.Is(err, section.ErrLayout) {
		t.Error(err)
	}
}
