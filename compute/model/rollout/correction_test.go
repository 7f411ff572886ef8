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

// Tokens count by the ratio of their probabilities, as each correction says, and with no gradient of it. All that a
// worker can commit as a score has a weight that is a number.
func TestCorrections(t *testing.T) {
	ratios := []float64{0, 1e-6, 0.5, 0.79, 0.81, 1, 1.19, 1.21, 2, 3.9, 4.1, 1e6, math.Inf(1)}
	for _, c := range []Correction{"", Clipped, Tapered} {
		for _, advantage := range []float64{-1.5, 0, 2} {
			var own, others, weight []float32
			for _, r := range ratios {
				at := 3.
				if r > 1 {
					at = 3 + math.Log(min(r, 1e300)) // of an own cross-entropy that is not negative
				}
				from := min(max(at+math.Log(r), 0), maxScore)
				own, others, weight = append(own, float32(at)), append(others, float32(from)), append(weight, float32(advantage))
			}
			n := len(own)
			b := program.NewBuilder()
			values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
				in := func(name string) *graph.Node { return graph.Parameter(g, name, shapes.Make(dtypes.Float32, n)) }
				x := in("own")
				w := c.Of(in("weight"), in("others"), x)
				return []*graph.Node{w, graph.Gradient(graph.ReduceAllSum(graph.Mul(w, x)), x)[0]}
			})
			if err != nil {
				t.Fatal(err)
			}
			b.Output("weights", values[0])
			b.Output("gradient", values[1])
			out := ran(t, b, map[string]*tensor.Tensor{"own": tensor.FromF32(own, n), "others": tensor.FromF32(others, n),
				"weight": tensor.FromF32(weight, n)})
			for i, got := range out["weights"].F32() {
				ratio := math.Exp(min(float64(others[i])-float64(own[i]), maxLog))
				want := advantage * ratio
				switch {
				case c == Tapered && advantage > 0:
					want = advantage
				case c == Tapered:
					want = advantage * min(ratio, 1)
				case advantage > 0 && ratio > 1.2, advantage <= 0 && (ratio < 0.8 || ratio > 4):
					want = 0
				}
				if !(math.Abs(float64(got)-want) <= 1e-5*max(1, math.Abs(want))) {
					t.Errorf("%q: a token of the advantage %v and the ratio %v counts %v, wanted %v", c, advantage, ratio, got, want)
				}
				if g := out["gradient"].F32()[i]; g != got {
					t.Errorf("%q: the gradient of a token that counts %v is %v", c, got, g)
				}
			}
		}
	}
}
