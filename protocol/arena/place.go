package arena

import (
	"cmp"
	"math/bits"
	"slices"
)

// Curve is how the prize is shared among places.
type Curve uint8

// Curves. The first is the default.
const (
	Linear  Curve = iota // the parts of K places are as K, K-1 and so on to 1
	Winner               // the first place has all
	Softmax              // parts fall with the mean loss, to 1/e for each width
)

var curves = []string{"linear", "winner", "softmax"}

// String is the name of a curve.
func (c Curve) String() string {
	if int(c) >= len(curves) {
		return "unknown"
	}
	return curves[c]
}

// ParseCurve reads the name of a curve.
func ParseCurve(name string) (Curve, bool) {
	i := slices.Index(curves, name)
	return Curve(max(i, 0)), i >= 0
}

// order puts entries in the order of their means, and those with the same in the order of their commitments.
func order(list []Ranked) {
	slices.SortFunc(list, func(a, b Ranked) int {
		return cmp.Or(cmp.Compare(a.Mean, b.Mean), cmp.Compare(a.Number, b.Number))
	})
}

// Place gives the groups of a report: of the placed entries in the order of their means, each begins a new group that
// the first one of the group before beats in a duel. better reports whether one entry beats another, by their numbers.
func (c Contest) Place(r Report, better func(a, b uint32) (bool, error)) (Report, error) {
	var list []Ranked
	r.Entries = slices.Clone(r.Entries)
	for i, j := range r.Entries {
		if r.Entries[i].Group = 0; j.Status == Placed && !c.TooLarge(j.Mean) {
			list = append(list, Ranked{uint32(i + 1), j})
		}
	}
	order(list)
	group, first := uint32(1), uint32(0)
	for i, e := range list {
		if i == 0 {
			first = e.Number
		} else if beats, err := better(first, e.Number); err != nil {
			return r, err
		} else if beats {
			group++
			first = e.Number
		}
		r.Entries[e.Number-1].Group = group
	}
	return r, nil
}

// Shares divides a prize among ranked entries. The places of a group are shared equally by its entries; what divisions
// leave is for the first entry. The sum is the prize, unless there is no entry.
func (t Terms) Shares(prize uint64, list []Ranked) []uint64 {
	if len(list) == 0 {
		return nil
	}
	shares, weights, total := make([]uint64, len(list)), make([]uint64, len(list)), uint64(0)
	best := list[0].Mean
	for i := range min(len(list), int(t.Places)) {
		switch t.Curve {
		case Softmax:
			leader := slices.IndexFunc(list, func(r Ranked) bool { return r.Group == list[i].Group })
			weights[i] = expNeg(ratio(list[leader].Mean-best, t.Width))
		case Linear, Winner:
			weights[i] = uint64(t.Places) - uint64(i)
		}
		total += weights[i]
	}
	left := prize
	for from := 0; from < len(list); {
		to, weight := from, uint64(0)
		for ; to < len(list) && list[to].Group == list[from].Group; to++ {
			weight += weights[to]
		}
		high, low := bits.Mul64(prize, weight)
		part, _ := bits.Div64(high, low, total*uint64(to-from))
		for ; from < to; from++ {
			shares[from] = part
			left -= part
		}
	}
	shares[0] += left
	return shares
}

// ln2 is the natural logarithm of 2 in units of 2^-32.
const ln2 = 2977044472

// ratio of a difference of losses, in units of losses, to a width in millionths of a nat, in units of 2^-32.
func ratio(difference uint64, width uint32) uint64 {
	const most = 40 << 32 // e^-40 is no unit
	high, low := bits.Mul64(difference, million<<12)
	if high >= uint64(width) {
		return most
	}
	n, _ := bits.Div64(high, low, uint64(width))
	return min(n, most)
}

// expNeg is e^-x for x in units of 2^-32, in units of 2^-32, by the series of the rest after the powers of two.
func expNeg(x uint64) uint64 {
	const one = 1 << 32
	halvings, rest := x/ln2, x%ln2
	sum := uint64(one)
	for n := uint64(14); n > 0; n-- {
		sum = one - rest*sum>>32/n
	}
	return sum >> min(halvings, 63)
}
