package work

import (
	"slices"

	"github.com/starling-network/starling/canon"
)

// Digest tells a commitment from every other, also from that which takes its place when a planted fault is shown.
func (c Commitment) Digest() canon.Digest { return canon.Hash("starling/commitment/1", c) }

// A unit whose weights become infinite or no numbers is executed to its end like any other, and every bit of its states
// is specified. Only an update cannot be made of it. Its worker commits to the states and to no update: the claim that
// there is none is settled like every other, by an audit, which is certain, and by disputes. When it holds there is
// nothing to go on with: any other worker comes to the same.

// Diverged reports whether a commitment says that the update of its unit is not finite.
func (c Commitment) Diverged() bool { return c.UpdateCID == "" }

// Diverged returns a unit of the current round whose worker says that its update is not finite.
func (w Window) Diverged() (Unit, bool) {
	i := slices.IndexFunc(w.Units, func(u *Unit) bool { return u.Status != Assigned && u.Commit.Diverged() })
	if i < 0 {
		return Unit{}, false
	}
	return *w.Units[i], true
}

// Unmasked reports whether the worker of an attempt at a unit has shown that it had planted a fault in it.
func (w Window) Unmasked(id UnitID) bool {
	u, ok := w.Find(id)
	return ok && len(u.Commit.Segments) > 0 && u.Commit.HiddenRoots.IsZero()
}
