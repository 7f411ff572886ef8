package worker

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

func (w *Worker) nonce(at work.UnitID) canon.Digest {
	return audit.Nonce(w.secret, w.run.Terms.Job, at.Round, at.Unit, at.Attempt)
}

// withHiddenRoots is the commitment to a result: it hides the right state roots, and shows others if a fault is
// planted.
func (w *Worker) withHiddenRoots(at work.UnitID, c work.Commitment) work.Commitment {
	nonce := w.nonce(at)
	c.HiddenRoots = audit.Hide(nonce, c.Segments)
	if w.plants(nonce) {
		c.Segments = audit.Plant(nonce, c.Segments)
	}
	return c
}

// plants reports whether to plant a fault: by chance, and never more of them than it may show.
func (w *Worker) plants(nonce canon.Digest) bool {
	if w.secret.IsZero() || w.run.Terms.AuditPPM == 0 || w.run.Terms.Tolerance.DistancePPM > 0 || !audit.Plants(nonce) ||
		len(w.run.Terms.Pipeline.Flops) > 0 { // the other stages of its replica would not agree
		return false
	}
	m, _ := w.run.Member(w.id)
	planted := m.Planted
	for _, l := range w.run.All() {
		for _, u := range l.Units {
			if u.Worker == w.id && w.suspect(u.ID(l.Round), u) {
				planted++
			}
		}
	}
	return planted < audit.MayPlant(m.Commits)
}

// suspect reports whether a fault may be planted in what it committed for a unit. Whether one is, the right roots tell.
func (w *Worker) suspect(at work.UnitID, u *work.Unit) bool {
	return u.Status != work.Assigned && !u.Commit.HiddenRoots.IsZero() && !w.secret.IsZero() && audit.Plants(w.nonce(at))
}

// answered reports whether the verifier of a unit can no longer learn from it that a fault was planted.
func answered(u *work.Unit) bool {
	return u.Status == work.Sealed || u.Status == work.Accepted || u.Status == work.Disputed
}

// planted reports whether a dispute is about a fault that it planted, as far as it knows.
func (w *Worker) planted(g dispute.Dispute) bool {
	at := role.Disputed(g)
	d, ok := w.run.Playing(at, g.Config.Challenger)
	right, computed := w.computed[at]
	return ok && w.suspect(at, &d.Unit) && (!computed || !slices.Equal(right.Segments, d.Commit.Segments))
}
