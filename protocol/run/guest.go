package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// maxGuestChallengers is how many of the disputes about an attempt at a unit guests may open; the others are kept for
// members.
const maxGuestChallengers = MaxChallengers / 2

// challenger returns an error if an account may not challenge a unit.
func challenger(s State, from string, u work.AuditTarget) error {
	m, known := s.Member(from)
	outsider := !known || !m.Active
	switch {
	case u.Worker == from:
		return fmt.Errorf("%w: unit %d is the sender's own", refusal.ErrNotYours, u.Index)
	case known && outsider && !m.IsGuest() && !m.Participating() && m.Why != reason.Left && m.Why != reason.Returning &&
		m.Why != reason.Differs && !m.Absent():
		return fmt.Errorf("%w: %s (%s)", refusal.ErrInactive, from, m.Why)
	case !known && len(s.Members) >= terms.MaxMembers+crew.MaxGuests:
		return fmt.Errorf("%w: the run has %d members", refusal.ErrWrongPhase, len(s.Members))
	case outsider && s.GuestsAmong(u.Challengers) >= maxGuestChallengers:
		return fmt.Errorf("%w: %d disputes of guests about unit %d are open", refusal.ErrWrongPhase, maxGuestChallengers,
			u.Index)
	}
	return nil
}
