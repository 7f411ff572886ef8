package aggregate

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/kernel"
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

// Buckets deals the updates at random into groups of Size, and gives the Average of every group to another rule
// (Karimireddy et al. 2022): groups of workers with different data are more alike than workers. Hostile
// updates must be fixed before the seed is known.
type Buckets struct {
	Size int
	Seed uint64
	Rule Rule
}

func (b Buckets) combine(dst parts, rows []row) error {
	if b.Size < 1 {
		return fmt.Errorf("aggregate: no bucket holds %d updates", b.Size)
	}
	deck := slices.Clone(rows)
	dice := kernel.NewPhilox(b.Seed, 0)
	for i := len(deck) - 1; i > 0; i-- {
		j := dice.Uint64n(uint64(i + 1))
		deck[i], deck[j] = deck[j], deck[i]
	}
	var means []row
	for group := range slices.Chunk(deck, b.Size) {
		m := row{parts: dst.like()}
		for _, r := range group {
			m.weight += r.weight
		}
		if err := (Average{}).combine(m.parts, group); err != nil {
			return err
		}
		means = append(means, m)
	}
	return b.Rule.combine(dst, means)
}

// PerTensor applies a rule to every parameter by itself.
type PerTensor struct{ Rule Rule }

func (p PerTensor) combine(dst parts, rows []row) error {
	for i := range dst {
		column := make([]row, len(rows))
		for j, r := range rows {
			column[j] = row{r.weight, r.parts[i : i+1]}
		}
		if err := p.Rule.combine(dst[i:i+1], column); err != nil {
			return fmt.Errorf("parameter %d: %w", i, err)
		}
	}
	return nil
}
