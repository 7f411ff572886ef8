package assignment

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// plan says when workers would have committed units, where some units draw and others learn. Times are in 1/256 block
// from the height of the draft.
type plan struct {
	*Assignment
	busy  map[string]uint64           // until a worker has committed the units that it has
	held  map[string]transition.Kinds // kinds of these
	usual pace                        // of the workers for which one time is measured
	both  pace                        // of those for which both are
	rated map[string]pace             // times of workers for which none is, by their rates
}

// pace is the mean time of units that learn, and of units that draw; 0: not measured.
type pace struct{ learn, draw uint64 }

// paces are the means of the members.
func paces(members []crew.Member) (usual, both pace) {
	mean := func(time func(m crew.Member) uint32) uint64 {
		var sum, n uint64
		for _, m := range members {
			if t := time(m); m.Active && m.Role == crew.Worker && t > 0 {
				sum, n = sum+uint64(t), n+1
			}
		}
		return sum / max(n, 1)
	}
	usual.learn = mean(func(m crew.Member) uint32 { return m.Speed })
	usual.draw = mean(func(m crew.Member) uint32 { return m.DrawSpeed })
	both.learn = mean(func(m crew.Member) uint32 { return m.Speed * min(m.DrawSpeed, 1) })
	both.draw = mean(func(m crew.Member) uint32 { return m.DrawSpeed * min(m.Speed, 1) })
	return usual, both
}

// idle is the plan of workers without units.
func idle(d *Assignment) *plan {
	p := &plan{Assignment: d, busy: map[string]uint64{}}
	p.usual, p.both = paces(d.Members)
	if d.Rules >= progress.RatesCount {
		p.rated = byRate(d, p.usual)
	}
	return p
}

// byRate are the times of workers by their rates, of the kinds of units that are measured in others, or of both kinds
// while none is measured in any.
func byRate(d *Assignment, usual pace) map[string]pace {
	workers := d.Active(crew.Worker)
	learn, draw := make([]uint32, len(workers)), make([]uint32, len(workers))
	rates := make([]uint64, len(workers))
	for i, id := range workers {
		m, _ := d.Member(id)
		learn[i], draw[i], rates[i] = m.Speed, m.DrawSpeed, m.Rate
	}
	learn, draw = schedule.ByRate(learn, rates), schedule.ByRate(draw, rates)
	rated := map[string]pace{}
	for i, id := range workers {
		switch {
		case usual.learn == 0 && usual.draw == 0:
			rated[id] = pace{uint64(learn[i]), inProportion(uint64(learn[i]), d.Terms.Rollout.Flops, d.Terms.UnitFlops)}
		case usual.learn == 0:
			rated[id] = pace{draw: uint64(draw[i])}
		case usual.draw == 0:
			rated[id] = pace{learn: uint64(learn[i])}
		default:
			rated[id] = pace{uint64(learn[i]), uint64(draw[i])}
		}
	}
	return rated
}

// inProportion is time * num / den, at least 1 unless time is 0, and at most the longest deadline.
func inProportion(time, num, den uint64) uint64 {
	high, low := bits.Mul64(time, num)
	if time == 0 || high >= den {
		return min(time, 1) * (terms.MaxBlocks << 8)
	}
	whole, _ := bits.Div64(high, low, den)
	return min(max(whole, 1), terms.MaxBlocks<<8)
}

// plan begins with the units that workers have, and assumes that each has computed since it got the first of them.
func (d *Assignment) plan() *plan {
	p := idle(d)
	p.held = transition.Holds(d.Draft, "")
	since := map[string]int64{}
	for _, l := range d.Rounds() {
		for _, u := range l.Units {
			if u.Status != work.Assigned || u.Worker == "" {
				continue
			}
			if begun, has := since[u.Worker]; !has || u.AssignedAt < begun {
				since[u.Worker] = u.AssignedAt
			}
			m, _ := d.Member(u.Worker)
			p.busy[u.Worker] += p.takes(m, u.Draws)
		}
	}
	for id, begun := range since {
		p.busy[id] -= min(p.busy[id], uint64(max(0, d.Env.Height-begun))<<8)
	}
	return p
}

// takes is the time of a member for a unit of a kind. If it is not measured, it follows from that for the other kind,
// as both relate in other workers, or in floating-point operations before both are measured in any. Without either it
// is what the rate of the member says, or else the usual one. A member that is late with its units counts as slower at
// those that learn, for which the round waits.
func (p *plan) takes(m crew.Member, draws bool) uint64 {
	own, other, usual := uint64(m.Speed), uint64(m.DrawSpeed), cmp.Or(p.rated[m.ID].learn, p.usual.learn)
	num, den := p.both.learn, p.both.draw
	if den == 0 {
		num, den = p.Terms.UnitFlops, p.Terms.Rollout.Flops
	}
	if draws {
		own, other, usual, num, den = other, own, cmp.Or(p.rated[m.ID].draw, p.usual.draw), den, num
	}
	time := own
	switch {
	case own > 0:
	case other > 0:
		time = inProportion(other, num, den)
	default:
		time = max(usual, 1)
	}
	if !draws {
		time <<= min(m.Missed, 4)
	}
	return time
}

// deal deals n units, of which the first has a number, in order: each to the worker that would commit it first, in a
// tie to the first of the workers. In the first rounds of a run those are tried first whose speed at units that learn
// is not known. Generators get no unit that learns.
func (p *plan) deal(workers []string, first, n uint32, give func(unit int, id string)) {
	draws := p.Terms.IsDrawing(first)
	if !draws {
		workers = slices.DeleteFunc(slices.Clone(workers), func(id string) bool {
			m, _ := p.Member(id)
			return m.Generates
		})
	}
	tries := !draws && p.Round < p.Terms.Rounds/trialPart
	times, tried := make([]uint64, len(workers)), make([]bool, len(workers))
	for i, id := range workers {
		m, _ := p.Member(id)
		times[i], tried[i] = p.takes(m, draws), !tries || m.Speed > 0
	}
	for unit := first; unit < first+n; unit++ {
		best := 0
		for i, id := range workers {
			a, b := p.busy[id]+times[i], p.busy[workers[best]]+times[best]
			if tried[best] && !tried[i] || tried[best] == tried[i] && a < b {
				best = i
			}
		}
		id := workers[best]
		p.busy[id] += times[best]
		tried[best] = true
		give(int(unit), id)
	}
}

// fastest are the workers that take the least time for a unit of a kind.
func (p *plan) fastest(workers []string, draws bool) (list []string) {
	least := uint64(math.MaxUint64)
	for _, id := range workers {
		m, _ := p.Member(id)
		t := p.takes(m, draws)
		if t < least {
			least, list = t, nil
		}
		if t == least {
			list = append(list, id)
		}
	}
	return list
}

// give gives a unit of the current round to its first worker.
func (p *plan) give(unit int, id string) {
	u := p.Unit(&p.RoundState, unit)
	k := p.held[id]
	k.Learns, k.Draws = k.Learns || !u.Draws, k.Draws || u.Draws
	p.held[id] = k
	u.Status, u.Worker, u.AssignedAt = work.Assigned, id, p.Env.Height
	u.Deadline = transition.OwedHolding(p.Draft, id, u.Index, p.Env.Height, k)
	p.Emit(event.Event{Kind: event.UnitAssigned, Round: p.Round, Unit: u.Index, Who: id})
}
