package work

import (
	"slices"

	"github.com/starling-network/starling/canon"
)

// Digest tells a commitment from every other, also from that which takes its place when a planted fault is shown.
func (c Commitment) Digest() canon.Digest { return canon.Hash("starling/commitment/1", c) }

// A unit whose weights become infinite or NaN is executed to its end like any other, and every bit of its states is
// specified. It has no update. Its worker commits to the state roots and to no update; that claim is settled like any
// other, by an audit, which is certain, and by disputes. If the claim holds, the run cannot continue: every worker
// would get the same result.

// Diverged reports whether a commitment says that the update of its unit is not finite. A unit that draws has no
// update, and names the answers that it drew as its carried state; a stage has heads of its links with or without one.
func (c Commitment) Diverged() bool {
	return c.UpdateCID == "" && (c.HandedState.CID == "" || len(c.Links) > 0)
}

// Diverged returns a unit of the current round whose worker says that its update is not finite.
func (w Window) Diverged() (Unit, bool) {
	i := slices.IndexFunc(w.Units, func(u *Unit) bool { return u.Status != Assigned && !u.Draws && u.Commit.Diverged() })
	if i < 0 {
		return Unit{}, false
	}
	return *w.Units[i], true
}

// Unmasked reports whether the worker of an attempt at a unit has revealed a planted fault in it.
func (w Window) Unmasked(id UnitID) bool {
	u, ok := w.Find(id)
	return ok && len(u.Commit.Segments) > 0 && u.Commit.HiddenRoots.IsZero()
}
