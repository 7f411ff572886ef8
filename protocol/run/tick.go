package run

import (
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Tick moves a run on at the end of a block, after its messages: it enforces deadlines, draws audits, lets rounds
// become final and deals units.
func (s State) Tick(env transition.Env) (State, []event.Event) {
	if s.Over() {
		return s, nil
	}
	d := s.edit(env)
	d.LeaveUnattested()
	d.LateUnits()
	d.HiddenLinks()
	d.LateAudits()
	d.LateReports()
	d.Ask()
	d.CompletePanels()
	d.Hasten()
	d.LateOpenings()
	d.LateFindings()
	d.Draw()
	d.MoveProbations()
	d.SettleRounds()
	d.Diverge()
	switch d.Phase {
	case progress.Assign:
		d.Deal()
	case progress.Train:
		d.Feed()
	case progress.Reduce:
		d.MoveOn()
	case progress.Attest:
		if !d.Attestable() || d.Stuck() {
			d.Since = env.Height // the deadline begins when every member can vote
		}
		d.LateVotes()
	}
	return d.finish()
}
