package assignment

import (
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// Starve takes the unit of the current round of a run that its consumer leads from its worker, whose fault it is not:
// most members cannot have the data of the round, which waits for others.
func Starve(d *Assignment) {
	for _, u := range d.Units {
		d.FirstAttempt = max(d.FirstAttempt, u.LastAttempt()+1)
		d.Emit(event.Event{Kind: event.UnitReassigned, Round: d.Round, Unit: u.Index, Who: u.Worker,
			Why: reason.NoData})
	}
	d.Units, d.From = nil, nil
	d.Reopen()
	d.Enter(progress.Assign)
}
