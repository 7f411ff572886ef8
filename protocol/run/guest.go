package run

import (
	"cmp"
	"fmt"
	"slices"
)

// A guest answers for something in a run without a seat in it: it was drawn from the whole network for an audit, or
// challenges a unit unasked, with its stake as its bond. It trains and attests nothing, counts for no quorum, and is
// not waited for.

// MaxGuests is how many guests a run remembers. Those of whom nothing is open are forgotten when there are more, the
// earliest first.
const MaxGuests = 256

// maxGuestChallengers is how many of the disputes about an attempt at a unit guests may have open, so that they leave
// some for members.
const maxGuestChallengers = MaxChallengers / 2

func (m Member) guest() bool { return m.Why == WhyGuest }

// Guest reports whether an account answers for something in the run without a seat.
func (c Crew) Guest(id string) bool {
	m, _ := c.Member(id)
	return m.guest()
}

// welcome takes a guest in, or back: who left the run in good standing.
func (d *seats) welcome(m Member) {
	i, known := d.member(m.ID)
	if known && d.Members[i].guest() {
		return
	}
	if !known {
		d.forget()
		i, _ = d.member(m.ID)
		d.Members = slices.Insert(d.Members, i,
			Member{ID: m.ID, Role: Verifier, Price: m.Price, Stake: m.Stake, Owner: m.owner()})
	}
	e := &d.Members[i]
	e.Active, e.Why, e.Since = false, WhyGuest, d.env.Height
}

// forget drops guests with nothing open and verifiers that declined, the earliest first, while there are too many.
func (d *seats) forget() {
	var guests []Member
	for _, m := range d.Members {
		if m.guest() || m.Why == WhyUnopened && m.Role == Verifier {
			guests = append(guests, m)
		}
	}
	slices.SortStableFunc(guests, func(a, b Member) int { return cmp.Compare(a.Since, b.Since) })
	over := max(len(guests)-MaxGuests, len(d.Members)-MaxMembers) + 1
	for _, g := range guests {
		if over <= 0 {
			return
		}
		if !d.Liable(g.ID) {
			d.Members = slices.DeleteFunc(d.Members, func(m Member) bool { return m.ID == g.ID })
			over--
		}
	}
}

// mayBeGuest reports whether a member that has no duties may have those of a guest: it is out of the run for nothing
// that it did.
func (m Member) mayBeGuest() bool {
	return m.guest() || m.Role == Verifier && !m.Active && m.Why == WhyLeft
}

// challenger reports why somebody may not challenge a unit.
func challenger(s State, from string, u AuditTarget) error {
	m, known := s.Member(from)
	outsider := !known || !m.Active
	switch {
	case u.Worker == from:
		return fmt.Errorf("%w: unit %d is the sender's own", ErrNotYours, u.Index)
	case known && outsider && !m.guest() && !m.participating() && m.Why != WhyLeft && m.Why != WhyReturning &&
		m.Why != WhyDiffers && !m.missing():
		return fmt.Errorf("%w: %s (%s)", ErrInactive, from, m.Why)
	case !known && len(s.Members) >= MaxMembers+MaxGuests:
		return fmt.Errorf("%w: the run has %d members", ErrWrongPhase, len(s.Members))
	case outsider && s.guestsAmong(u.Challengers) >= maxGuestChallengers:
		return fmt.Errorf("%w: %d disputes of guests about unit %d are open", ErrWrongPhase, maxGuestChallengers, u.Index)
	}
	return nil
}

func (c Crew) guestsAmong(ids []string) (n int) {
	for _, id := range ids {
		if m, _ := c.Member(id); !m.Active {
			n++
		}
	}
	return n
}
