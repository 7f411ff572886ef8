package run

import (
	"fmt"
)

// admit finds the attempt at a unit that a message of a member is about, and checks that all are still there.
func admit(s State, from string, id UnitID) (Unit, error) {
	if err := sender(s, from); err != nil {
		return Unit{}, err
	}
	return find(s, id)
}

// answers finds the attempt that an answer of a member is about. Also a round that was rolled back is answered for.
func answers(s State, from string, id UnitID) (AuditTarget, error) {
	if err := sender(s, from); err != nil && (s.over() || !s.Guest(from)) {
		return AuditTarget{}, err
	}
	return locate(s, id)
}

func find(s State, id UnitID) (Unit, error) {
	l, ok := s.At(id.Round)
	switch {
	case !ok:
		return Unit{}, fmt.Errorf("%w: round %d, the run is in round %d", ErrStale, id.Round, s.Round)
	case len(l.Units) == 0:
		return Unit{}, fmt.Errorf("%w: the units of round %d are not dealt yet", ErrWrongPhase, id.Round)
	case uint64(id.Unit) >= uint64(len(l.Units)):
		return Unit{}, fmt.Errorf("%w: unit %d, the round has %d", ErrNoUnit, id.Unit, len(l.Units))
	case id.Attempt != l.Units[id.Unit].Attempt:
		return Unit{}, fmt.Errorf("%w: attempt %d of unit %d, it is at attempt %d", ErrStale, id.Attempt, id.Unit,
			l.Units[id.Unit].Attempt)
	}
	return *l.Units[id.Unit], nil
}

// locate finds an attempt at a unit as find does, and also in the rounds that were rolled back.
func locate(s State, id UnitID) (AuditTarget, error) {
	for _, l := range s.RolledBack {
		if l.has(id) {
			return AuditTarget{l, *l.Units[id.Unit]}, nil
		}
	}
	u, err := find(s, id)
	l, _ := s.At(id.Round)
	return AuditTarget{l, u}, err
}

func (l RoundState) has(id UnitID) bool {
	return l.Round == id.Round && uint64(id.Unit) < uint64(len(l.Units)) && l.Units[id.Unit].Attempt == id.Attempt
}

func sender(s State, from string) error {
	m, ok := s.Member(from)
	switch {
	case s.over():
		return fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	case !ok:
		return fmt.Errorf("%w: %s", ErrNotMember, from)
	case !m.Active:
		return fmt.Errorf("%w: %s (%s)", ErrInactive, from, m.Why)
	}
	return nil
}
