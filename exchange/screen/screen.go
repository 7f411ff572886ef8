// Package screen compares the updates of a round before they are combined, and flags outliers: not finite, of an
// unusual length, against the others, or much like another. It is the second line of defence: the only one for work
// that cannot be re-executed bit for bit, and an early warning for work that can.
//
// A flag is a suspicion and never a proof. It may withhold an update, send its unit to another worker or make an audit
// certain; it slashes no worker. The package judges tensors; protocol/run decides what follows from a flag.
package screen

import (
	"cmp"
	"container/heap"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// Flag is a reason to look at an update again.
type Flag string

// The flags.
const (
	NotFinite       Flag = "not_finite" // an element is a NaN or an infinity; such an update has no other flag
	NormLarge       Flag = "norm_large"
	NormSmall       Flag = "norm_small"
	OpposesMajority Flag = "against_others" // it points away from the sum of the others
	// its largest coordinates are those of another update, with nearly the same values
	Copy Flag = "copy"
	// the loss on the data it was assigned does not fall, or far less than with others
	NoProgress Flag = "no_progress"
	Harm       Flag = "harm"       // the loss on held-out data rises
	OtherData  Flag = "other_data" // it helps held-out data more than the data it was assigned
)

// Limits are the thresholds of the flags.
type Limits struct {
	// times the median norm, and as many times below it; and as many times below the median fall of the loss
	Norm    float64
	Cosine  float64 // smallest cosine with the sum of the others
	Overlap float64 // largest part of the largest coordinates shared with another update
	Match   float64 // smallest cosine over the shared coordinates that makes an overlap a copy
	Largest int     // number of the largest coordinates that are compared
	// largest relative rise of the held-out loss, and largest lead of its fall over that of the assigned one
	Loss float64
	Few  int // with fewer updates that are finite, none is compared with the others

	// Steps are the numbers of inner steps of the updates, where they differ; nil: equal. With more steps an update is
	// longer and lowers the loss further, by a power of the number between a half and one; a half is used here.
	Steps []uint32
}

// Default limits. Pseudo-gradients that start from one checkpoint have cosines well above zero and norms within a
// factor of two of each other; the limits leave room, because all that a false alarm costs is an audit. The loss of
// single batches is noisy: of the updates of a model of a million parameters, honest ones raised that on a held-out
// batch by up to 1.3 %, and let it fall by up to 1.1 % more than on data of the unit.
var Default = Limits{Norm: 4, Cosine: -0.2, Overlap: 0.9, Match: 0.98, Largest: 256, Loss: 0.03, Few: 3}

// Report has the measures and flags of one update.
type Report struct {
	Norm    float64 // Euclidean, over all tensors
	Ratio   float64 // of the norm, scaled by the length that Limits.Steps lets expect, to the median of all finite updates
	Cosine  float64 // with the sum of the other finite updates
	Overlap float64 // largest part of the largest coordinates that is shared with one other update
	Twin    int     // that other update; -1 if there is none
	Flags   []Flag
}

// Outlier reports whether anything is flagged.
func (r Report) Outlier() bool { return len(r.Flags) > 0 }

// Updates screens the updates of one round, each given as its tensors, all of the same shapes. The reports are in the
// order of the updates, and depend on nothing else: sums run in the order of elements.
func Updates(updates [][]*tensor.Tensor, l Limits) []Report {
	reports := make([]Report, len(updates))
	var finite []int
	for i, u := range updates {
		reports[i].Twin = -1
		if !isFinite(u) {
			reports[i].Flags = []Flag{NotFinite}
			continue
		}
		finite = append(finite, i)
	}
	rows := make([][]*tensor.Tensor, len(finite))
	for a, i := range finite {
		rows[a] = updates[i]
	}
	inner := products(rows, len(finite) >= l.Few)
	for a, i := range finite {
		reports[i].Norm = math.Sqrt(inner[a][a])
	}
	if len(finite) < l.Few {
		return reports
	}
	norms(reports, finite, l)
	cosines(inner, reports, finite, l)
	copies(updates, reports, finite, l)
	return reports
}

// expected is the expected length of an update, relative to one of the most steps.
func (l Limits) expected(i int) float64 {
	if l.Steps == nil {
		return 1
	}
	return math.Sqrt(float64(l.Steps[i]) / float64(slices.Max(l.Steps)))
}

func norms(reports []Report, finite []int, l Limits) {
	sorted := make([]float64, len(finite))
	for k, i := range finite {
		sorted[k] = reports[i].Norm / l.expected(i)
	}
	slices.Sort(sorted)
	median := sorted[len(sorted)/2]
	for _, i := range finite {
		r := &reports[i]
		switch {
		case median == 0:
			r.Ratio = 1
		default:
			r.Ratio = r.Norm / l.expected(i) / median
		}
		switch {
		case median == 0 && r.Norm > 0, r.Ratio > l.Norm:
			r.Flags = append(r.Flags, NormLarge)
		case r.Ratio*l.Norm < 1:
			r.Flags = append(r.Flags, NormSmall)
		}
	}
}

// cosines compares each update with the sum of the others. That sum is the sum of all less itself, so that one pass
// over the elements is enough: u.(S-u) = u.S - u.u and |S-u|^2 = S.S - 2 u.S + u.u. Every update is taken at unit
// length, otherwise a huge one would dominate the sum.
func cosines(inner [][]float64, reports []Report, finite []int, l Limits) {
	n := len(finite)
	gram := make([][]float64, n) // of the unit vectors
	for a := range gram {
		gram[a] = make([]float64, n)
	}
	for a, i := range finite {
		for b, j := range finite[:a+1] {
			if length := reports[i].Norm * reports[j].Norm; length > 0 {
				gram[a][b] = inner[a][b] / length
			}
			gram[b][a] = gram[a][b]
		}
	}
	for a, i := range finite {
		with, among := 0.0, 0.0
		for b := range finite {
			if b == a {
				continue
			}
			with += gram[a][b]
			for c := range finite {
				if c != a {
					among += gram[b][c]
				}
			}
		}
		if among > 0 {
			reports[i].Cosine = with / math.Sqrt(among)
		}
		if reports[i].Cosine < l.Cosine {
			reports[i].Flags = append(reports[i].Flags, OpposesMajority)
		}
	}
}

// copies compares the largest coordinates of each update with those of every other. Of two that are alike both are
// flagged: which is the copy, the updates do not tell.
func copies(updates [][]*tensor.Tensor, reports []Report, finite []int, l Limits) {
	tops := make([][]coordinate, len(updates))
	for _, i := range finite {
		tops[i] = largest(updates[i], l.Largest)
	}
	for _, i := range finite {
		twin := false
		for _, j := range finite {
			if i == j {
				continue
			}
			shared, match := alike(tops[i], tops[j])
			if shared == 0 {
				continue
			}
			overlap := float64(shared) / float64(max(len(tops[i]), len(tops[j])))
			if overlap > reports[i].Overlap {
				reports[i].Overlap, reports[i].Twin = overlap, j
			}
			twin = twin || overlap > l.Overlap && match > l.Match
		}
		if twin {
			reports[i].Flags = append(reports[i].Flags, Copy)
		}
	}
}

// alike returns how many coordinates two lists share, and the cosine of their values there.
func alike(a, b []coordinate) (shared int, cosine float64) {
	ab, aa, bb := 0.0, 0.0, 0.0
	for len(a) > 0 && len(b) > 0 {
		switch c := cmp.Compare(a[0].at, b[0].at); {
		case c < 0:
			a = a[1:]
			continue
		case c > 0:
			b = b[1:]
			continue
		}
		x, y := float64(a[0].value), float64(b[0].value)
		ab, aa, bb = ab+float64(x*y), aa+float64(x*x), bb+float64(y*y)
		shared++
		a, b = a[1:], b[1:]
	}
	if shared == 0 || aa == 0 || bb == 0 {
		return 0, 0
	}
	return shared, ab / math.Sqrt(float64(aa*bb))
}

// coordinate is one element of an update, whose elements are counted through all its tensors.
type coordinate struct {
	at    int
	value float32
}

// smallest is a heap with the smallest magnitude on top; of equal ones the later coordinate.
type smallest []coordinate

func (h smallest) Len() int      { return len(h) }
func (h smallest) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *smallest) Push(x any)   { *h = append(*h, x.(coordinate)) }
func (h *smallest) Pop() any     { panic("never taken off, only replaced") }
func (h smallest) Less(i, j int) bool {
	x, y := magnitude(h[i].value), magnitude(h[j].value)
	return x < y || x == y && h[i].at > h[j].at
}

