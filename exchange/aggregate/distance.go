package aggregate

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/kernel"
)

// maxSquares bounds the sum of squares of kernel.ChunkSum elements of an update that is measured: the squares of a
// difference of two such updates still fit in a float32.
const maxSquares = 0x1p125

// distances adds to sums, zeros, the squared Euclidean distance of every row from x: squares are summed as kernel sums
// within ChunkSum elements of a parameter, and these sums in order, in float64.
func distances(sums []float64, x parts, rows []row) {
	x.chunks(func(i, lo, hi int) {
		for j, r := range rows {
			sums[j] += squared(x[i][lo:hi], r.parts[i][lo:hi])
		}
	})
}

// pairwise returns the distances of the rows from each other.
func pairwise(rows []row) [][]float64 {
	d := make([][]float64, len(rows))
	for i := range d {
		d[i] = make([]float64, len(rows))
	}
	rows[0].chunks(func(k, lo, hi int) {
		for i, r := range rows {
			for j, s := range rows[:i] {
				d[i][j] += squared(r.parts[k][lo:hi], s.parts[k][lo:hi])
			}
		}
	})
	for i := range d {
		for j := range i {
			d[j][i] = d[i][j]
		}
	}
	return d
}

// chunks calls f for every ChunkSum elements of p: parameter i from lo to hi.
func (p parts) chunks(f func(i, lo, hi int)) {
	for i, x := range p {
		for lo := 0; lo < len(x); lo += kernel.ChunkSum {
			f(i, lo, min(lo+kernel.ChunkSum, len(x)))
		}
	}
}

func squared(x, y []float32) float64 {
	var p kernel.Path
	var difference [kernel.ChunkSum]float32
	p.Sub(difference[:len(x)], x, y)
	return float64(p.SumSquares(difference[:len(x)]))
}

// square is the squared Euclidean norm of an update, summed as distances; +Inf is one that cannot be measured.
func (p parts) square() float64 {
	var path kernel.Path
	var sum float64
	p.chunks(func(i, lo, hi int) {
		s := path.SumSquares(p[i][lo:hi])
		if !(s <= maxSquares) {
			sum = math.Inf(1)
		}
		sum += float64(s)
	})
	return sum
}

// measured returns the rows that have a norm, and their squared norms. No honest update has elements near 2^62: one
// that has does not take part in any rule that measures.
func measured(rows []row) (kept []row, squares []float64, err error) {
	for _, r := range rows {
		if s := r.square(); !math.IsInf(s, 1) {
			kept, squares = append(kept, r), append(squares, s)
		}
	}
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("%w: all are too large to be measured", ErrUpdates)
	}
	return kept, squares, nil
}

// middle is the lower median: while less than half are hostile it is at most an honest value.
func middle(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return s[(len(s)-1)/2]
}

// Selection is Krum, and Multi-Krum (Blanchard et al. 2017): the Average of the updates with the lowest
// scores. The score of one of n is the sum of its squared distances to the n-Hostile-2 updates nearest to it; of equal
// scores the lower unit's is lower.
type Selection struct {
	Hostile int // presumed hostile, n >= 2*Hostile+3; 0 is the most that this allows
	Keep    int // how many are averaged, 1 is Krum; 0 is n-Hostile-2
}

func (s Selection) combine(dst parts, rows []row) error {
	all := len(rows)
	rows, _, err := measured(rows)
	if err != nil {
		return err
	}
	hostile := s.Hostile
	if hostile == 0 {
		hostile = max(0, (all-3)/2)
	} else if all < 2*hostile+3 {
		return fmt.Errorf("%w: %d cannot outvote %d hostile ones, which takes %d", ErrUpdates, all, hostile, 2*hostile+3)
	}
	hostile = max(0, hostile-(all-len(rows))) // those that could not be measured are found
	neighbours := max(1, len(rows)-hostile-2)
	keep := s.Keep
	if keep == 0 {
		keep = neighbours
	}
	best := nearest(rows, neighbours)[:min(keep, len(rows))]
	slices.Sort(best)
	chosen := make([]row, len(best))
	for i, j := range best {
		chosen[i] = rows[j]
	}
	return Average{}.combine(dst, chosen)
}

// nearest returns the indices of the rows, lowest score first.
func nearest(rows []row, neighbours int) []int {
	n := len(rows)
	score, order := make([]float64, n), make([]int, n)
	for i, d := range pairwise(rows) {
		order[i] = i
		others := slices.Delete(d, i, i+1)
		slices.Sort(others)
		for _, v := range others[:min(neighbours, n-1)] {
			score[i] += v
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case score[a] < score[b]:
			return -1
		case score[a] > score[b]:
			return 1
		}
		return a - b
	})
	return order
}
