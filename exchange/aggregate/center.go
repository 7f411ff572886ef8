package aggregate

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// Weiszfeld is the geometric median, the point with the least sum of distances to the updates, by smoothed Weiszfeld
// iterations (RFA, Pillutla et al. 2022): z becomes the mean of the updates with weights
// w / max(Smooth, distance to z). It starts from the median of every coordinate, which one huge update cannot drag
// away.
type Weiszfeld struct {
	Smooth     float64 // distances below count as this; in the units of the updates
	Iterations int
}

func (w Weiszfeld) combine(dst parts, rows []row) error {
	if !(w.Smooth > 0) || w.Iterations < 1 {
		return fmt.Errorf("aggregate: a geometric median takes a positive smoothing and iterations, got %v and %d", w.Smooth,
			w.Iterations)
	}
	rows, _, err := measured(rows)
	if err != nil {
		return err
	}
	trimmed(dst, rows, (len(rows)-1)/2)
	weights := make([]float64, len(rows))
	for range w.Iterations {
		var total float64
		clear(weights)
		distances(weights, dst, rows)
		for i, r := range rows {
			weights[i] = r.weight / max(w.Smooth, math.Sqrt(weights[i]))
			total += weights[i]
		}
		for i := range weights {
			weights[i] /= total
		}
		weigh(dst, 0, rows, weights)
	}
	return nil
}

// CenteredClipping is centered clipping (Karimireddy et al. 2021): v moves by the mean of the differences of the
// updates from it, each shortened to Radius. All updates count alike.
type CenteredClipping struct {
	// Center is the start of v, best at the last round's result; nil is the median of every coordinate.
	Center     []*tensor.Tensor
	Radius     float64 // 0 is the lower median of the distances from v, computed in every iteration
	Iterations int
}

func (c CenteredClipping) combine(dst parts, rows []row) error {
	if !(c.Radius >= 0) || c.Iterations < 1 {
		return fmt.Errorf("aggregate: centered clipping takes a radius and iterations, got %v and %d", c.Radius, c.Iterations)
	}
	rows, _, err := measured(rows)
	if err != nil {
		return err
	}
	if err := c.start(dst, rows); err != nil {
		return err
	}
	apart, weights := make([]float64, len(rows)), make([]float64, len(rows))
	for range c.Iterations {
		clear(apart)
		distances(apart, dst, rows)
		for i, d := range apart {
			apart[i] = math.Sqrt(d)
		}
		radius := c.Radius
		if radius == 0 {
			radius = middle(apart)
		}
		rest := 1.0
		for i, d := range apart {
			weights[i] = 1 / float64(len(rows))
			if d > radius {
				weights[i] *= radius / d
			}
			rest -= weights[i]
		}
		weigh(dst, max(0, rest), rows, weights)
	}
	return nil
}

func (c CenteredClipping) start(dst parts, rows []row) error {
	if c.Center == nil {
		trimmed(dst, rows, (len(rows)-1)/2)
		return nil
	}
	center := elements(c.Center)
	if len(center) != len(dst) {
		return fmt.Errorf("%w: the center has %d tensors, the updates %d", ErrUpdates, len(center), len(dst))
	}
	for i := range dst {
		if len(center[i]) != len(dst[i]) {
			return fmt.Errorf("%w: tensor %d of the center has %d elements of %d", ErrUpdates, i, len(center[i]), len(dst[i]))
		}
		copy(dst[i], center[i])
	}
	if math.IsInf(dst.square(), 1) {
		return fmt.Errorf("%w: the center is too large to be measured", ErrUpdates)
	}
	return nil
}

// weigh makes dst the sum of itself, times old, and the rows times their weights.
func weigh(dst parts, old float64, rows []row, weights []float64) {
	products := make(matrix, (1+len(rows))*block)
	dst.blocks(func(dst []float32, i, lo int) {
		n := len(dst)
		first := 1
		if old != 0 {
			scale(products.row(0, n), dst, float32(old))
			first = 0
		}
		for j, r := range rows {
			scale(products.row(1+j, n), r.at(i, lo, n), float32(weights[j]))
		}
		products.sum(dst, first, 1+len(rows))
	})
}
