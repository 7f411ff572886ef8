package run

import "slices"

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

// diverge ends a run of which a unit diverged, when that may no longer be questioned: all audits of the round are over,
// every round before it is final, and the time for challenges has passed.
func (d *lineage) diverge() {
	if d.rollbacks.lost() && len(d.Open) == 0 && len(d.RolledBack) == 0 {
		d.halt(WhyDiverged)
	}
}

// lost reports whether it may no longer be questioned that a unit of the current round diverged.
func (d *rollbacks) lost() bool {
	if _, diverged := d.Diverged(); !diverged || d.Phase != Attest || !d.Drawn {
		return false
	}
	settled := !slices.ContainsFunc(d.Units, func(u *Unit) bool { return u.Status != Accepted })
	return settled && d.env.Height >= d.Closed+d.ChallengeBlocks()
}
