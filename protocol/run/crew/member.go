package crew

import (
	"cmp"

	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
)

func (m Member) IsGuest() bool { return m.Why == reason.Guest }

// Guest reports whether an account answers for something in the run without a seat.
func (c Crew) Guest(id string) bool {
	m, _ := c.Member(id)
	return m.IsGuest()
}

// MayBeGuest reports whether a member that has no duties may have those of a guest: it is out of the run for nothing
// that it did.
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

// Participating reports whether a member takes part: it is active, or on trial.
func (m Member) Participating() bool { return m.Active || m.Why == reason.OnProbation }

// OwnerID is the account that a member works for.
func (m Member) OwnerID() string { return cmp.Or(m.Owner, m.ID) }

// Present counts the members of a role that are active or on trial.
func (c Crew) Present(r Role) uint32 {
	n := uint32(0)
	for _, m := range c.Members {
		if m.Role == r && m.Participating() {
			n++
		}
	}
	return n
}

// Absent reports whether a member is out because it was not there, which says nothing about its work.
func (m Member) Absent() bool {
	switch m.Why {
	case reason.MissedDeadlines, reason.MissedAudits, reason.MissedAttest, reason.MissedSlices, reason.Unproven:
		return !m.Active
	}
	return false
}

// Unbelieved reports whether a verifier was found not to look at what it passes.
func Unbelieved(m Member) bool {
	return m.Why == reason.SealUnopened || m.Why == reason.PlantPassed || m.Why == reason.Differs
}

// Measure smooths what a worker takes for a whole unit, in 1/256 block. Where units have different sizes it counts at
// once that one took less: what goes by beside the steps counts several times in what a small one says of a whole one.
func (m *Member) Measure(parts int64, sized bool) {
	now := uint32(min(parts, terms.MaxBlocks<<8))
	if m.Speed == 0 || sized && now < m.Speed {
		m.Speed = now
		return
	}
	m.Speed += (now >> 2) - (m.Speed >> 2)
}
