package outer

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// Sparta averages one of every Pick.Every parameters over all replicas after a step (sparse parameter averaging, Baioumy
// and Cheema 2025). Which ones follows from Pick's seed, the parameter's number (Stream) and the step (Round): no
// position travels. The moments of the inner optimizer may be averaged in the same way.
type Sparta struct{ Pick codec.RandomK }

// Send returns the replica's own values that take part.
func (s Sparta) Send(x *tensor.Tensor) *tensor.Tensor {
	n := x.Shape.Elements()
	values := make([]float32, (n+s.Pick.Every-1)/s.Pick.Every)
	y := x.F32()
	s.Pick.Positions(n, func(k, i int) { values[k] = y[i] })
	return tensor.FromF32(values, len(values))
}

// Apply adds scale*(mean - sent) to the values that took part: the delta rule, so steps that were made meanwhile stay.
// scale is 1 for parameters; for moments with decay beta that were sent k steps ago it is beta^k.
func (s Sparta) Apply(x, sent, mean *tensor.Tensor, scale float32) {
	y, from, to := x.F32(), sent.F32(), mean.F32()
	s.Pick.Positions(len(y), func(k, i int) { y[i] += float32(scale * (to[k] - from[k])) })
}

// NonNegative sets negative elements to zero: a second moment to which a difference was added may have some.
func NonNegative(v []float32) {
	for i, x := range v {
		v[i] = max(x, 0)
	}
}
