// Package verifier is the role that re-executes units: it answers the audits drawn for it, with a seal that only a
// holder of the state can make, and opens a dispute when the work of a unit is not what its worker committed to. A
// proactive one uses its spare time for units that no audit drew, which pays only if it finds a fault.
//
// A verifier does not vote in consensus; that is a validator.
package verifier

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/aggregator"
	"github.com/starling-network/starling/role/membership"
)

// Verifier is one verifier in one run.
type Verifier struct {
	id       string
	watches  bool
	drawn    bool         // it executes what it was drawn for, and nothing else: the rest is encrypted for others
	seed     canon.Digest // a secret: the order in which it watches follows from it, and what its reports are sealed under
	spare    *role.Check  // what it watches at the moment; nil: nothing
	lineage  *aggregator.Aggregator
	part     *membership.Membership
	checked  map[work.UnitID]role.Checked
	sealed   map[work.UnitID]bool // what was checked and then sealed, so that its state is not held any more
	measured map[work.UnitID]role.Measured
	again    *role.Advance   // the round that it combines again at the moment; nil: none
	doubted  map[uint32]bool // rounds whose units it checks, since it could not combine them again
	run      run.State       // after the latest block
}

// New returns the verifier with this ID, which has a secret.
func New(id string, seed canon.Digest) *Verifier {
	return &Verifier{id: id, seed: seed, lineage: aggregator.New(id), part: membership.New(id),
		checked: map[work.UnitID]role.Checked{}, sealed: map[work.UnitID]bool{}, measured: map[work.UnitID]role.Measured{},
		doubted: map[uint32]bool{}}
}

// NewProactive returns a verifier that also re-executes, one at a time, units that were not drawn for it. The order
// follows from its seed: several verifiers begin with different units, and a worker cannot know which.
func NewProactive(id string, seed canon.Digest) *Verifier {
	v := New(id, seed)
	v.watches = true
	return v
}

// Step takes in an event and returns what to do now.
func (v *Verifier) Step(e role.Event) []role.Action {
	v.lineage.Note(e)
	v.part.Note(e)
	switch e := e.(type) {
	case role.Pause:
		return v.lineage.SetAside()
	case role.Encrypted:
		v.watches, v.drawn = false, true
	case role.Failed:
		v.idle(e.Action)
		v.combined(e.Action, e.Err)
	case role.Checked:
		v.idle(e.Action)
		v.checked[e.Action.Work] = e
		delete(v.sealed, e.Action.Work)
		return v.lineage.Want(v.audits(v.run)...)
	case role.Measured:
		v.measured[e.Action.Work] = e
		return v.lineage.Want(v.measurements(v.run)...)
	case role.Advanced:
		v.combined(e.Action, nil)
		return v.lineage.Want(v.lineage.Duties(v.run)...)
	case role.Reduced:
		return v.lineage.Want(v.lineage.Duties(v.run)...)
	case role.Block:
		v.run = e.Run
		for k := range v.measured {
			if k.Round != e.Run.Round {
				delete(v.measured, k)
			}
		}
		v.forget(e.Run)
		actions := append(v.part.Duties(e, v.busy), v.lineage.Duties(e.Run)...)
		// a verifier without a seat loads the data of each unit by itself
		if v.lineage.Holds(e.Run.Base) || !v.part.Seated(e.Run) || v.part.Paused() {
			actions = append(actions, v.measurements(e.Run)...)
			actions = append(actions, v.audits(e.Run)...)
		}
		actions = append(append(actions, v.openings(e.Run)...), v.combineAgain(e.Run)...)
		return append(v.lineage.Stop(e.Run), v.lineage.Want(append(actions, role.Accusing(e, v.id)...)...)...)
	}
	return nil
}

// forget drops what it knows of units that are gone, and notes which of the others it has sealed.
func (v *Verifier) forget(s run.State) {
	for k := range v.checked {
		if !s.Has(k) {
			delete(v.checked, k)
			delete(v.sealed, k)
		}
	}
	for _, l := range s.All() {
		for _, u := range l.Units {
			if u.Status != work.Sealed || u.Verifier != v.id {
				continue
			}
			id := u.ID(l.Round)
			if _, known := v.checked[id]; known {
				v.sealed[id] = true
			}
		}
	}
}

// busy reports whether it has an audit that it should answer before it leaves: one whose unit is executed, or else the
// one that it is executing.
func (v *Verifier) busy(s run.State) bool {
	return slices.ContainsFunc(s.Audits(v.id), func(d work.AuditTarget) bool {
		id := d.ID()
		_, checked := v.checked[id]
		_, measured := v.measured[id]
		return checked || measured || v.part.Finishing()
	})
}

