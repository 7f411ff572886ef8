package crew

import (
	"math/bits"
	"slices"
)

// MostSay reports whether the members in reports have more than half of the weight of the active members, without the
// worker and the other accounts of its owner.
func (c Crew) MostSay(worker string, reports []string) bool {
	return MostSayOf(c, []string{worker}, reports)
}

// MostSayOf is MostSay of several workers, none of which counts.
func MostSayOf(c Crew, workers, reports []string) bool {
	if len(reports) == 0 {
		return false
	}
	other := func(m Member) bool {
		return !slices.ContainsFunc(workers, func(id string) bool {
			w, _ := c.Member(id)
			return m.ID == id || m.OwnerID() == w.OwnerID()
		})
	}
	said := c.weigh(func(m Member) bool { return other(m) && slices.Contains(reports, m.ID) })
	return Above(said, 2, c.weigh(other), 1)
}

// Where members decide, votes are weighted by stake: many accounts cost nothing. All seats of one owner weigh as much
// as the one with the largest stake, so splitting an account gives no more weight. A member that earns its stake has
// the weight of its pay so far. In a run whose stakes are all unknown each owner weighs the same.

// weigh sums the weight of the active members for which meant is true.
func (c Crew) weigh(meant func(Member) bool) uint64 {
	return c.WeighOf(func(m Member) bool { return m.Active }, meant)
}

// WeighOf sums the weight of the members for which counts and meant are true.
func (c Crew) WeighOf(counts, meant func(Member) bool) uint64 {
	staked := false
	for _, m := range c.Members {
		staked = staked || counts(m) && (m.Stake > 0 || m.Earning)
	}
	best := make(map[string]uint64)
	for _, m := range c.Members {
		if !counts(m) || !meant(m) {
			continue
		}
		weight := uint64(1)
		if staked {
			weight = m.Stake
		}
		best[m.OwnerID()] = max(best[m.OwnerID()], weight)
	}
	var sum uint64
	for _, weight := range best {
		var carry uint64
		sum, carry = bits.Add64(sum, weight, 0)
		sum |= -carry // more than there are coins
	}
	return sum
}

// Weighs is the weight of some members, and that of all.
func (c Crew) Weighs(ids map[string]bool) (some, all uint64) {
	return c.weigh(func(m Member) bool { return ids[m.ID] }), c.weigh(func(Member) bool { return true })
}

// Quorate reports whether members have more than two thirds of the weight of all.
func (c Crew) Quorate(ids map[string]bool) bool { return c.Exceeds(ids, 2, 3) }

// Exceeds reports whether members have more than a fraction of the weight of all.
func (c Crew) Exceeds(ids map[string]bool, part, whole uint64) bool {
	some, all := c.Weighs(ids)
	return Above(some, whole, all, part)
}

// Above reports whether a*b > c*d.
func Above(a, b, c, d uint64) bool {
	left, low := bits.Mul64(a, b)
	right, least := bits.Mul64(c, d)
	return left > right || left == right && low > least
}
