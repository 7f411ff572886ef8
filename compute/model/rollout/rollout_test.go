package rollout

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Answers with equal rewards have no advantage, whatever the rounding of their mean is; of others the best
// alone is above 0.
func TestAdvantages(t *testing.T) {
	const values = 5 // of a reward
	for size := 2; size <= 40; size++ {
		rewards := make([]float32, 2*values*size)
		for i := range rewards {
			rewards[i] = float32(i/size%values) / 3
			if i == i/size*size && i/size >= values {
				rewards[i]++ // the first of its group is the best
			}
		}
		for i, a := range advantages(t, rewards, size) {
			switch group := i / size; {
			case group < values && a != 0:
				t.Fatalf("an answer of %d that are rewarded with %v has %v", size, rewards[i], a)
			case group >= values && (a > 0) != (i == group*size):
				t.Fatalf("answer %d of %d has %v", i%size, size, a)
			}
		}
	}
}

func advantages(t *testing.T, rewards []float32, size int) []float32 {
	t.Helper()
	b, groups := program.NewBuilder(), len(rewards)/size
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{Advantages(graph.Parameter(g, "rewards", shapes.Make(dtypes.Float32, groups, size)))}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Output("advantages", values[0])
	return ran(t, b, map[string]*tensor.Tensor{"rewards": tensor.FromF32(rewards, groups, size)})["advantages"].F32()
}

// A nucleus has the most probable tokens that have a share of the probability together, and no other but those that are
// within a two-thousandth as probable as the last of them. A policy without one has all tokens.
func TestNucleus(t *testing.T) {
	const rows, vocab = 40, 50
	logits := make([]float32, rows*vocab)
	philox.NormalTo(logits, 3, 0)
	for i := range logits {
		logits[i] *= float32(1+i/vocab) / 4 // from flat to steep
	}
	for k := range vocab {
		logits[k] = 1 // equal ones are in it together
	}
	for _, p := range []Policy{{Temperature: 0.7, TopP: 0.9}, {Temperature: 1, TopP: 0.01}, {Temperature: 2, TopP: 0.999},
		{Temperature: 1, TopP: 1}, {Temperature: 1}} {
		b := program.NewBuilder()
		values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{p.Logits(graph.Parameter(g, "logits", shapes.Make(dtypes.Float32, rows, vocab)))}
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Output("kept", values[0])
		kept := ran(t, b, map[string]*tensor.Tensor{"logits": tensor.FromF32(logits, rows, vocab)})["kept"].F32()
		for row := range rows {
			own, got := logits[row*vocab:][:vocab], kept[row*vocab:][:vocab]
			order := make([]int, vocab)
			var sum, has float64
			for k := range order {
				order[k] = k
				sum += math.Exp(float64(own[k]) / p.Temperature)
			}
			slices.SortFunc(order, func(a, b int) int { return cmp.Compare(own[b], own[a]) })
			last := float64(own[order[0]])
			for _, k := range order {
				in := has < p.TopP*sum*(1-1e-6) || !p.truncates()
				if in {
					last = float64(own[k])
				}
				has += math.Exp(float64(own[k]) / p.Temperature)
				is := got[k] > -1e8
				if in && !is || is && !in && (last-float64(own[k]))/p.Temperature > 6e-4 {
					t.Fatalf("%+v, row %d: token %d with the logit %v, after %v, is in the nucleus: %t", p, row, k, own[k],
						has/sum, is)
				}
				if is && got[k] != own[k]*float32(1/p.Temperature) {
					t.Fatalf("%+v: the logit %v of %v", p, got[k], own[k])
				}
			}
		}
	}
}

// ran runs the program of a builder.
func ran(t *testing.T, b *program.Builder, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
