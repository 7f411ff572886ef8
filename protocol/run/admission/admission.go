// Package admission makes the first checks of a run's messages: the sender takes part, and the attempt at a unit that
// the message names exists. It changes nothing; package run decides what each message may do.
package admission

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/work"
)

// Unit finds the attempt at a unit that a member's message names, and checks that the member takes part.
func Unit(s progress.Progress, from string, id work.UnitID) (work.Unit, error) {
	if err := Sender(s, from); err != nil {
		return work.Unit{}, err
	}
	return Find(s, id)
}

// Answer finds the attempt that a member's answer to an audit names, in rounds that were rolled back as well.
func Answer(s progress.Progress, from string, id work.UnitID) (work.AuditTarget, error) {
	if err := Sender(s, from); err != nil && (s.Over() || !s.Guest(from)) {
		return work.AuditTarget{}, err
	}
	return Locate(s, id)
}

func Find(s progress.Progress, id work.UnitID) (work.Unit, error) {
	l, ok := s.At(id.Round)
	switch {
	case !ok:
		return work.Unit{}, fmt.Errorf("%w: round %d, the run is in round %d", refusal.ErrStale, id.Round, s.Round)
	case len(l.Units) == 0:
		return work.Unit{}, fmt.Errorf("%w: the units of round %d are not dealt yet", refusal.ErrWrongPhase, id.Round)
	case uint64(id.Unit) >= uint64(len(l.Units)):
		return work.Unit{}, fmt.Errorf("%w: unit %d, the round has %d", refusal.ErrNoUnit, id.Unit, len(l.Units))
	case id.Attempt != l.Units[id.Unit].Attempt:
		return work.Unit{}, fmt.Errorf("%w: attempt %d of unit %d, it is at attempt %d", refusal.ErrStale, id.Attempt,
			id.Unit, l.Units[id.Unit].Attempt)
	}
	return *l.Units[id.Unit], nil
}

// Locate finds an attempt at a unit as find does, in rounds that were rolled back as well.
func Locate(s progress.Progress, id work.UnitID) (work.AuditTarget, error) {
	for _, l := range s.RolledBack {
		if l.Has(id) {
			return work.AuditTarget{RoundState: l, Unit: *l.Units[id.Unit]}, nil
		}
	}
	u, err := Find(s, id)
	l, _ := s.At(id.Round)
	return work.AuditTarget{RoundState: l, Unit: u}, err
}

func Sender(s progress.Progress, from string) error {
	m, ok := s.Member(from)
	switch {
	case s.Over():
		return fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	case !ok:
		return fmt.Errorf("%w: %s", refusal.ErrNotMember, from)
	case !m.Active:
		return fmt.Errorf("%w: %s (%s)", refusal.ErrInactive, from, m.Why)
	}
	return nil
}
