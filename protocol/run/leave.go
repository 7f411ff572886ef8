package run

import (
	"fmt"
	"slices"
)

// Leave ends the part of a member in good standing. What it had not begun or not finished goes to others at once, what
// it committed stays and is paid like any other work. While its work may still be questioned it owes the answers: it
// makes its moves in disputes, opens its seals and shows what it planted (see Liable). The last worker, and the last
// verifier of a run with audits, cannot leave.
func (s State) Leave(env Env, from string) (State, []Event, error) {
	m, _ := s.Member(from)
	if err := sender(s, from); err != nil && (s.over() || !m.participating()) {
		return s, nil, err
	}
	if m.Active && s.last(m) {
		return s, nil, fmt.Errorf("%w: %s", ErrLast, from)
	}
	d := s.edit(env)
	d.leave(from, WhyLeft)
	if d.Phase == Attest { // what is left may be a quorum
		d.tally()
	}
	after, events := d.finish()
	return after, events, nil
}

// MayLeave reports whether Leave would be accepted.
func (p Progress) MayLeave(id string) bool {
	m, ok := p.Member(id)
	return ok && !p.over() && m.participating() && !(m.Active && p.last(m))
}

// last reports whether a run cannot go on without an active member.
func (p Progress) last(m Member) bool {
	return len(p.Active(m.Role)) == 1 && (m.Role == Worker || p.Terms.AuditPPM > 0)
}

// Liable reports whether a member may still have to answer for something: for a unit that it committed to, or that it
// audited or challenged, in a round that is not final, or for rounds that were rolled back over its conviction. That
// does not depend on whether it is active.
func (p Progress) Liable(id string) bool {
	if p.over() {
		return false
	}
	return slices.ContainsFunc(p.All(), func(l RoundState) bool {
		return slices.Contains(l.Culprits, id) || slices.ContainsFunc(l.Units, func(u *Unit) bool {
			return u.look(id) >= 0 || u.Held != nil && (u.Held.Worker == id || slices.Contains(u.Held.Verifiers, id)) ||
				u.Worker == id && u.Status != Assigned || (u.Status == Sealed || u.Status == Auditing) && u.Verifier == id ||
				slices.Contains(u.Challengers, id)
		})
	})
}
