// Package aggregator is the duty that every member shares: hold the checkpoint that the round starts from, combine the
// committed updates into the next one, attest it. With few workers every member does all of it for itself, which is
// what makes the attested lineage more than one party's word. In a run with slices a member computes those that are
// drawn for it, and puts the next checkpoint together from all.
package aggregator

import (
	"maps"
	"slices"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// Aggregator follows one run for one member.
type Aggregator struct {
	id       string
	height   int64
	run      run.State // after the latest block
	paused   bool
	pending  role.Pending
	held     map[terms.Checkpoint]bool   // checkpoints in memory
	combined map[string]terms.Checkpoint // results, by the key of their Advance
	results  map[string]terms.Checkpoint // the same, for as long as their round is open
	odd      map[work.UnitID]bool        // units whose update is odd
	reduced  map[role.Part]string        // CIDs of the slices that it computed
	probed   map[work.UnitID]bool        // units of which it has what another misses
}

// New returns the aggregator of the member with this ID.
func New(id string) *Aggregator {
	return &Aggregator{
		id: id, held: map[terms.Checkpoint]bool{}, combined: map[string]terms.Checkpoint{},
		results: map[string]terms.Checkpoint{},
		odd:     map[work.UnitID]bool{},
		reduced: map[role.Part]string{}, probed: map[work.UnitID]bool{},
	}
}

// Holds reports whether a checkpoint is in memory.
func (g *Aggregator) Holds(c terms.Checkpoint) bool { return g.held[c] }

// Note takes in an event.
func (g *Aggregator) Note(e role.Event) {
	switch e := e.(type) {
	case role.Block:
		g.height, g.run = e.Height, e.Run
		g.forget(e.Run.Base)
		maps.DeleteFunc(g.results, func(_ string, c terms.Checkpoint) bool { return c.Round <= e.Run.Oldest() })
		for w := range g.odd {
			if w.Round < e.Run.Oldest() {
				delete(g.odd, w)
			}
		}
		g.forgetSlices(e.Run)
	case role.Loaded:
		g.pending.Done(e.Action)
		g.held[e.Action.Checkpoint] = !g.paused
	case role.Advanced:
		g.pending.Done(e.Action)
		g.held[e.Next] = !g.paused
		of := e.Action
		of.Executes = false
		g.combined[of.Key()], g.results[of.Key()] = e.Next, e.Next
		for _, i := range e.Odd {
			g.odd[e.Action.Work(int(i))] = true
		}
	case role.Trained:
		g.pending.Done(e.Action)
	case role.Misled:
		g.pending.Done(e.Action)
	case role.Checked:
		g.pending.Done(e.Action)
	case role.Measured:
		g.pending.Done(e.Action)
	case role.Reduced:
		g.pending.Done(e.Action)
		g.reduced[e.Action.Part] = e.CID
	case role.Finished:
		g.pending.Settle(e.Action, g.height)
		if a, ok := e.Action.(role.Probe); ok {
			g.probed[a.Work] = true
		}
	case role.Failed:
		if g.yields(e.Action) { // it was set aside
			g.pending.Done(e.Action)
			return
		}
		g.pending.Rest(e.Action, g.height)
	case role.Pause: // a paused process gives the memory of checkpoints back
		g.paused = true
		clear(g.held)
	case role.Resume:
		g.paused = false
	}
}

// forget drops what is older than the base of the current round.
func (g *Aggregator) forget(base terms.Checkpoint) {
	for c := range g.held {
		if c.Round < base.Round {
			delete(g.held, c)
		}
	}
	for k, c := range g.combined {
		if c.Round <= base.Round {
			delete(g.combined, k)
		}
	}
}

// Stop returns orders to stop what is under way and of no use in this state of the run.
func (g *Aggregator) Stop(s run.State) []role.Action { return g.pending.Stop(s, g.id) }

// SetAside returns orders to stop what is under way and yields to the pause of the member.
func (g *Aggregator) SetAside() []role.Action { return g.pending.SetAside(g.yields) }

// yields reports whether the member is paused, and an action waits until that is over.
func (g *Aggregator) yields(a role.Action) bool { return g.paused && role.Yields(&g.run, g.id, a) }

// Want passes on the actions that are not under way already, and do not wait until a pause is over.
func (g *Aggregator) Want(actions ...role.Action) []role.Action {
	actions = slices.DeleteFunc(actions, g.yields)
	return g.pending.Want(g.height, actions...)
}

// Rests reports whether an action failed so lately that Want leaves it out.
func (g *Aggregator) Rests(a role.Action) bool { return g.pending.Rests(g.height, a) }

// Duties returns the duties of a member for the lineage in this state of the run.
func (g *Aggregator) Duties(s run.State) []role.Action {
	if s.Phase == progress.Done || s.Phase == progress.Halted {
		return nil
	}
	refutation := g.refutation(s)
	if t, ok := s.Probation(g.id); ok && !t.Seal.IsZero() && !g.held[s.Base] { // it will need this when it counts
		return []role.Action{role.Load{Checkpoint: s.Base}}
	}
	if m, ok := s.Member(g.id); !ok || !m.Active {
		return refutation
	}
	actions, holding := g.suspects(s)
	actions = append(append(refutation, actions...), g.missed(s)...)
	if !g.held[s.Base] {
		return append(actions, role.Load{Checkpoint: s.Base})
	}
	actions = append(actions, g.slices(s)...)
	if s.Voted(g.id) || !s.Combines() {
		return actions
	}
	advance := role.Advance{Base: s.Base, Units: s.Sent(), Closed: s.Closed, Slices: s.Slices, Data: s.Terms.Led > 0}
	if s.Terms.Overlap {
		advance.Rounds = s.Terms.Applied(s.Round)
	}
	next, ok := g.combined[advance.Key()]
	switch {
	case !ok:
		return append(actions, advance)
	case holding || !s.Attestable():
		return actions
	}
	return append(actions, role.Attest{Next: next, Updates: role.Updates(advance.Units)})
}

// refutation refutes the first checkpoint that can be refuted: one that follows a round whose updates this member has
// combined to another one. A member that was excluded because its vote disagreed sends it as well.
func (g *Aggregator) refutation(s run.State) []role.Action {
	if s.Terms.Sliced() || s.Terms.Overlap {
		return nil
	}
	rounds := s.Rounds()
	for i, l := range s.Open {
		next := rounds[i+1].Base
		if !g.mayDiffer(next) {
			continue
		}
		if own := g.result(l); own != (terms.Checkpoint{}) && own.Root != next.Root {
			return []role.Action{role.Refute{Wrong: next, Base: l.Base, Units: l.Units.Learning()}}
		}
	}
	return nil
}

// mayDiffer reports whether some result for the round of a checkpoint is another one. It spares the key of all updates
// of a round, which result makes.
func (g *Aggregator) mayDiffer(c terms.Checkpoint) bool {
	for _, own := range g.results {
		if own.Round == c.Round && own.Root != c.Root {
			return true
		}
	}
	return false
}

// result is the checkpoint that this member has combined the updates of an attested round to; the zero value: none.
func (g *Aggregator) result(l work.RoundState) terms.Checkpoint {
	return g.results[role.Advance{Base: l.Base, Units: l.Units.Learning()}.Key()]
}

// Combined reports whether this member has combined the updates of an attested round.
func (g *Aggregator) Combined(l work.RoundState) bool { return g.result(l) != terms.Checkpoint{} }

// suspects reports the odd updates whose units may still go without an audit, and those that may be withheld: they hold
// the attestation up until they are reported.
func (g *Aggregator) suspects(s run.State) (actions []role.Action, holding bool) {
	if len(g.odd) == 0 {
		return nil, false
	}
	for _, l := range s.Rounds() {
		for _, u := range l.Units {
			id := u.ID(l.Round)
			tolerant := s.Tolerant(*u)
			reports := s.Terms.AuditPPM > 0 && u.Status != work.Assigned && !u.Audited
			if tolerant {
				reports = l.Round == s.Round && s.Phase == progress.Attest
			}
			if reports && g.odd[id] && u.Worker != g.id && !slices.Contains(u.OutlierFlags, g.id) {
				actions = append(actions, role.Suspect{Work: id})
				holding = holding || tolerant
			}
		}
	}
	return actions, holding
}
