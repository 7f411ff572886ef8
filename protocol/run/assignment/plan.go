package assignment

import (
	"math"
	"math/bits"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
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
	learn uint32                      // usual time of a unit that learns, of workers for which both are measured
	draw  uint32                      // and of one that draws
}

// plan begins with the units that workers have, and assumes that each has computed since it got the first of them.
func (d *Assignment) plan() *plan {
	p := &plan{Assignment: d, busy: map[string]uint64{}, held: transition.Holds(d.Draft, "")}
	var learn, draw, n uint64
	for _, m := range d.Members {
		if m.Active && m.Speed > 0 && m.DrawSpeed > 0 {
			learn, draw, n = learn+uint64(m.Speed), draw+uint64(m.DrawSpeed), n+1
		}
	}
	if n > 0 {
		p.learn, p.draw = uint32(learn/n), uint32(draw/n)
	}
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
// as both relate in other workers, or in floating-point operations before any is measured. A member that is late with
// its units counts as slower.
func (p *plan) takes(m crew.Member, draws bool) uint64 {
	own, other, usual, per := m.Speed, m.DrawSpeed, p.learn, p.draw
	operations, ofOther := p.Terms.UnitFlops, p.Terms.Rollout.Flops
	if draws {
		own, other, usual, per = other, own, per, usual
		operations, ofOther = ofOther, operations
	}
	time := uint64(own)
	if own == 0 {
		if usual > 0 {
			operations, ofOther = uint64(usual), uint64(per)
		}
		if other == 0 {
			other = max(per, 1)
		}
		time = terms.MaxBlocks << 8
		if high, low := bits.Mul64(uint64(other), operations); high < ofOther {
			whole, _ := bits.Div64(high, low, ofOther)
			time = min(time, max(whole, 1))
		}
	}
	return time << min(m.Missed, 4)
}

// deal deals n units, of which the first has a number, in order: each to the worker that would commit it first, in a
// tie to the first of the workers. In the first rounds of a run those are tried first whose speed at units that learn
// is not known.
func (p *plan) deal(workers []string, first, n uint32, give func(unit int, id string)) {
	draws := p.Terms.IsDrawing(first)
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
