package assignment

import (
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// MaxStarved is how many times a consumer may name data for a round that most members cannot have. Then the run ends:
// the members looked for the data, and may have computed with them, without pay.
const MaxStarved = 3

// wait waits for the data of a round of a run that its consumer leads. The run ends when the consumer has named none in
// time, or none that members can have, and every round under way is final.
func wait(d *Assignment) {
	switch {
	case len(d.Open) > 0:
	case d.Starved >= MaxStarved:
		d.Halt(reason.NoData)
	case d.Env.Height > d.Since+d.Terms.Led:
		d.Halt(reason.Idle)
	}
}

// Starve takes the unit of the current round of a run that its consumer leads from its worker, whose fault it is not:
// most members cannot have the data of the round, which waits for others.
func Starve(d *Assignment) {
	for _, u := range d.Units {
		d.FirstAttempt = max(d.FirstAttempt, u.LastAttempt()+1)
		d.Emit(event.Event{Kind: event.UnitReassigned, Round: d.Round, Unit: u.Index, Who: u.Worker,
			Why: reason.NoData})
	}
	d.Units, d.From = nil, nil
	d.Starved++
	d.Reopen()
	d.Enter(progress.Assign)
}
