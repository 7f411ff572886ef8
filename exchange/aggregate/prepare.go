package aggregate

import (
	"math"
)

// NormClip shortens every update that is longer than the median length to that length, and leaves the rest to another
// rule. Length is the Euclidean norm of the whole update; inside PerTensor it is that of a parameter.
type NormClip struct{ Rule Rule }

func (c NormClip) combine(dst parts, rows []row) error {
	rows, squares, err := measured(rows)
	if err != nil {
		return err
	}
	limit := middle(squares)
	for i, r := range rows {
		if squares[i] > limit {
			short := r.like()
			weigh(short, 0, []row{r}, []float64{math.Sqrt(limit / squares[i])})
			rows[i].parts = short
		}
	}
	return c.Rule.combine(dst, rows)
}
