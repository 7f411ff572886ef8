package auditing

import (
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// outside withholds a unit that most of a panel found outside the tolerance. If the panel had several verifiers, and
// all found it outside, the deposit of the worker is held.
func (d *Panels) outside(i int, most []work.SealedReport, all bool) {
	u := d.Unit(&d.RoundState, i)
	u.Status = work.Accepted // nothing is left to answer
	var held *work.Held
	if all && len(most) > 1 {
		held = &work.Held{Worker: u.Worker, End: most[0].Finding.End}
		for _, x := range most {
			held.Verifiers = append(held.Verifiers, x.Verifier)
		}
	}
	d.audits.units.Withhold(i, reason.Outside, held)
}

// SettleDeposits settles the deposits that are held over units of a final round. The exact execution of each unit was
// open to challenge by any account. A verifier that reported another end state has not executed the unit: it is slashed
// for a false report, and the worker gets its deposit back.
func (d *Panels) SettleDeposits(l work.RoundState) {
	for _, u := range l.Units {
		if u.Held == nil {
			continue
		}
		if roots := u.Commit.Segments; roots[len(roots)-1] == u.Held.End {
			d.Emit(event.Event{Kind: event.DepositForfeited, Round: l.Round, Unit: u.Index, Who: u.Held.Worker,
				Why: reason.Outside})
			continue
		}
		for _, id := range u.Held.Verifiers {
			d.audits.expel(&l, u, id, reason.FalseReport)
		}
		d.Emit(event.Event{Kind: event.DepositReturned, Round: l.Round, Unit: u.Index, Who: u.Held.Worker,
			Why: reason.FalseReport})
	}
}
