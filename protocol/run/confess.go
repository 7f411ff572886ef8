package run

import "fmt"

// Confess says that a worker finds its own commitment wrong, as after a fault of its machine. It loses the unit, which
// is not paid and is done again, and no stake. It must say so before anybody can know which units are audited: in a
// round whose last commitment is not there, or came in this block. The proposer of the next one knows the beacon that
// draws them, and who could confess then would fake every unit and confess what is drawn. It counts like a missed
// deadline, so that nobody holds a round up for ever.
func (s State) Confess(env Env, from string, id UnitID) (State, []Event, error) {
	u, err := admit(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Worker != from:
		return s, nil, fmt.Errorf("%w: unit %d is %s's", ErrNotYours, id.Unit, u.Worker)
	case id.Round != s.Round || u.Status != Committed || s.Drawn || s.Closed > 0 && env.Height > s.Closed:
		return s, nil, fmt.Errorf("%w: unit %d is not committed, or its audit may be known", ErrWrongPhase, id.Unit)
	}
	d := s.edit(env)
	d.recordMiss(from, WhyConfessed)
	d.reassign(int(id.Unit), WhyConfessed)
	after, events := d.finish()
	return after, events, nil
}

// Confessible reports whether the workers of the current round may still confess.
func (p Progress) Confessible() bool { return p.Phase == Train && p.Closed == 0 && !p.Drawn }