// mostChecks is how many units a verifier executes at a time, each with a checkpoint in memory: one, while another is
// fetched.
const mostChecks = 2

// audits returns the answers to checked units, and checks of the first that it must check; or, without another check,
// of a unit that it may watch. It seals the units that it has checked before it checks others: a seal must be opened
// soon, and a verdict may require checks of all units of a worker in many rounds.
func (v *Verifier) audits(s run.State) (actions []role.Action) {
	if !v.part.Seated(s) && !s.Guest(v.id) && !(v.watches && v.part.Outside(s)) && !v.answers(s) &&
		len(v.doubted) == 0 {
		return nil
	}
	var spare []role.Check
	busy, checks := false, 0
	for _, l := range s.All() {
		for _, u := range l.Units {
			id := u.ID(l.Round)
			mine := u.Status == work.Auditing && u.Verifier == v.id
			doubts := u.ProvesReportFalse(v.id) || v.doubted[l.Round] && !u.Draws
			open := role.Challengeable(u)
			c, known := v.checked[id]
			if !known && !mine && !doubts && !v.watches || s.Tolerant(*u) ||
				s.Forfeited(work.AuditTarget{RoundState: l, Unit: *u}) {
				continue
			}
			known = known && c.Of(u)
			check := role.CheckOf(l, u)
			if mine {
				check.Segment = u.Segment
				known = known && c.Action.Segment == u.Segment && !v.sealed[id]
			}
			switch {
			case known && c.Wrong != nil:
				if origin, ok := v.origin(s, *c.Wrong, c.Source); ok {
					actions = append(actions, origin)
					busy = true
				}
			case known && !c.Right:
				if challenge, ok := c.Challenge(u, v.id); ok {
					actions = append(actions, challenge)
				}
			case known && c.Right && mine:
				actions = append(actions, role.Pass{Work: id, Seal: c.Seal})
			case !known && (mine || doubts && open):
				if busy = true; checks < mostChecks && !v.lineage.Rests(check) {
					actions = append(actions, check)
					checks++
				}
			case !known && open && v.watches && !v.lineage.Rests(check) && v.may(s, l, id):
				spare = append(spare, check)
			}
		}
	}
	return append(actions, v.watch(s, spare, busy)...)
}

// origin is the check of the unit of an earlier round whose carried state is in question, unless that is done.
func (v *Verifier) origin(s run.State, round, unit uint32) (role.Action, bool) {
	l, ok := s.At(round)
	if !ok || uint64(unit) >= uint64(len(l.Units)) {
		return nil, false
	}
	check := role.CheckOf(l, l.Units[unit])
	_, checked := v.checked[check.Work]
	return check, !checked
}

// answers reports whether its report about a unit is contradicted by the exact execution.
func (v *Verifier) answers(s run.State) bool {
	return slices.ContainsFunc(s.Rounds(), func(l work.RoundState) bool {
		return slices.ContainsFunc(l.Units, func(u *work.Unit) bool { return u.ProvesReportFalse(v.id) })
	})
}

// measurements returns the answers to its audits of tolerant units: findings, sealed and then shown, and the
// measurements that are missing.
func (v *Verifier) measurements(s run.State) (actions []role.Action) {
	for _, u := range s.Units {
		bind, show := u.OwesReport(v.id), u.OwesFigures(v.id)
		if !bind && !show {
			continue
		}
		id := u.ID(s.Round)
		subject := u.ID(s.Round).Subject(v.id, s.Terms.Job, 0)
		m, known := v.measured[id]
		salt := audit.Salt(v.seed, subject)
		switch f := m.Finding; {
		case !known:
			actions = append(actions, role.Measure{Work: id, Base: s.Base, Worker: u.Worker, Commit: u.Commit})
		case bind:
			outside := !s.Terms.Tolerance.Holds(f.DistancePPM, f.CosinePPM)
			actions = append(actions, role.Report{Work: id, Seal: f.Seal(subject, salt), Outside: outside})
		default:
			actions = append(actions, role.ShowReport{Work: id, Finding: f, Salt: salt})
		}
	}
	return actions
}

// openings opens the seals that are asked for, also when it takes no further part in the run.
func (v *Verifier) openings(s run.State) (actions []role.Action) {
	for _, l := range s.All() {
		for _, u := range l.Units {
			if u.Status == work.Sealed && u.Verifier == v.id && !u.Question.IsZero() {
				id := u.ID(l.Round)
				actions = append(actions, role.Unseal{Work: id, Base: l.Base, Question: u.Question, Segment: u.Segment})
			}
		}
	}
	return actions
}
