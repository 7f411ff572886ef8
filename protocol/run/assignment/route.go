package assignment

import (
	"cmp"
	"math"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// The stages of a replica end at the same time, so how long a worker took for one says nothing about its own speed. But
// over all replicas those of a slow worker end later than others. So the rate of each worker, at first the one that the
// registry has measured, is corrected from round to round by how late its replicas were.

const (
	// usualRate stands for the rate of a worker, where none is measured.
	usualRate = 1 << 40
	// leastRate and mostRate bound what a rate becomes.
	leastRate, mostRate = 1 << 10, 1 << 60
	// idleRate is the part of its rate by which a worker counts as faster after a round without a unit, so that it is
	// eventually measured again.
	idleRate = 8
)

// learnRates corrects the rates of workers by the round before.
func learnRates(d *Assignment, workers []string) {
	var known []uint64
	for _, id := range workers {
		if m, _ := d.Member(id); m.Rate > 0 {
			known = append(known, m.Rate)
		}
	}
	usual := uint64(usualRate)
	if slices.Sort(known); len(known) > 0 {
		usual = known[(len(known)-1)/2]
	}
	took, all := tookBefore(d)
	for _, id := range workers {
		d.Change(id, func(m *crew.Member) {
			rate := min(max(m.Rate, leastRate), mostRate)
			if m.Rate == 0 {
				rate = min(max(usual, leastRate), mostRate)
			}
			switch own := took[id]; {
			case all.units == 0:
			case own.units == 0:
				rate += rate / idleRate
			default:
				rate = schedule.Corrected(rate, own.mean(), all.mean())
			}
			m.Rate = min(max(rate, leastRate), mostRate)
		})
	}
}

// times are those of some units, in blocks.
type times struct{ units, blocks uint64 }

// mean is in 1/256 block.
func (t times) mean() uint64 { return t.blocks << 8 / max(t.units, 1) }

// tookBefore are the times of the units of the round before, by worker and of all, but for those of replicas that began
// again.
func tookBefore(d *Assignment) (by map[string]times, all times) {
	by = map[string]times{}
	if d.Round == 0 {
		return by, all
	}
	before, ok := d.At(d.Round - 1)
	if !ok || len(before.Units) == 0 {
		return by, all
	}
	first := slices.MinFunc(before.Units, func(a, b *work.Unit) int { return cmp.Compare(a.Attempt, b.Attempt) }).Attempt
	for _, u := range before.Units {
		if u.Took <= 0 || u.Attempt > first {
			continue
		}
		t, blocks := by[u.Worker], uint64(u.Took)
		by[u.Worker] = times{t.units + 1, t.blocks + blocks}
		all = times{all.units + 1, all.blocks + blocks}
	}
	return by, all
}

// stageTimes are the times that workers take for the same work, in proportion to each other, by their rates, of which
// at most schedule.ByRate counts. A worker that missed deadlines counts as slower by half for each.
func stageTimes(d *Assignment, workers []string) []uint32 {
	rates := make([]uint64, len(workers))
	for i, id := range workers {
		m, _ := d.Member(id)
		rates[i] = m.Rate
	}
	list := schedule.ByRate(make([]uint32, len(workers)), rates)
	for i, id := range workers {
		m, _ := d.Member(id)
		list[i] = min(max(list[i], 1), terms.MaxBlocks<<8-1) << min(m.Missed, 4)
	}
	return list
}

// soonest are the workers of a pool that would end a unit first, with the units of the round that they have.
func soonest(d *Assignment, pool []string, unit uint32) (first []string) {
	loads, costs, n := map[string]uint64{}, schedule.StageCosts(d.Terms.Pipeline.Flops), d.Terms.Pipeline.Stages()
	for _, u := range d.Units {
		if u.Status == work.Assigned && u.Index != unit {
			loads[u.Worker] += costs[u.Index%n]
		}
	}
	times, best := stageTimes(d, pool), uint64(math.MaxUint64)
	for i, id := range pool {
		ends := (loads[id] + costs[unit%n]) * uint64(times[i])
		if ends < best {
			best, first = ends, nil
		}
		if ends == best {
			first = append(first, id)
		}
	}
	return first
}
