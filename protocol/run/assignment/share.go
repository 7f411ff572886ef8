package assignment

import (
	"cmp"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/schedule"
)

// rare is the part of a unit of a round below which a measured worker that gets none counts as twice as fast the next
// time: an eighth. So a worker that was measured while it was slow is measured again in some rounds.
const rare = schedule.OneUnit / 8

// shares splits the units of a round over workers, by schedule.ShareBySpeed, and returns how many each gets. Workers
// without a measured speed come first: each gets the part that its rate says (expected), or else that of the mean of
// the others, and a unit at least, which measures it. They are owed nothing.
func shares(d *Assignment, workers []string) []uint32 {
	blocks, owed := make([]uint32, len(workers)), make([]int32, len(workers))
	var known []int // measured workers, by their number
	byRate := expected(d, workers)
	usual := mean(byRate)
	for i, id := range workers {
		m, _ := d.Member(id)
		if blocks[i], owed[i] = cmp.Or(byRate[i], usual), m.Owed; m.Speed > 0 {
			known = append(known, i)
		}
	}
	all := schedule.SplitBySpeed(d.Terms.Units, blocks)
	if len(known) == 0 {
		return all
	}
	left, next := d.Terms.Units, 0
	for i := range workers {
		if next < len(known) && known[next] == i {
			next++
			continue
		}
		all[i] = min(max(all[i], 1), left)
		left -= all[i]
	}
	paces, before := make([]uint32, len(known)), make([]int32, len(known))
	for k, i := range known {
		paces[k], before[k] = blocks[i], owed[i]
	}
	due := schedule.ShareBySpeed(left, paces, before)
	for k, i := range known {
		all[i] = due.Shares[k]
		d.Change(workers[i], func(m *crew.Member) {
			m.Owed = due.Owed[k]
			if left > 0 && all[i] == 0 && due.Exact[k] < rare {
				m.Speed = max(1, m.Speed/2)
			}
		})
	}
	return all
}

// expected is the time that each worker takes for a whole unit: the measured one, or else what its rate says; 0 if
// neither is known.
func expected(d *Assignment, workers []string) []uint32 {
	blocks, rates := make([]uint32, len(workers)), make([]uint64, len(workers))
	for i, id := range workers {
		m, _ := d.Member(id)
		blocks[i], rates[i] = m.Speed, m.Rate
	}
	if d.Rules < progress.RatesCount {
		return blocks
	}
	return schedule.ByRate(blocks, rates)
}

// mean is the mean of the times that are known, or an arbitrary time if none is.
func mean(blocks []uint32) uint32 {
	var sum, known uint64
	for _, b := range blocks {
		if b > 0 {
			sum, known = sum+uint64(b), known+1
		}
	}
	if known == 0 {
		return 1
	}
	return uint32(sum / known)
}
