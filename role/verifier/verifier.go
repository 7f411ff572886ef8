// Package verifier is the role that re-executes: it answers the audits drawn for it, with a seal that only somebody who
// holds the state can make, and presses a dispute when the work of a unit is not what its worker committed to.
//
// A verifier does not vote in consensus; that is a validator.
package verifier

import (
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/aggregator"
)

// Verifier is one verifier in one run.
type Verifier struct {
	id      string
	lineage *aggregator.Aggregator
	checked map[role.Work]role.Checked
}

// New returns the verifier with this ID.
func New(id string) *Verifier {
	return &Verifier{id: id, lineage: aggregator.New(id), checked: map[role.Work]role.Checked{}}
}

// Step takes in an event and returns what to do now.
func (v *Verifier) Step(e role.Event) []role.Action {
	v.lineage.Note(e)
	switch e := e.(type) {
	case role.Checked:
		v.checked[e.Action.Work] = e
		return v.lineage.Want(answer(e))
	case role.Block:
		for k := range v.checked {
			if k.Round < e.Run.Round {
				delete(v.checked, k)
			}
		}
		actions := v.lineage.Duties(e.Run)
		if v.lineage.Holds(e.Run.Base) {
			actions = append(actions, v.audits(e.Run)...)
		}
		return v.lineage.Want(append(actions, v.pressure(e)...)...)
	}
	return nil
}

func answer(c role.Checked) role.Action {
	if c.Right {
		return role.Pass{Work: c.Action.Work, Seal: c.Seal}
	}
	return role.Challenge{Work: c.Action.Work, Segment: c.Differ}
}

func (v *Verifier) audits(s run.State) (actions []role.Action) {
	for _, u := range s.Units {
		if u.Status != run.Auditing || u.Verifier != v.id {
			continue
		}
		work := role.Work{Round: s.Round, Unit: u.Index, Attempt: u.Attempt}
		if c, ok := v.checked[work]; ok {
			actions = append(actions, answer(c))
		} else {
			actions = append(actions, role.Check{Work: work, Base: s.Base, Worker: u.Worker, Commit: u.Commit})
		}
	}
	return actions
}

func (v *Verifier) pressure(b role.Block) (actions []role.Action) {
	for _, g := range b.Disputes {
		if g.Config.Challenger == v.id && g.Turn == dispute.Challenger && g.Config.Round == b.Run.Round {
			actions = append(actions, role.Move{Game: g, Base: b.Run.Base, Commit: b.Run.Units[g.Config.Unit].Commit})
		}
	}
	return actions
}
