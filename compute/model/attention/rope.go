package attention

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/rotary"
)

// Rope turns pairs of elements of a head by an angle that grows with the position (Su et al. 2021, section 3.2.2), with
// element i paired with i+pairs as Hugging Face does.
type Rope struct{ cos, sin, minusSin *graph.Node } // [n, length, 1, 1, pairs]

// None reports whether nothing is turned: of the zero value.
func (r Rope) None() bool { return r.cos == nil }

// NewRope computes the tables of the positions [n, length]. Angles are products of float32 numbers, as in Hugging Face,
// so that weights mean the same in both at any position.
func NewRope(positions *graph.Node, of rotary.Rotary) Rope {
	n, length, half := dims(positions)[0], dims(positions)[1], of.Dim/2
	grid := func(x *graph.Node, axes ...int) *graph.Node {
		return graph.ExpandAndBroadcast(x, []int{n, length, half}, axes)
	}
	frequencies := graph.Const(positions.Graph(), of.Frequencies())
	angles := graph.Mul(grid(graph.ConvertDType(positions, dtypes.Float32), 2), grid(frequencies, 0, 1))
	table := func(x *graph.Node) *graph.Node {
		if size := of.Magnitude(); size != 1 {
			x = graph.MulScalar(x, float64(size))
		}
		return graph.Reshape(x, n, length, 1, 1, half)
	}
	r := Rope{cos: table(graph.Cos(angles)), sin: table(graph.Sin(angles))}
	r.minusSin = graph.Neg(r.sin)
	return r
}

// Turn applies the rotation to the heads x [batch, length, kvHeads, group, headDim], whose elements after those that
// are turned stay.
func (r Rope) Turn(x *graph.Node) *graph.Node {
	half := dims(r.cos)[4]
	a := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(0, half))
	b := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(half, 2*half))
	turned := []*graph.Node{
		graph.Add(graph.Mul(a, r.cos), graph.Mul(b, r.minusSin)),
		graph.Add(graph.Mul(b, r.cos), graph.Mul(a, r.sin)),
	}
	if 2*half < dims(x)[4] {
		turned = append(turned, graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(2*half)))
	}
	return graph.Concatenate(turned, -1)
}
