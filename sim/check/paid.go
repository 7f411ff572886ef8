package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
)

// PaidOnce checks at the end that no work was paid twice: no party is paid more often for a unit than it committed to
// it, and only what a rollback made void is paid to another again. And when the run is done, that who kept the rules
// was paid for every commitment whose update could be had, also for those in rounds that were rolled back.
type PaidOnce struct {
	Guilty []string // names of those who may go without
	Away   []string // of those who may, for a unit that was challenged in their silence

	commits map[duty]int
	rolled  bool
}

// duty is a unit of a round, and the party that did it.
type duty struct {
	round, unit uint32
	who         string
}

// Block implements Checker.
func (p *PaidOnce) Block(w World) error {
	for _, e := range RunEvents(w) {
		switch e.Kind {
		case event.UnitCommitted:
			if p.commits == nil {
				p.commits = map[duty]int{}
			}
			p.commits[duty{e.Round, e.Unit, e.Who}]++
		case event.RolledBack:
			p.rolled = true
		}
	}
	return nil
}

// End implements Checker.
func (p *PaidOnce) End(w World) error {
	receipts, err := w.Receipts()
	if err != nil {
		return err
	}
	if err := p.once(receipts); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil || s.Phase != progress.Done {
		return err
	}
	if p.rolled && s.Terms.Freezes() { // work that was built on a lost state cannot be settled
		return nil
	}
	return p.all(receipts, w.Name)
}

// all reports a commitment that was not paid.
func (p *PaidOnce) all(receipts []reward.Receipt, name func(id string) string) error {
	open := maps.Clone(p.commits)
	for _, r := range receipts {
		known := r.Reason == reward.Unavailable || r.Reason == reward.Restarted || r.Reason == reward.Odd ||
			r.Reason == reward.Outside ||
			(r.Reason == reward.Silent || r.Reason == reward.Forfeited) && slices.Contains(p.Away, name(r.Who))
		if r.Kind == reward.Work && (r.Amount > 0 || known) {
			open[duty{r.Round, r.Unit, r.Who}]--
		}
	}
	for d, n := range open {
		if n > 0 && !slices.Contains(p.Guilty, name(d.who)) {
			return fmt.Errorf("pay: %s committed to unit %d of round %d, and is not paid for it", name(d.who), d.unit, d.round)
		}
	}
	return nil
}

// once reports the first payment for what was paid before.
func (p *PaidOnce) once(receipts []reward.Receipt) error {
	paid, units := map[duty]int{}, map[duty]int{}
	for i, r := range receipts {
		if r.Seq != uint64(i) {
			return fmt.Errorf("pay: receipt %d has number %d", i, r.Seq)
		}
		if r.Amount == 0 || r.Kind != reward.Work {
			continue
		}
		d, unit := duty{r.Round, r.Unit, r.Who}, duty{r.Round, r.Unit, ""}
		paid[d]++
		units[unit]++
		if paid[d] > p.commits[d] || units[unit] > 1 && !p.rolled {
			return fmt.Errorf("pay: unit %d of round %d is paid %d times, to %s %d times for %d commitments", r.Unit, r.Round,
				units[unit], r.Who, paid[d], p.commits[d])
		}
	}
	return nil
}
