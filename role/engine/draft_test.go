package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// newTask makes a small job on made-up text.
func newTask(t testing.TB) (*train.Task, *train.Checkpoint) {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": 8, "n_head": 1,
		"n_positions": 8,
		"vocab_size":  256})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c,
		optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}, 1,
		8)
	if err != nil {
		t.Fatal(err)
	}
	corpus,
		err := data.Build([]source.File{{Format: "text", Name: "fox",
		Data: []byte(strings.Repeat("the quick brown fox ", 60))}}, tokenizer.Bytes(), 0)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	genesis, err := train.Genesis(train.Params(step), c.Init(7), 1)
	if err != nil {
		t.Fatal(err)
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "fox", Program: step.Digest(),
		Data: corpus.Manifest(bundle.ShardTokens).Digest(), Genesis: genesis.Root(),
		Rounds: 2, Steps: 6, Segment: 2, Units: 2, Batch: 1, Length: 8, Rate: train.Rate{Kind: train.Constant, Peak: 1e-2},
		Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "int8", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
	}
	return &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, genesis
}

// shelf is where drafts are kept in a test. It ends the process that is killed after so many steps.
type shelf struct {
	draft    []byte
	kill     func()
	last     int // drafts of a unit that is set aside
	after    int
	steps    int
	accepted int
}

func (s *shelf) Save(last bool, write func(io.Writer) error) {
	if last {
		s.last++
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		panic(err)
	}
	s.draft = b.Bytes()
	if s.steps++; s.steps == s.after {
		s.kill()
	}
}

func (s *shelf) Load(read func(io.Reader) error) {
	if s.draft != nil && read(bytes.NewReader(s.draft)) == nil {
		s.accepted++
	}
}

func (s *shelf) Drop() { s.draft = nil }

// train computes a unit in a process that has only the drafts of others before it, and is killed after some steps.
func (s *shelf) train(t testing.TB, task *train.Task, genesis *train.Checkpoint, unit uint32,
	after int) (*engine.Work, error) {
	t.Helper()
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e.Hold(base, genesis)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	s.kill, s.after, s.steps, s.accepted = kill, after, 0, 0
	e.KeepDrafts(s)
	return e.Train(ctx, base, unit)
}

// A process continues where the one before it was killed, and makes the same commitment. With a draft of another unit,
// or a damaged one, it begins from the start.
func TestDrafts(t *testing.T) {
	task, genesis := newTask(t)
	s := &shelf{}
	want, err := s.train(t, task, genesis, 1, 0)
	if err != nil || s.steps != 5 || s.draft != nil {
		t.Fatalf("%v, %d drafts", err, s.steps)
	}
	same := func(what string, steps int, accepted bool) {
		t.Helper()
		got, err := s.train(t, task, genesis, 1, 0)
		if err != nil || got.Commit.UpdateCID != want.Commit.UpdateCID || got.Commit.Log != want.Commit.Log ||
			!slices.Equal(got.Commit.Segments, want.Commit.Segments) {
			t.Errorf("%s: %v, another commitment", what, err)
		}
		if s.steps != steps || accepted != (s.accepted == 1) {
			t.Errorf("%s: %d drafts, %d taken up", what, s.steps, s.accepted)
		}
	}
	for after := 1; after < 5; after++ {
		if _, err := s.train(t, task, genesis, 1, after); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		same("killed", 5-after, true)
	}
	if _, err := s.train(t, task, genesis, 0, 3); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	same("another unit", 5, false)

	_, _ = s.train(t, task, genesis, 1, 3)
	for _, at := range []int{0, 3, 5, 40, len(s.draft) / 2, len(s.draft) - 1} {
		whole := slices.Clone(s.draft)
		s.draft[at] ^= 0x10
		same("damaged", 5, false)
		s.draft = whole[:at]
		same("torn", 5, false)
		s.draft = whole
	}

	moved := *genesis
	moved.Params = slices.Clone(genesis.Params)
	moved.Params[0] = moved.Params[0].Clone()
	moved.Params[0].F32()[0]++
	_, _ = s.train(t, task, &moved, 1, 3)
	same("another checkpoint", 5, true)
}

// calls is a context whose Err, at the call after which none is left, ends the context with the cause role.ErrPaused.
type calls struct {
	context.Context
	left  int
	pause context.CancelCauseFunc
}

func (c *calls) Err() error {
	if c.left--; c.left == 0 {
		c.pause(role.ErrPaused)
	}
	return c.Context.Err()
}

// A unit is set aside for a pause at any operator of a step, and continues from there with the same commitment: no
// finished step is lost.
func TestPausedWithinAStep(t *testing.T) {
	task, genesis := newTask(t)
	s := &shelf{}
	want, err := s.train(t, task, genesis, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	paused := 0
	for left := 1; ; left += 7 {
		e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Hold(base, genesis)
		one := &shelf{}
		e.KeepDrafts(one)
		ctx, pause := context.WithCancelCause(t.Context())
		_, err = e.Train(&calls{ctx, left, pause}, base, 1)
		if err == nil {
			break // it had ended before
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d questions: %v", left, err)
		}
		if paused++; one.last == 0 && one.steps > 0 {
			t.Fatalf("after %d questions: %d drafts, none of them of the unit that is set aside", left, one.steps)
		}
		done := one.steps - one.last // each step saves one, and the pause another, or that of the last step
		got, err := one.train(t, task, genesis, 1, 0)
		if err != nil || got.Commit.UpdateCID != want.Commit.UpdateCID || got.Commit.Log != want.Commit.Log ||
			!slices.Equal(got.Commit.Segments, want.Commit.Segments) {
			t.Fatalf("after %d questions: %v, another commitment", left, err)
		}
		if left := 5 - one.steps; left < done {
			t.Fatalf("%d steps were done, and %d of them again", done, done-left)
		}
	}
	if paused < 20 {
		t.Errorf("paused %d times", paused)
	}
}

// A draft is a file that anything may have happened to.
func FuzzDraft(f *testing.F) {
	task, genesis := newTask(f)
	s := &shelf{}
	want, err := s.train(f, task, genesis, 1, 0)
	if err != nil {
		f.Fatal(err)
	}
	_, _ = s.train(f, task, genesis, 1, 2)
	f.Add(s.draft[:200], s.draft[200:])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff}, []byte(nil))
	f.Fuzz(func(t *testing.T, head, rest []byte) {
		s := &shelf{draft: slices.Concat(head, rest)}
		got, err := s.train(t, task, genesis, 1, 0)
		if err != nil || got.Commit.UpdateCID != want.Commit.UpdateCID {
			t.Errorf("%v, another update", err)
		}
	})
}
