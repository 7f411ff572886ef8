package run

import (
	"fmt"
	"slices"
)

// Decline ends the part of a member that cannot open the job: its blobs cannot be had, they are not what was ordered,
// or they do not fit into its machine. It has done nothing in the run, loses nothing, and does not come back to it. As
// long as nobody has committed a unit the last worker and the last verifier may go, too: there is nothing yet that
// shows that anybody can open the job.
func (s State) Decline(env Env, from string) (State, []Event, error) {
	m, known := s.Member(from)
	switch {
	case s.over() || !known:
		return s, nil, sender(s, from)
	case m.Active && s.Opened() && s.last(m):
		return s, nil, fmt.Errorf("%w: %s", ErrLast, from)
	case !s.MayDecline(from):
		return s, nil, fmt.Errorf("%w: %s has worked in the run, or is out of it", ErrWrongPhase, from)
	}
	d := s.edit(env)
	d.leave(from, WhyUnopened)
	d.change(from, func(m *Member) { m.Why = WhyUnopened }) // also who is out over deadlines that it missed
	if len(d.Active(Worker)) == 0 {
		d.unopened()
	}
	if d.Phase == Attest { // what is left may be a quorum
		d.tally()
	}
	after, events := d.finish()
	return after, events, nil
}

// MayDecline reports whether Decline would be accepted.
func (p Progress) MayDecline(id string) bool {
	m, ok := p.Member(id)
	part := m.participating() || m.guest() || m.missing() || m.Why == WhyReturning
	return ok && !p.over() && part && m.Commits == 0 && m.Speed == 0 && !(m.Active && p.Opened() && p.last(m))
}

// Opened reports whether anybody has committed a unit of the run.
func (c Crew) Opened() bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.Commits > 0 })
}

// unopened halts a run that nobody has worked in, if those who said that they cannot open its job have more than half
// of the weight of all who have a seat or said so. It is asked when a unit is late, or no worker is left: one honest
// worker that opens the job and commits in time keeps the run, whatever the others say.
func (d *assignment) unopened() {
	said := func(m Member) bool { return m.Why == WhyUnopened }
	counts := func(m Member) bool { return m.Active || said(m) }
	if !d.halted() && !d.Opened() && above(d.weighOf(counts, said), 2, d.weighOf(counts, counts), 1) {
		d.halt(WhyUnopened)
	}
}
