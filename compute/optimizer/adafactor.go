package optimizer

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// tiny is what is added to squares, so that a root of them divides.
const tiny = 1e-30

// Adafactor remembers the second moment of a matrix as those of its rows and of its columns (Shazeer and Stern 2018,
// algorithms 4 and 5), with a decay Beta2 that stays and whose bias is corrected, as AdamW's is. With x the squares of
// the gradient plus 1e-30,
//
//	r = beta2*r + (1-beta2)*mean of x over columns, s = beta2*s + (1-beta2)*mean of x over rows
//	u = g / sqrt((r/mean(r)) * s * c2), then divided by max(1, sqrt(mean(u*u))/Threshold)
//
// and, with a Beta1, m = beta1*m + (1-beta1)*u is the step, else u; p - lr*(step + decay*p). Tensors of other than two
// dimensions have a second moment of their own shape. The learning rate is that of the schedule: it is not made
// relative to the size of the weights.
type Adafactor struct {
	Common
	Beta1, Beta2 float64
	Threshold    float64
}

// Check implements Optimizer.
func (o Adafactor) Check() error {
	if !(o.Threshold > 0 && o.Threshold <= 1e6) {
		return fmt.Errorf("%w: threshold %g must be above 0 and at most 1e6", ErrInvalid, o.Threshold)
	}
	return errors.Join(share("beta1", o.Beta1), share("beta2", o.Beta2), o.check())
}

func (o Adafactor) remembers(t Tensor) map[string]tensor.Shape {
	all := map[string]tensor.Shape{}
	if o.Beta1 > 0 {
		all[First] = t.Shape
	}
	if t.Shape.Rank() != 2 {
		all[Second] = t.Shape
		return all
	}
	all[Rows], all[Columns] = tensor.Make(tensor.Float32, t.Shape.Dims[0]), tensor.Make(tensor.Float32, t.Shape.Dims[1])
	return all
}

func (o Adafactor) next(s *Step, t Tensor, p, g, scale program.Value, before map[string]program.Value) (program.Value,
	map[string]program.Value) {
	after := map[string]program.Value{}
	g = s.times(g, scale)
	squares := s.apply(program.Mul, g, g)
	squares = s.apply(program.Add, squares, s.like(s.scalar(tiny), squares))
	one := s.scalar(1)
	average := func(prefix string, x program.Value) program.Value {
		after[prefix] = s.keep(s.b.Moment(program.AdamM, before[prefix], x, one, float32(o.Beta2)))
		return after[prefix]
	}
	var second program.Value
	if t.Shape.Rank() == 2 {
		second = o.product(s, t, squares, average)
	} else {
		second = s.times(average(Second, squares), s.C2)
	}
	step := s.apply(program.Div, g, s.apply(program.Sqrt, second))
	size := s.apply(program.Mul, s.rootMean(step), s.scalar(1/o.Threshold))
	step = s.apply(program.Div, step, s.like(s.apply(program.Max, one, size), step))
	if o.Beta1 > 0 {
		step = s.keep(s.b.Moment(program.AdamM, before[First], step, one, float32(o.Beta1)))
		after[First] = step
	}
	return s.moved(p, s.decayed(step, p, o.decay(t))), after
}

// product is the second moment of a matrix, without bias, from those of its rows and columns.
func (o Adafactor) product(s *Step, t Tensor, squares program.Value,
	average func(prefix string, x program.Value) program.Value) program.Value {
	n, m := t.Shape.Dims[0], t.Shape.Dims[1]
	mean := func(x program.Value, axis, count int) program.Value {
		return s.times(s.keep(s.b.Reduce(program.ReduceSum, x, axis)), s.scalar(1/float64(count)))
	}
	rows, columns := average(Rows, mean(squares, 1, m)), average(Columns, mean(squares, 0, n))
	all := s.apply(program.Mul, s.keep(s.b.Reduce(program.ReduceSum, rows, 0)), s.scalar(1/float64(n)))
	relative := s.times(s.apply(program.Div, rows, s.like(all, rows)), s.C2)
	dims := t.Shape.Dims
	return s.apply(program.Mul, s.keep(s.b.Broadcast(relative, dims, []int{0})),
		s.keep(s.b.Broadcast(columns, dims, []int{1})))
}
