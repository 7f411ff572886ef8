package work

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Units may carry a state: the part of an update that compression left out (error feedback) is added to the update of
// the same unit in the next round. The state belongs to the index of the unit, not to its worker. It is carried within
// a group of Terms.Carry rounds, of which the first starts from nothing: so it is a function of the checkpoints of
// that group, and any worker without it can compute it. This is why the rounds of a group become final together
// (package lineage), and why a unit that starts from a false state needs no culprit of its own: it is done again with
// everything after the lie.

// HandedState names the state that a unit carries over to the next round. The zero value is nothing.
type HandedState struct {
	Root canon.Digest `cbor:"1,keyasint"` // over the roots of its tensors, one for each parameter
	CID  string       `cbor:"2,keyasint"` // of its bytes; decides nothing: a worker without them computes them
	// it is the data of a round of a run that its consumer leads, from whom alone its bytes are
	Led bool `cbor:"3,keyasint,omitempty"`
}

// carries checks the carried state in a commitment to a unit of a round.
func carries(t terms.Terms, c Commitment, round uint32) error {
	if !t.Carries(round) || c.Diverged() {
		if c.HandedState != (HandedState{}) {
			return fmt.Errorf("%w: a unit of round %d carries no state", refusal.ErrBadCommitment, round)
		}
		return nil
	}
	if c.HandedState.Root.IsZero() || !terms.ValidCID(c.HandedState.CID) {
		return fmt.Errorf("%w: no root of the carried state, or a CID of %d bytes, wanted 1 to %d",
			refusal.ErrBadCommitment, len(c.HandedState.CID), terms.MaxCID)
	}
	return nil
}

// Starts returns the carried state that a unit of the round starts from.
func (l RoundState) Starts(unit uint32) HandedState {
	if uint64(unit) >= uint64(len(l.From)) {
		return HandedState{}
	}
	return l.From[unit]
}

// Data is the CID of the data of a round of a run that its consumer leads; "" of any other.
func (l RoundState) Data() string {
	if len(l.From) == 0 || !l.From[0].Led {
		return ""
	}
	return l.From[0].CID
}

// Before returns the round whose carried states a round starts from, while that round is open. The answers that
// units learn from are none of these, and have no CID: they are several states. Nor are data of the consumer.
func (w Window) Before(l RoundState) (RoundState, bool) {
	if len(l.From) == 0 || l.From[0].CID == "" || l.Data() != "" {
		return RoundState{}, false
	}
	before, ok := w.At(l.Round - 1)
	return before, ok && before.Round+1 == l.Round
}
