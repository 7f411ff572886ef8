package consumer

import "github.com/starling-network/starling/node/notify"

// Event is an event of a job that has come so far.
func (p Progress) Event(kind, name string) notify.Event {
	return notify.Event{Event: kind, Job: p.Job, Name: name, Step: p.Step, Steps: p.Steps, Round: p.Round,
		Rounds: p.Rounds, Loss: notify.Known(p.Loss), EvalLoss: notify.Known(p.EvalLoss), PaidUzen: p.PaidUzen,
		BudgetUzen: p.BudgetUzen, Coin: p.Coin}
}
