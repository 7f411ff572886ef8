package rollout

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
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
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.Run(map[string]*tensor.Tensor{"rewards": tensor.FromF32(rewards, groups, size)})
	if err != nil {
		t.Fatal(err)
	}
	return out["advantages"].F32()
}
