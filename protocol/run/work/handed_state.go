package work

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/refusal"
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
func carries(t terms.Terms, c Commitment, round uint32) error {
	if !t.Carries(round) || c.Diverged() {
		if c.HandedState != (HandedState{}) {
			return fmt.Errorf("%w: a unit of round %d hands on no state", refusal.ErrBadCommitment, round)
		}
		return nil
	}
	if c.HandedState.Root.IsZero() || !terms.ValidCID(c.HandedState.CID) {
		return fmt.Errorf("%w: no root of the state that is handed on, or a CID of %d bytes, wanted 1 to %d",
			refusal.ErrBadCommitment, len(c.HandedState.CID), terms.MaxCID)
	}
	return nil
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
