package role

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/work"
)

// CheckOf is the check of a unit of a round, by its commitment of now.
func CheckOf(l work.RoundState, u *work.Unit) Check {
	return Check{Work: u.ID(l.Round), Base: l.Base, Worker: u.Worker, Commit: u.Commit}
}

// Challengeable reports whether a unit may be challenged after a check that no audit asked for.
func Challengeable(u *work.Unit) bool {
	return u.Status == work.Auditing || u.Status == work.Disputed || u.Status == work.Accepted
}

// Of reports whether the check was of the current commitment of a unit: a revealed planted fault replaces it.
func (c Checked) Of(u *work.Unit) bool {
	return slices.Equal(c.Action.Commit.Segments, u.Commit.Segments)
}

// Challenge is the challenge of a unit that a check found wrong; false if it is right, or the challenger has already
// made it, or the unit cannot be challenged now.
func (c Checked) Challenge(u *work.Unit, challenger string) (Challenge, bool) {
	if c.Right || !Challengeable(u) || slices.Contains(u.Challengers, challenger) {
		return Challenge{}, false
	}
	return Challenge{Work: c.Action.Work, Segment: c.Differ, Commitment: u.Commit.Digest()}, true
}