func magnitude(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// largest returns the k elements that are largest by magnitude and not zero, of equal ones the first, in order of
// place.
func largest(u []*tensor.Tensor, k int) []coordinate {
	var top smallest
	at := 0
	for _, t := range u {
		for _, x := range t.F32() {
			switch {
			case x == 0:
			case len(top) < k:
				heap.Push(&top, coordinate{at, x})
			case magnitude(x) > magnitude(top[0].value):
				top[0] = coordinate{at, x}
				heap.Fix(&top, 0)
			}
			at++
		}
	}
	slices.SortFunc(top, func(a, b coordinate) int { return cmp.Compare(a.at, b.at) })
	return top
}

func isFinite(u []*tensor.Tensor) bool {
	for _, t := range u {
		for _, x := range t.F32() {
			if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
				return false
			}
		}
	}
	return true
}

// products returns, for each of the rows, the inner products with those before it and with itself, or with itself
// alone, bit for bit as dot computes them. An addition waits for the one before it, so four sums are computed at a
// time.
func products(rows [][]*tensor.Tensor, all bool) [][]float64 {
	inner := make([][]float64, len(rows))
	for a, row := range rows {
		inner[a] = make([]float64, a+1)
		first := 0
		if !all {
			first = a
		}
		for b := first; b <= a; b += 4 {
			at := func(k int) []*tensor.Tensor { return rows[min(b+k, a)] }
			sums := dot4(row, at(0), at(1), at(2), at(3))
			copy(inner[a][b:], sums[:])
		}
	}
	return inner
}

