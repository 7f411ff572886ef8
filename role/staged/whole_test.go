package staged

import (
	"context"
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
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// cutTask is a task of two replicas of three stages, and its first checkpoint.
func cutTask(t *testing.T) (*train.Task, *train.Checkpoint) {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 3, "n_embd": 8, "n_head": 1,
		"n_positions": 8, "vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	of, err := model.LanguageOf(c, model.Batch{Sequences: 4, Length: 8, Micro: 2})
	if err != nil {
		t.Fatal(err)
	}
	step, err := of.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := data.Build([]source.File{{Format: "text", Name: "fox",
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
	plan, err := stages.Cut(step, []int{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "fox", Program: step.Digest(),
		Data: corpus.Manifest(bundle.ShardTokens).Digest(), Genesis: genesis.Root(),
		Rounds: 2, Steps: 2, Segment: 1, Units: 6, Batch: 4, Length: 8,
		Rate:  train.Rate{Kind: train.Constant, Peak: 1e-2},
		Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "float32", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
		Pipeline: &replica.Pipeline{Before: []uint32{2, 3}, Stage: train.StageOfParams(plan, train.Params(step))},
	}
	task := &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}
	if err := task.Divide(); err != nil {
		t.Fatal(err)
	}
	return task, genesis
}

// scratched is a place whose scratch counts what is made in it, and how often it rests.
type scratched struct{ made, rests int }

func (*scratched) Keep([][]byte) io.ReaderAt                      { return nil }
func (*scratched) Room(int64) func(*tensor.Tensor) *tensor.Tensor { return nil }
func (s *scratched) Scratch(int64) hold.Scratch                   { return s }
func (s *scratched) Rest()                                        { s.rests++ }

func (s *scratched) New(shape tensor.Shape) *tensor.Tensor {
	s.made += shape.Bytes()
	return tensor.New(shape)
}

// The values that a stage has exchanged are had from all stages, which one process computes in turn, each in memory
// that rests meanwhile: they are those of the step that is not cut.
func TestAllStagesInTurn(t *testing.T) {
	task, genesis := cutTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	var lies scratched
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Hold(base, genesis)
	x := New(&Engine{Engine: e, Job: "fox", Aside: &lies, Threads: 1})
	for unit := range task.Spec.Units {
		stage, number := x.stage(unit)
		got, err := x.whole(t.Context(), base, unit)
		if err != nil {
			t.Fatal(err)
		}
		unsplit := &train.Task{Spec: task.Spec.Unsplit(), Step: task.Step, Exec: task.Exec, Corpus: task.Corpus}
		s, err := unsplit.Begin(genesis, number, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wanted []int
		for _, tr := range x.plan.Transfers {
			if (tr.From == stage || tr.To == stage) && !slices.Contains(wanted, int(tr.Value)) { // two may read one
				wanted = append(wanted, int(tr.Value))
			}
		}
		for step := range task.Spec.Steps {
			if len(got.steps[step]) != len(wanted) {
				t.Fatalf("unit %d has %d values of step %d, wanted %d", unit, len(got.steps[step]), step, len(wanted))
			}
			if err := s.Values(wanted, func(op int, value *tensor.Tensor) {
				if had := got.steps[step][int32(op)]; had == nil || had.Root() != value.Root() {
					t.Errorf("unit %d has another value %d in step %d", unit, op, step)
				}
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(); err != nil {
				t.Fatal(err)
			}
		}
	}
	var state int
	for _, p := range genesis.Params {
		state += 3 * p.Shape.Bytes() // with both moments
	}
	if lies.made < state*int(task.Spec.Units) || lies.rests < int(task.Spec.Units*task.Spec.Steps) {
		t.Errorf("%d bytes lie in scratch memory, wanted %d of each unit; it rests %d times", lies.made, state, lies.rests)
	}
}

// A context that ends, ends all stages.
func TestAllStagesEnd(t *testing.T) {
	task, genesis := cutTask(t)
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Hold(base, genesis)
	x := New(&Engine{Engine: e, Job: "fox", Threads: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.whole(ctx, base, 1); err == nil {
		t.Error("computed to the end")
	}
}
