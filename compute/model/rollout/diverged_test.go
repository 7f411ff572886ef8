package rollout

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Logits that are no numbers have a loss that is none, with a nucleus as without: so a model that diverged is found.
func TestLogitsWithoutANumber(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, l := range [][]float32{{nan, nan, nan}, {inf, 1, 2}, {nan, 1, 2}} {
		for _, p := range []Policy{{1, 1}, {1, 0.9}} {
			b := program.NewBuilder()
			values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
				x := graph.Parameter(g, "logits", shapes.Make(dtypes.Float32, 1, len(l)))
				ce := record.CrossEntropy(p.Logits(x), graph.Parameter(g, "token", shapes.Make(dtypes.Int32, 1)))
				return []*graph.Node{ce, graph.Gradient(graph.ReduceAllSum(ce), x)[0]}
			})
			if err != nil {
				t.Fatal(err)
			}
			b.Output("ce", values[0])
			b.Output("grad", values[1])
			out := ran(t, b, map[string]*tensor.Tensor{"logits": tensor.FromF32(l, 1, len(l)),
				"token": tensor.FromI32([]int32{1}, 1)})
			ce := float64(out["ce"].F32()[0])
			if !math.IsNaN(ce) && !math.IsInf(ce, 0) {
				t.Errorf("%v of %v: a loss of %v with the gradient %v", p, l, ce, out["grad"].F32())
			}
		}
	}
}

// A score that is no number is no reward.
func TestScoreWithoutANumber(t *testing.T) {
	nan := float32(math.NaN())
	b := program.NewBuilder()
	w := Reward{Judged: []float64{1}}
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "scores", shapes.Make(dtypes.Float32, 4))
		e := graph.Parameter(g, "examples", shapes.Make(dtypes.Int32, 4, 3))
		r := w.ofTexts(e, e, []*graph.Node{x})
		return []*graph.Node{r, Advantages(graph.Reshape(r, 1, 4))}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Output("r", values[0])
	b.Output("a", values[1])
	out := ran(t, b, map[string]*tensor.Tensor{
		"scores":   tensor.FromF32([]float32{nan, 1, 2, float32(math.Inf(-1))}, 4),
		"examples": tensor.New(tensor.Make(tensor.Int32, 4, 3))})
	for i, a := range out["a"].F32() {
		if math.IsNaN(float64(a)) {
			t.Errorf("of the scores NaN, 1, 2 and -Inf answer %d has the reward %v and the advantage %v", i,
				out["r"].F32()[i], a)
		}
	}
}
