package stages_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
)

const (
	layers, width, vocabulary, length = 5, 16, 61, 11
	sequences, micro                  = 6, 1
)

func step(t testing.TB, tied bool) *program.Program {
	t.Helper()
	c, err := architecture.Parse("gpt2", map[string]any{"n_layer": layers, "n_embd": width, "n_head": 2,
		"n_positions": length, "vocab_size": vocabulary, "tie_word_embeddings": tied})
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.LanguageOf(c, model.Batch{Sequences: sequences, Length: length, Micro: micro})
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Between two layers a microbatch sends one tensor forward and one back; a step, besides them, scalars and the gradient
// of the last bias before the cut. Embeddings that two stages read travel once forward, and back for each microbatch.
func TestTransfers(t *testing.T) {
	for _, tied := range []bool{false, true} {
		p := step(t, tied)
		for before := 2; before <= layers; before++ {
			plan, err := stages.Cut(p, []int{before})
			if err != nil {
				t.Fatal(err)
			}
			const batches, cut = sequences / micro, 4 * micro * length * width
			forward, back := int64(batches*cut+4), int64(batches*cut+4*width+4)
			if tied {
				const table = 4 * vocabulary * width
				forward, back = forward+table, back+batches*table
			}
			if a, b := plan.Bytes(0, 1), plan.Bytes(1, 0); a != forward || b != back || plan.Micro != batches {
				t.Errorf("tied %v, before group %d: %d bytes forward and %d back, wanted %d and %d", tied, before, a, b,
					forward, back)
			}
		}
	}
}

// Each operator that depends on weights and tokens is computed in one stage, and all stages hold the whole state.
func TestEveryOperatorHasOneStage(t *testing.T) {
	p := step(t, true)
	plan, err := stages.Cut(p, []int{1, 3, 6})
	if err != nil {
		t.Fatal(err)
	}
	var state, want []string
	for _, s := range plan.Stages {
		state = append(state, s.State...)
		if err := s.Whole.Check(program.Unlimited); err != nil {
			t.Error(err)
		}
		for _, piece := range s.Pieces {
			if err := piece.Program.Check(program.Unlimited); err != nil {
				t.Errorf("%v: %v", piece.Task, err)
			}
		}
	}
	for _, in := range p.Inputs() {
		if len(in.Name) > 2 && in.Name[1] == '/' {
			want = append(want, in.Name)
		}
	}
	slices.Sort(state)
	slices.Sort(want)
	if !slices.Equal(state, want) {
		t.Errorf("stages hold %v, wanted %v", state, want)
	}
	// The programs of all microbatches but the first and the last are the same.
	programs := map[order.Phase]map[string]bool{}
	for _, piece := range plan.Stages[1].Pieces {
		if piece.Number > 0 && piece.Number < sequences/micro-1 && piece.Phase < order.Update {
			if programs[piece.Phase] == nil {
				programs[piece.Phase] = map[string]bool{}
			}
			programs[piece.Phase][piece.Program.Digest().String()] = true
		}
	}
	if len(programs[order.Forward]) != 1 || len(programs[order.Backward]) != 1 {
		t.Errorf("%d programs of forwards and %d of backwards, wanted one of each", len(programs[order.Forward]),
			len(programs[order.Backward]))
	}
}

func TestGroups(t *testing.T) {
	groups, err := stages.Groups(step(t, false))
	if err != nil || len(groups) != layers+2 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	first, last := groups[0].Weights, groups[len(groups)-1].Weights
	if !slices.Equal(first, []string{"transformer.wte.weight", "transformer.wpe.weight"}) ||
		!slices.Equal(last, []string{"transformer.ln_f.weight", "transformer.ln_f.bias", "lm_head.weight"}) {
		t.Errorf("the first is %v, the last %v", first, last)
	}
}

func TestBalance(t *testing.T) {
	costs := func(flops ...uint64) (list []stages.Cost) {
		for _, f := range flops {
			list = append(list, stages.Cost{Flops: f, State: int64(f)})
		}
		return list
	}
	for _, c := range []struct {
		costs  []stages.Cost
		passed []int
		want   []int
	}{
		{costs(1, 1, 1, 1), []int{1, 1}, []int{2}},
		{costs(1, 1, 1, 1), []int{1, 1, 1, 1}, []int{1, 2, 3}},
		{costs(0, 4, 4, 4, 4, 9), []int{1, 1, 1}, []int{3, 5}},
		{costs(5, 1, 1, 1, 1, 1), []int{1, 1}, []int{1}},
		{costs(1, 1, 1, 1, 1, 1), []int{2, 1, 1, 2}, []int{1, 3, 5}}, // half of them leave out a stage in the middle
	} {
		if got, err := stages.Balance(c.costs, c.passed); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v in stages %v: before %v, %v; wanted %v", c.costs, c.passed, got, err, c.want)
		}
	}
	for _, n := range []int{0, 1, 5} {
		if _, err := stages.Balance(costs(1, 1, 1, 1), slices.Repeat([]int{1}, n)); !errors.Is(err, stages.ErrCut) {
			t.Errorf("%d stages of four groups: %v", n, err)
		}
	}
}

func TestProgramsThatCannotBeCut(t *testing.T) {
	p := step(t, false)
	for _, before := range [][]int{nil, {0}, {3, 2}, {2, 2}, {layers + 2}} {
		if _, err := stages.Cut(p, before); !errors.Is(err, stages.ErrCut) {
			t.Errorf("before %v: %v", before, err)
		}
	}
	b := program.NewBuilder()
	x := b.Input("p/h.0.w", tensor.Make(tensor.Float32, 2))
	norm, err := b.Apply(program.SumSquares, x)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("p/h.0.w", x)
	b.Output("loss", norm)
	b.Output("grad_norm", norm)
	other, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	strange := &program.Program{Numerics: p.Numerics, Ops: slices.Clone(p.Ops), Outputs: p.Outputs}
	for i := range strange.Ops {
		if strange.Ops[i].Name == "tokens" {
			strange.Ops[i].Name = "q/0/answers"
		}
	}
	silent := &program.Program{Numerics: p.Numerics, Ops: p.Ops, Outputs: p.Outputs[:len(p.Outputs)-1]}
	for name, p := range map[string]*program.Program{"no cross-entropy": other, "no tokens": strange, "no loss": silent} {
		if _, err := stages.Costs(p); !errors.Is(err, stages.ErrCut) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
