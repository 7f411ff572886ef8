package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Units may hand on a state: what error feedback left out of the update of a unit is added to the update of the same
// unit in the next round. The state belongs to the index of the unit, whoever computes it. It is handed on within a
// group of Terms.Carry rounds, of which the first starts from nothing, so that it is a function of the checkpoints of
// that group, and whoever misses it can compute it. That is why the rounds of a group become final together (tick.go),
// and why what a lie was handed on to needs no owner: it is done again with everything after the lie.

// HandedState names what a unit hands on. The zero value is nothing.
type HandedState struct {
	Root canon.Digest `cbor:"1,keyasint"` // over the roots of its tensors, one for each parameter
	CID  string       `cbor:"2,keyasint"` // of its bytes. Nothing is decided by it: who cannot have them computes them
}

// carries checks what a commitment to a unit of a round says about the state that it hands on.
func carries(t Terms, c Commitment, round uint32) error {
	if !t.Carries(round) || c.Diverged() {
		if c.HandedState != (HandedState{}) {
			return fmt.Errorf("%w: a unit of round %d hands on no state", ErrBadCommitment, round)
		}
		return nil
	}
	if c.HandedState.Root.IsZero() || !terms.ValidCID(c.HandedState.CID) {
		return fmt.Errorf("%w: no root of the state that is handed on, or a CID of %d bytes, wanted 1 to %d",
			ErrBadCommitment, len(c.HandedState.CID), MaxCID)
	}
	return nil
}

// handedOn is what the units of the round after the current one start from.
func (d *lineage) handedOn() []HandedState {
	if !d.Terms.Carries(d.Round) {
		return nil
	}
	from := make([]HandedState, len(d.Units))
	for i, u := range d.Units {
		from[i] = u.Commit.HandedState
	}
	return from
}

// Starts returns what a unit of the round starts from beside its checkpoint.
func (l RoundState) Starts(unit uint32) HandedState {
	if uint64(unit) >= uint64(len(l.From)) {
		return HandedState{}
	}
	return l.From[unit]
}

// Before returns the round that handed on what a round starts from, while it is open.
func (w Window) Before(l RoundState) (RoundState, bool) {
	if len(l.From) == 0 {
		return RoundState{}, false
	}
	before, ok := w.At(l.Round - 1)
	return before, ok && before.Round+1 == l.Round
}

// had returns which of the workers did each unit in the round before, and has the state it handed on; -1 is none.
func (d *assignment) had(workers []string) []int {
	had := slices.Repeat([]int{-1}, int(d.Terms.Units))
	if before, ok := d.Before(d.RoundState); ok {
		for i, u := range before.Units {
			had[i] = slices.Index(workers, u.Worker)
		}
	}
	return had
}

// questionOrigin audits what handed on the state that a unit starts from, once the unit is taken from its worker.
// Whoever has it then may not get that state, and would find, when it computes it, another than the committed one: only
// a verifier can do something about that, another than may have passed it as a friend. One that stopped at a drawn
// segment has not seen it.
func (d *assignment) questionOrigin(i int) {
	before, ok := d.Before(d.RoundState)
	if !ok {
		return
	}
	l := d.lap(before.Round)
	switch u := l.Units[i]; {
	case d.audits.lookers() == 0 || u.Passed && u.Segment == 0 && d.audits.lookers() == 1:
	case u.Passed && !d.spares(u.Index):
	case u.Status == Committed || u.Status == Disputed: // it is audited when its audits are drawn, or the dispute is over
		u = d.unit(l, i)
		u.Audited, u.Segment = true, 0
	case u.Status == Auditing && u.Segment != 0, u.Status == Accepted:
		u = d.unit(l, i)
		u.Passed, u.Segment = false, 0
		d.audits.audit(l, i)
	}
}

// originDisputed reports whether there is a dispute about a unit of an earlier round whose state led to what a unit
// starts from, unless a worker of the same owner did it, who has that state.
func originDisputed(s State, u Unit) bool {
	w, _ := s.Member(u.Worker)
	for l, ok := s.Before(s.RoundState); ok; l, ok = s.Before(l) {
		o := l.Units[u.Index]
		if m, _ := s.Member(o.Worker); o.Status == Disputed && m.owner() != w.owner() {
			return true
		}
	}
	return false
}
