// Package worker is the role that trains: it computes the units assigned to it, commits to each before it may see any
// other update of the round, then lets its update be read, and plays the disputes about its work. When an earlier unit
// handed a wrong state on to its own, it challenges that unit.
//
// It confesses a commitment that it finds wrong in time. Other work is judged by package verifier.
package worker

import (
	"cmp"
	"maps"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/aggregator"
	"github.com/starling-network/starling/role/membership"
)

// Worker is one worker in one run.
type Worker struct {
	id       string
	secret   canon.Digest // zero: it plants no faults
	lineage  *aggregator.Aggregator
	part     *membership.Membership
	computed map[work.UnitID]work.Commitment
	revealed map[work.UnitID]bool
	misled   map[work.UnitID]origin // the unit whose carried state for this unit is false
	checked  map[work.UnitID]role.Checked
	run      run.State // after the latest block
}

// origin is a unit of an earlier round whose state another starts from.
type origin struct{ round, unit uint32 }

// New returns the worker with this ID.
func New(id string) *Worker {
	return &Worker{id: id, lineage: aggregator.New(id), part: membership.New(id),
		computed: map[work.UnitID]work.Commitment{}, revealed: map[work.UnitID]bool{},
		misled: map[work.UnitID]origin{}, checked: map[work.UnitID]role.Checked{}}
}

// NewWithPlantedFaults returns the worker with this ID, which plants faults in a few of its commitments to test
// whether its verifiers execute the units. The choice follows from the secret, which it needs again after a restart.
func NewWithPlantedFaults(id string, secret canon.Digest) *Worker {
	w := New(id)
	w.secret = secret
	return w
}

// Step takes in an event and returns what to do now.
func (w *Worker) Step(e role.Event) []role.Action {
	w.lineage.Note(e)
	w.part.Note(e)
	switch e := e.(type) {
	case role.Trained:
		w.computed[e.Action.Work] = e.Commit
		return w.lineage.Want(w.units()...)
	case role.Misled:
		w.misled[e.Action.Work] = origin{e.Round, e.Unit}
		return w.lineage.Want(w.units()...)
	case role.Checked:
		w.checked[e.Action.Work] = e
		if e.Right { // what stands there by now
			maps.DeleteFunc(w.misled, func(_ work.UnitID, o origin) bool {
				return o == origin{e.Action.Work.Round, e.Action.Work.Unit}
			})
		}
		return w.lineage.Want(w.units()...)
	case role.Advanced, role.Reduced:
		return w.lineage.Want(w.lineage.Duties(w.run)...)
	case role.Pause:
		return w.lineage.SetAside()
	case role.Finished:
		if a, ok := e.Action.(role.Reveal); ok {
			w.revealed[a.Work] = true
		}
	case role.Block:
		w.run = e.Run
		w.forget()
		actions := append(w.part.Duties(e, w.busy), w.lineage.Duties(e.Run)...)
		// an excluded worker still answers for its work
		if m, _ := e.Run.Member(w.id); !m.Active || w.lineage.Holds(e.Run.Base) || w.part.Paused() {
			actions = append(actions, w.units()...)
		}
		return append(w.lineage.Stop(e.Run), w.lineage.Want(append(actions, w.disputes(e)...)...)...)
	}
	return nil
}

// busy reports whether it has a unit that it should commit before it leaves: one that is computed, or else the one that
// it is computing.
func (w *Worker) busy(s run.State) bool {
	owes := slices.ContainsFunc(s.Work(w.id), func(u work.Unit) bool {
		_, computed := w.computed[u.ID(s.Round)]
		return computed || w.part.Finishing()
	})
	return owes || w.part.Finishing() && len(s.Drawing(w.id)) > 0
}

// forget drops the results of attempts at units that are settled. In the current round an attempt that it was late
// with may still count.
func (w *Worker) forget() {
	final := func(k work.UnitID) bool {
		return k.Round != w.run.Round && !w.run.Has(k)
	}
	maps.DeleteFunc(w.computed, func(k work.UnitID, _ work.Commitment) bool { return final(k) })
	maps.DeleteFunc(w.revealed, func(k work.UnitID, _ bool) bool { return final(k) })
	maps.DeleteFunc(w.misled, func(k work.UnitID, _ origin) bool { return final(k) })
	maps.DeleteFunc(w.checked, func(k work.UnitID, _ role.Checked) bool { return final(k) })
}

// units returns the next action for each of its units: to train it, to commit it, and, once no commitment of the round
// is missing, to reveal it.
func (w *Worker) units() (actions []role.Action) {
	s := &w.run
	for l := range s.Each {
		for _, u := range l.Units {
			if (l.Round == s.Round || u.Draws) && len(u.PreviousAssignees) > 0 {
				actions = append(actions, w.late(l.Round, u.Index)...)
			}
			if u.Worker != w.id {
				continue
			}
			id := u.ID(l.Round)
			commit, computed := w.computed[id]
			if u.Draws && u.Status != work.Assigned && !w.revealed[id] && (computed || !w.part.Paused()) {
				actions = append(actions, role.Reveal{Work: id, Base: l.Base, CID: u.Commit.HandedState.CID})
			}
			switch {
			case u.Status == work.Assigned && computed:
				actions = append(actions, role.Commit{Work: id, Commit: w.withHiddenRoots(id, commit)})
			case u.Status == work.Assigned:
				if wrong, known := w.misled[id]; known {
					actions = append(actions, w.accuse(wrong)...)
					break
				}
				actions = append(actions, role.Train{Work: id, Base: l.Base})
			case w.doubtful(l.Round, u):
				actions = append(actions, w.recheck(id, l.Base, u)...)
			case w.suspect(id, u) && answered(u) && !computed:
				actions = append(actions, role.Train{Work: id, Base: l.Base})
			case w.suspect(id, u) && answered(u) && !slices.Equal(commit.Segments, u.Commit.Segments):
				actions = append(actions, role.Unmask{Work: id, Nonce: w.nonce(id), Segments: commit.Segments})
			case w.part.Paused() && !computed: // to reveal it, it would have to be trained again
			case (l.Round < s.Round || s.Phase != progress.Train) && !w.revealed[id] && !u.Draws:
				// a stage that diverged has no update, and shows the values that it has exchanged
				if cid := cmp.Or(u.Commit.UpdateCID, u.Commit.HandedState.CID); cid != "" {
					actions = append(actions, role.Reveal{Work: id, Base: l.Base, CID: cid})
				}
			}
		}
	}
	return actions
}

// late commits a computed unit that it was late with: it counts while no other worker has committed it.
func (w *Worker) late(round, unit uint32) (actions []role.Action) {
	for _, h := range w.run.PreviousAssignments(w.id, round, unit) {
		id := work.UnitID{Round: round, Unit: unit, Attempt: h.Attempt}
		if commit, computed := w.computed[id]; computed {
			actions = append(actions, role.Commit{Work: id, Commit: w.withHiddenRoots(id, commit)})
		}
	}
	return actions
}

// disputes returns the moves that are the worker's: in the disputes that it began, and in those about its own work.
func (w *Worker) disputes(b role.Block) []role.Action {
	actions := role.Accusing(b, w.id)
	for _, g := range b.Disputes {
		if g.Config.Asserter == w.id && g.Turn == dispute.Asserter && !w.planted(g) {
			actions = append(actions, role.Moves(b.Run, g)...)
		}
	}
	return actions
}
