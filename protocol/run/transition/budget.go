package transition

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/event"
)

// What a run may cost counts each of its units once, with one audit. More audits than that are made only as far as the
// budget covers them beside all that is owed already: otherwise whoever has units audited again and again, or asks a
// high price for it, would take what others will be paid from. An audit that a conviction causes is paid by the
// convicted first (package reward), and is made under the same bound.

// Affords reports whether the budget covers one more audit of a unit at a price beside those of this transition.
func (d *Draft) Affords(unit uint32, price uint64) bool { return d.covers(unit, price, false) }

// Spares reports whether the budget covers one more audit of a unit also beside all rounds to come. What anybody may
// cause as often as it likes is held against that.
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
