package aggregator

import (
	"slices"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// slices returns the actions that the slices of the round need of this member: for slices that it owes, and for
// updates that another member cannot fetch.
func (g *Aggregator) slices(s run.State) (actions []role.Action) {
	for i := range s.Slices {
		part := role.Part{Round: s.Round, Closed: s.Closed, Slice: uint32(i)}
		cid, done := g.reduced[part]
		owed := s.Owes(g.id, i)
		switch {
		case owed == progress.OwesNothing:
		case !done:
			actions = append(actions, role.Reduce{Part: part, Base: s.Base, Units: s.Units})
		case owed == progress.OwesSeal:
			actions = append(actions, role.SealSlice{Part: part, Seal: s.SliceSeal(g.id, part.Slice, cid)})
		default:
			actions = append(actions, role.ShowSlice{Part: part, CID: cid})
		}
	}
	if !s.Terms.Sliced() || s.Phase == progress.Train {
		return actions
	}
	for _, u := range s.Units {
		id := u.ID(s.Round)
		if len(u.Missing) > 0 && u.Worker != g.id && !slices.Contains(u.Missing, g.id) && !g.probed[id] {
			actions = append(actions, role.Probe{Work: id, Base: s.Base, Unit: *u})
		}
	}
	return actions
}

// missed are answers, data of a round that the consumer leads, or values that a stage has received, which another
// member cannot fetch, and this one may report, too.
func (g *Aggregator) missed(s run.State) (actions []role.Action) {
	for _, l := range s.Rounds() {
		for _, u := range l.Units {
			id := u.ID(l.Round)
			if l.Round == s.Round && len(u.NoData) > 0 && u.Status != work.Disputed && u.Worker != g.id &&
				!slices.Contains(u.NoData, g.id) && !g.probed[id] {
				actions = append(actions, role.Probe{Work: id, Base: l.Base, Unit: *u, Data: true})
			}
			if len(s.Terms.Pipeline.Flops) > 0 && u.Status == work.Auditing && u.Lost > 0 && u.Worker != g.id &&
				u.Verifier != g.id && !slices.Contains(u.Missing, g.id) && !g.probed[id] {
				actions = append(actions, role.Probe{Work: id, Base: l.Base, Unit: *u})
			}
			if u.Draws && len(u.Missing) > 0 && !u.Withheld && u.Worker != g.id && !slices.Contains(u.Missing, g.id) &&
				!g.probed[id] {
				actions = append(actions, role.Probe{Work: id, Base: l.Base, Unit: *u})
			}
		}
	}
	return actions
}

// forgetSlices drops what is about other rounds, or about updates that no longer count.
func (g *Aggregator) forgetSlices(s run.State) {
	for p := range g.reduced {
		if p.Round != s.Round || p.Closed != s.Closed {
			delete(g.reduced, p)
		}
	}
	for w := range g.probed {
		if w.Round < s.Oldest() {
			delete(g.probed, w)
		}
	}
}
