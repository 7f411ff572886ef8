package transition

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/event"
)

// The cost estimate of a run counts each unit once, with one audit. More audits are made only as far as the budget
// covers them on top of all debts: otherwise an account that has units audited again and again, or at a high price,
// would take the pay of others. An audit that a conviction causes is paid from the stake of the convicted first
// (package reward), and is under the same bound.

// Affords reports whether the budget covers one more audit of a unit at a price, on top of those of this transition.
func (d *Draft) Affords(unit uint32, price uint64) bool { return d.covers(unit, price, false) }

// Spares reports whether the budget covers one more audit of a unit on top of all rounds to come. Audits that any
// account can cause without limit must pass this test.
func (d *Draft) Spares(unit uint32) bool { return d.covers(unit, d.HighestAsk(), true) }

// covers asks the budget. The whole run is counted once in a transition.
func (d *Draft) covers(unit uint32, price uint64, spared bool) bool {
	if d.Env.Covers == nil {
		return true
	}
	if d.more == nil {
		s := d.Progress
		for _, e := range d.Events { // what this transition ends is not paid yet
			if e.RoundState != nil {
				s.RolledBack = append(slices.Clip(s.RolledBack), *e.RoundState)
			}
		}
		d.more = d.Env.Covers(s)
		for _, e := range d.Events {
			m, _ := d.Member(e.Who)
			if (e.Kind == event.AuditPassed || e.Kind == event.AuditOutside) && !d.more(e.Unit, m.Price, false) {
				d.more = func(uint32, uint64, bool) bool { return false }
			}
		}
	}
	return d.more(unit, price, spared)
}
