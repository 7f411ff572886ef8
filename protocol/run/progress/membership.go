package progress

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Confessible reports whether the workers of the current round may still confess.
func (p Progress) Confessible() bool { return p.Phase == Train && p.Closed == 0 && !p.Drawn }

// MayDecline reports whether Decline would be accepted.
func (p Progress) MayDecline(id string) bool {
	m, ok := p.Member(id)
	part := m.Participating() || m.IsGuest() || m.Absent() || m.Why == reason.Returning
	return ok && !p.Over() && part && m.Commits == 0 && m.Speed == 0 && !(m.Active && p.Opened() && p.IsLast(m))
}

// MayLeave reports whether Leave would be accepted.
func (p Progress) MayLeave(id string) bool {
	m, ok := p.Member(id)
	return ok && !p.Over() && m.Participating() && !(m.Active && p.IsLast(m))
}

// IsLast reports whether a member is the last active one of a role that the run needs: workers that learn, and
// verifiers if units are audited.
func (p Progress) IsLast(m crew.Member) bool {
	if m.Role == crew.Worker {
		return !m.Generates && len(crew.Learners(p.Crew)) == 1
	}
	return len(p.Active(m.Role)) == 1 && p.Terms.AuditPPM > 0
}

// Liable reports whether a member may still lose stake over its work: over a unit that it committed, audited or
// challenged in a round that is not final, or over rounds that were rolled back by its conviction. Inactive members
// stay liable.
func (p Progress) Liable(id string) bool {
	if p.Over() {
		return false
	}
	return slices.ContainsFunc(p.All(), func(l work.RoundState) bool {
		return slices.Contains(l.Culprits, id) || slices.ContainsFunc(l.Units, func(u *work.Unit) bool {
			return u.ReportOf(id) >= 0 || u.Held != nil && (u.Held.Worker == id || slices.Contains(u.Held.Verifiers, id)) ||
				u.Worker == id &&
					u.Status != work.Assigned || (u.Status == work.Sealed || u.Status == work.Auditing) && u.Verifier == id ||
				slices.Contains(u.Challengers, id)
		})
	})
}
