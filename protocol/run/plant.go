package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// Unmask shows that a worker planted a fault in a commitment, when the question of it is answered: the roots that were
// hidden take the place of the planted ones. Who had passed the unit is slashed, who challenged it loses nothing, and
// if it was audited the audit goes on with the right roots. The update was right all along, so nothing that was built
// on it changes. Also who takes no further part in the run may show it.
func (s State) Unmask(env Env, from string, id UnitID, nonce canon.Digest,
	segments []canon.Digest) (State, []Event, error) {
	if s.over() {
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	u, err := locate(s, id)
	m, _ := s.Member(from)
	switch {
	case err != nil:
		return s, nil, err
	case u.Worker != from:
		return s, nil, fmt.Errorf("%w: unit %d is %s's", ErrNotYours, id.Unit, u.Worker)
	case u.Status != Sealed && u.Status != Accepted && u.Status != Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is not answered yet", ErrWrongPhase, id.Unit)
	case s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: nobody compares the state roots of unit %d", ErrBadPlant, id.Unit)
	case len(segments) != len(u.Commit.Segments) || audit.Hide(nonce, segments) != u.Commit.HiddenRoots:
		return s, nil, fmt.Errorf("%w: this was not hidden in the commitment", ErrBadPlant)
	case slices.Equal(segments, u.Commit.Segments) || !slices.Equal(audit.Plant(nonce, segments), u.Commit.Segments):
		return s, nil, fmt.Errorf("%w: what was committed is not what is planted in this", ErrBadPlant)
	case m.Planted >= audit.MayPlant(m.Commits):
		return s, nil, fmt.Errorf("%w: %d planted in %d commitments", ErrBadPlant, m.Planted, m.Commits)
	}
	d := s.edit(env)
	d.change(from, func(m *Member) { m.Planted++ })
	d.emit(Event{Kind: PlantShown, Round: id.Round, Unit: id.Unit, Who: from})
	d.unmasked(d.of(u), int(id.Unit), segments)
	after, events := d.finish()
	return after, events, nil
}

// Unmasked reports whether the worker of an attempt at a unit has shown that it had planted a fault in it.
func (w Window) Unmasked(id UnitID) bool {
	u, ok := w.Find(id)
	return ok && len(u.Commit.Segments) > 0 && u.Commit.HiddenRoots.IsZero()
}

func (d *audits) unmasked(l *RoundState, i int, segments []canon.Digest) {
	u := d.unit(l, i)
	// Who executed the unit to the end of a segment before the planted root could not see it.
	seen := u.Segment == 0 || !slices.Equal(u.Commit.Segments[:u.Segment+1], segments[:u.Segment+1])
	u.Commit.Segments, u.Commit.HiddenRoots = slices.Clone(segments), canon.Digest{}
	answered := u.Status == Sealed || u.Passed
	caught := false
	if m, known := d.Member(u.FirstAttempt); known && seen &&
		!sealUnopenable(m) { // it had passed the fault before a second looked
		d.expel(l, u, u.FirstAttempt, WhyPlantPassed)
	}
	for _, id := range u.Challengers {
		if id == u.Verifier && !answered {
			caught = true
			continue
		}
		d.unanswered(l, i, id, WhyPlanted)
	}
	u.Challengers = nil
	switch {
	case answered && !seen:
		if u.Status == Disputed {
			u.Status = Accepted
		}
	case answered:
		if m, _ := d.Member(u.Verifier); !sealUnopenable(m) {
			d.broken(l, i, WhyPlantPassed)
		}
		d.audit(l, i)
	case caught: // its audit goes on, and with it what it is owed
		u.Status, u.AssignedAt, u.Deadline = Auditing, d.env.Height, d.due(u.Verifier, d.AuditDeadline())
	case u.Audited && u.Status == Disputed:
		d.audit(l, i)
	default:
		u.Status = Accepted
	}
}
