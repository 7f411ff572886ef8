package verifier

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// watch returns what a proactive verifier does with spare time: one of the spare checks, which no audit asks for. As
// soon as it has a duty, that check is stopped.
func (v *Verifier) watch(s run.State, spare []role.Check, busy bool) []role.Action {
	tolerant := func(d work.AuditTarget) bool { return s.Tolerant(d.Unit) }
	if busy = busy || slices.ContainsFunc(s.Audits(v.id), tolerant); busy {
		if v.spare == nil || v.mine(s, v.spare.Work) {
			return nil
		}
		stop := role.Stop{Of: v.spare.Key()}
		v.spare = nil
		return []role.Action{stop}
	}
	if v.spare != nil || len(spare) == 0 || v.part.Paused() {
		return nil
	}
	next := slices.MinFunc(spare, func(a, b role.Check) int {
		x, y := v.turn(s, a.Work), v.turn(s, b.Work)
		return bytes.Compare(x[:], y[:])
	})
	v.spare = &next
	return []role.Action{next}
}

// may reports whether it watches a unit. A unit with a carried state, or that is a stage of a model, needs bytes from
// its worker, whose link serves others: of those it watches the fraction that is audited.
func (v *Verifier) may(s run.State, l work.RoundState, w work.UnitID) bool {
	alone := len(l.From) == 0 && len(s.Terms.Pipeline.Flops) == 0
	return alone || audit.Draw(v.turn(s, w), s.Terms.Job, w.Round, w.Unit, w.Attempt, s.Terms.AuditPPM)
}

// mine reports whether the verifier has drawn a unit by now.
func (v *Verifier) mine(s run.State, w work.UnitID) bool {
	d, ok := s.Find(w)
	return ok && d.Verifier == v.id && d.Status == work.Auditing
}

// turn is the place of a unit in the order in which it watches.
func (v *Verifier) turn(s run.State, w work.UnitID) canon.Digest {
	var at [12]byte
	for i, n := range []uint32{w.Round, w.Unit, w.Attempt} {
		binary.BigEndian.PutUint32(at[4*i:], n)
	}
	return canon.Sum("starling/watch/1", v.seed[:], []byte(s.Terms.Job), at[:])
}

// idle takes note that an action has ended.
func (v *Verifier) idle(a role.Action) {
	if v.spare != nil && a.Key() == v.spare.Key() {
		v.spare = nil
	}
}
