// Package worker is the role that trains: it computes the units assigned to it, commits to each before it may see any
// other update of the round, then lets its update be read, and defends its work when it is challenged.
//
// It does not judge others; that is the verifier.
package worker

import (
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/aggregator"
)

// Worker is one worker in one run.
type Worker struct {
	id       string
	lineage  *aggregator.Aggregator
	computed map[role.Work]run.Commitment
	revealed map[role.Work]bool
}

// New returns the worker with this ID.
func New(id string) *Worker {
	return &Worker{id: id, lineage: aggregator.New(id), computed: map[role.Work]run.Commitment{}, revealed: map[role.Work]bool{}}
}

// Step takes in an event and returns what to do now.
func (w *Worker) Step(e role.Event) []role.Action {
	w.lineage.Note(e)
	switch e := e.(type) {
	case role.Trained:
		w.computed[e.Action.Work] = e.Commit
		return w.lineage.Want(role.Commit{Work: e.Action.Work, Commit: e.Commit})
	case role.Finished:
		if a, ok := e.Action.(role.Reveal); ok {
			w.revealed[a.Work] = true
		}
	case role.Block:
		w.forget(e.Run)
		actions := w.lineage.Duties(e.Run)
		if w.lineage.Holds(e.Run.Base) {
			actions = append(actions, w.units(e.Run)...)
		}
		return w.lineage.Want(append(actions, w.defence(e)...)...)
	}
	return nil
}

// forget drops what is about rounds that are final, or were rolled back.
func (w *Worker) forget(s run.State) {
	for k := range w.computed {
		if k.Round < s.Oldest() || k.Round > s.Round {
			delete(w.computed, k)
		}
	}
	for k := range w.revealed {
		if k.Round < s.Oldest() || k.Round > s.Round {
			delete(w.revealed, k)
		}
	}
}

// units returns what its units need: to be trained, committed, and, once no commitment of the round is open, revealed.
func (w *Worker) units(s run.State) (actions []role.Action) {
	for _, l := range s.Laps() {
		for _, u := range l.Units {
			if u.Worker != w.id {
				continue
			}
			work := role.Work{Round: l.Round, Unit: u.Index, Attempt: u.Attempt}
			commit, computed := w.computed[work]
			switch {
			case u.Status == run.Assigned && computed:
				actions = append(actions, role.Commit{Work: work, Commit: commit})
			case u.Status == run.Assigned:
				actions = append(actions, role.Train{Work: work, Base: l.Base})
			case (l.Round < s.Round || s.Phase != run.Train) && !w.revealed[work]:
				actions = append(actions, role.Reveal{Work: work, Base: l.Base, CID: u.Commit.UpdateCID})
			}
		}
	}
	return actions
}

func (w *Worker) defence(b role.Block) (actions []role.Action) {
	for _, g := range b.Disputes {
		if g.Config.Asserter == w.id && g.Turn == dispute.Asserter {
			actions = append(actions, role.Moves(b.Run, g)...)
		}
	}
	return actions
}
