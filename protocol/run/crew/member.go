package crew

import (
	"cmp"

	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

func (m Member) IsGuest() bool { return m.Why == reason.Guest }

// Guest reports whether an account has duties in the run without a seat.
func (c Crew) Guest(id string) bool {
	m, _ := c.Member(id)
	return m.IsGuest()
}

// MayBeGuest reports whether a member without duties may have those of a guest: it is not out of the run for
// misconduct.
func (m Member) MayBeGuest() bool {
	return m.IsGuest() || m.Role == Verifier && !m.Active && m.Why == reason.Left
}

func (c Crew) GuestsAmong(ids []string) (n int) {
	for _, id := range ids {
		if m, _ := c.Member(id); !m.Active {
			n++
		}
	}
	return n
}

// Participating reports whether a member takes part: it is active, or on probation.
func (m Member) Participating() bool { return m.Active || m.Why == reason.OnProbation }

// OwnerID is the account that a member works for.
func (m Member) OwnerID() string { return cmp.Or(m.Owner, m.ID) }

// Present counts the members of a role, or the generators among the workers, that are active or on probation, without
// those that earn their stake: their places are additional ones.
func (c Crew) Present(r Role) uint32 {
	n := uint32(0)
	for _, m := range c.Members {
		if (m.Role == r || m.Class() == r) && m.Participating() && !m.Earning {
			n++
		}
	}
	return n
}

// Absent reports whether a member is out because it was offline, or because its attestation ended, which says nothing
// about its work.
func (m Member) Absent() bool {
	switch m.Why {
	case reason.MissedDeadlines, reason.MissedAudits, reason.MissedAttest, reason.MissedSlices, reason.Unproven,
		reason.Unattested:
		return !m.Active
	}
	return false
}

// Unbelieved reports whether a verifier was found to pass units without executing them.
func Unbelieved(m Member) bool {
	return m.Why == reason.SealUnopened || m.Why == reason.PlantPassed || m.Why == reason.Differs
}

// Measure smooths the time that a worker takes for a whole unit, in 1/256 block. Where units have different sizes, a
// shorter time counts at once: scaled up from a small unit, the fixed time around its steps counts several times.
func (m *Member) Measure(parts int64, sized bool) {
	now := uint32(min(parts, terms.MaxBlocks<<8))
	if m.Speed == 0 || sized && now < m.Speed {
		m.Speed = now
		return
	}
	m.Speed = smoothed(m.Speed, now)
}

// MeasureDrawing is Measure for a unit that draws.
func (m *Member) MeasureDrawing(parts int64) {
	m.DrawSpeed = smoothed(m.DrawSpeed, uint32(min(parts, terms.MaxBlocks<<8)))
}

func smoothed(before, now uint32) uint32 {
	if before == 0 {
		return now
	}
	return before + (now >> 2) - (before >> 2)
}
