package lineage

import (
	"math"
	"slices"

	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// syncDrawn notes of each round whether all its units that draw are committed. Where the current round learns from
// answers that were taken back, its units that learn are void, and wait for others.
func (d *Lineage) syncDrawn() {
	if d.Terms.Rollout.Units == 0 || d.Halted() {
		return
	}
	for _, l := range d.EditRounds() {
		open := slices.ContainsFunc(l.Units, func(u *work.Unit) bool { return u.Draws && u.Status == work.Assigned })
		switch {
		case open:
			l.Filled, l.Sampled = 0, false
		case l.Filled == 0 && len(l.Units) > int(d.Terms.Units):
			l.Filled = d.Env.Height
		}
	}
	if len(d.From) == 0 {
		return
	}
	if from, ok := d.rollbacks.units.Given(); !ok || !slices.Equal(from, d.From) {
		d.starve()
	}
}

// starve takes the units that learn from their workers, whose fault it is not: their commitments are void, and paid
// like those of a round that was rolled back, first from the stakes of the members that were just convicted.
func (d *Lineage) starve() {
	culprits := d.sentenced()
	void := d.RoundState
	void.Units = nil
	for i, u := range d.Units {
		left := &work.Unit{Index: u.Index, Status: work.Assigned, Attempt: math.MaxUint32, Draws: u.Draws}
		if !u.Draws && u.Status != work.Assigned {
			own := *u
			left = &own
		}
		void.Units = append(void.Units, left)
		if !u.Draws {
			*d.Unit(&d.RoundState, i) = work.Unit{Index: u.Index, Status: work.Assigned, Attempt: u.LastAttempt() + 1}
		}
	}
	d.From = nil
	if slices.ContainsFunc(void.Units, func(u *work.Unit) bool { return u.Status != work.Assigned }) {
		d.Emit(event.Event{Kind: event.RolledBack, Round: d.Round})
		d.rollbacks.markRolledBack(void, culprits)
	}
}

// sentenced are the members that were just convicted.
func (d *Lineage) sentenced() (culprits []string) {
	for _, e := range d.Events {
		if e.Kind == event.DisputeEnded && (e.Why == reason.WrongWork || e.Why == reason.Silent) {
			culprits = append(culprits, e.Other) // it may have left before
		}
	}
	return culprits
}

// voidReplicas keeps the commitments of stages whose replica began again after a verdict about another stage. They are
// audited and paid like those of a round that was rolled back.
func (d *Lineage) voidReplicas() {
	for _, void := range d.Voided {
		d.Emit(event.Event{Kind: event.RolledBack, Round: void.Round})
		d.rollbacks.markRolledBack(void, d.sentenced())
	}
	if len(d.Voided) > 0 {
		d.rollbacks.forfeit() // other stages of the convicted worker
	}
	d.Voided = nil
}

// keep keeps a round that becomes final, if a later one learns from its answers, and forgets those from which none does
// any more that is not final.
func (d *Lineage) keep(final work.RoundState) {
	if d.Terms.Draws(final.Round) {
		d.Read = append(slices.Clip(d.Read), final)
	}
	d.Read = slices.DeleteFunc(slices.Clone(d.Read), func(l work.RoundState) bool {
		return uint64(l.Round)+uint64(d.Terms.Rollout.Staleness) <= uint64(final.Round)
	})
}
