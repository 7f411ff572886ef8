package dashboard

import (
	"testing"

	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
)

// The state of a run on the chain is given in the terms of the API, with the reason.
func TestTotalsOfAChainRun(t *testing.T) {
	at := func(phase progress.Phase, why, status, waits string) (state, phase2, code string) {
		s := run.State{
			Progress: progress.Progress{Crew: crew.Crew{Terms: terms.Terms{Job: "job-1", Rounds: 4}}, Phase: phase, Why: why},
		}
		s.Round = 2
		j := totalsOf(s, market.Escrow{Budget: 10, Paid: 3}, module.OrderStatus{Status: status, Why: waits})
		if j.ID != "job-1" || j.Rounds != 4 || j.BudgetUzen != 10 || j.PaidUzen != 3 || j.Kind != "network" {
			t.Errorf("%+v", j)
		}
		if j.Reason != nil {
			code = j.Reason.Code
		}
		return j.State, j.Phase, code
	}
	for _, c := range []struct {
		phase                    progress.Phase
		why, status, waits       string
		state, shown, reasonCode string
	}{
		{progress.Train, "", "running", "", "running", "train", "training"},
		{progress.Assign, "", "paused", "", "running", "paused", "paused"},
		{progress.Assign, "", "paused", "budget_too_small", "running", "paused", "budget_too_small"},
		{progress.Done, "", "ended", "", "done", "", ""},
		{progress.Halted, "too_few_workers", "ended", "", "halted", "", "too_few_workers"},
	} {
		if state, shown, code := at(c.phase, c.why, c.status, c.waits); state != c.state || shown != c.shown ||
			code != c.reasonCode {
			t.Errorf("%+v: %s, %s, %s", c, state, shown, code)
		}
	}
}