// dot4 is dot with each of four.
func dot4(a, b, c, d, e []*tensor.Tensor) [4]float64 {
	var s, t, u, v float64
	for i := range a {
		x := a[i].F32()
		p, q, r, w := b[i].F32()[:len(x)], c[i].F32()[:len(x)], d[i].F32()[:len(x)], e[i].F32()[:len(x)]
		for j, y := range x {
			s += float64(float64(y) * float64(p[j]))
			t += float64(float64(y) * float64(q[j]))
			u += float64(float64(y) * float64(r[j]))
			v += float64(float64(y) * float64(w[j]))
		}
	}
	return [4]float64{s, t, u, v}
}

// dot is the inner product over all tensors, in float64. Products of float32 are exact in it.
func dot(a, b []*tensor.Tensor) float64 {
	sum := 0.0
	for i := range a {
		x, y := a[i].F32(), b[i].F32()
		for j := range x {
			sum += float64(float64(x[j]) * float64(y[j]))
		}
	}
	return sum
}

// Similarity is how far an update is from the one that the exact execution of its unit gives.
type Similarity struct {
	Distance float64 // Euclidean, relative to the length of the exact one
	Cosine   float64
}

// Compare returns the similarity of an update to the exact one, of the same shapes and finite. Two of length zero are
// equal; no other update is similar to one of length zero.
func Compare(update, exact []*tensor.Tensor) Similarity {
	uu, ee, ue := dot(update, update), dot(exact, exact), dot(update, exact)
	apart := 0.0
	for i := range update {
		x, y := update[i].F32(), exact[i].F32()
		for j := range x {
			d := float64(x[j]) - float64(y[j])
			apart += float64(d * d)
		}
	}
	switch {
	case apart == 0:
		return Similarity{Cosine: 1}
	case uu == 0 || ee == 0:
		return Similarity{Distance: math.Inf(1)}
	}
	return Similarity{Distance: math.Sqrt(apart / ee), Cosine: ue / math.Sqrt(float64(uu*ee))}
}

// Agreement is the mean cosine between the updates of a round, each given as its tensors, and the combined update, of
// the same shapes: 1 where all point the same way, about 1/sqrt(n) for a mean of n unrelated ones. Updates of length
// zero, and those that are not finite, have no direction and are left out; if none has a direction, or the combined
// update has none, ok is false.
func Agreement(updates [][]*tensor.Tensor, combined []*tensor.Tensor) (mean float64, ok bool) {
	cc := dot(combined, combined)
	if !(cc > 0 && cc <= math.MaxFloat64) {
		return 0, false
	}
	sum, n := 0.0, 0
	for _, u := range updates {
		if uu := dot(u, u); uu > 0 && uu <= math.MaxFloat64 {
			sum, n = sum+dot(u, combined)/(math.Sqrt(uu)*math.Sqrt(cc)), n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// PPM returns both in parts per million: the distance rounded up and at most the largest number, the cosine rounded
// down and at least zero.
func (l Similarity) PPM() (distance, cosine uint32) {
	return uint32(min(math.Ceil(l.Distance*1e6), math.MaxUint32)), uint32(max(math.Floor(l.Cosine*1e6), 0))
}

// Losses are mean losses before and after an update alone is applied to the checkpoint it starts from.
type Losses struct {
	Assigned [2]float64 // on data of the unit
	Held     [2]float64 // on held-out data; zeros if there is none
}

func fall(v [2]float64) float64 { return (v[0] - v[1]) / v[0] }

// Progress judges the effect of the updates of one round on losses: each by itself, and, where the median update
// clearly lowers the loss, relative to the median. The flags are in the order of the updates.
func Progress(list []Losses, l Limits) [][]Flag {
	flags, falls := make([][]Flag, len(list)), make([]float64, len(list))
	for i, x := range list {
		flags[i] = Loss(x, l)
		if falls[i] = fall(x.Held); x.Held == [2]float64{} {
			falls[i] = fall(x.Assigned)
		}
		falls[i] /= l.expected(i)
	}
	sorted := slices.Sorted(slices.Values(falls))
	if len(list) < l.Few || !(sorted[len(sorted)/2] > l.Loss) {
		return flags
	}
	for i, f := range falls {
		if !(f*l.Norm >= sorted[len(sorted)/2]) && !slices.Contains(flags[i], NoProgress) {
			flags[i] = append(flags[i], NoProgress)
		}
	}
	return flags
}

// Loss judges the effect of one update on losses. A loss that is not finite sets all flags that depend on it.
func Loss(x Losses, l Limits) (flags []Flag) {
	assigned, held := fall(x.Assigned), fall(x.Held)
	if !(assigned > 0) {
		flags = append(flags, NoProgress)
	}
	if x.Held == [2]float64{} {
		return flags
	}
	if !(held >= -l.Loss) {
		flags = append(flags, Harm)
	}
	if !(assigned >= held-l.Loss) {
		flags = append(flags, OtherData)
	}
	return flags
}
