package work

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Combination is the claim of an attestation: that Next is the checkpoint which the outer optimizer makes of Base and
// these updates.
type Combination struct {
	Base, Next terms.Checkpoint
	Updates    []Sent // in order of unit
}

// Sent is the update of a unit, as its commitment binds it.
type Sent struct {
	Round, Unit uint32
	Root        canon.Digest
}

// Combination returns the statement of the members that signed a checkpoint after a round.
func (l RoundState) Combination(next terms.Checkpoint) Combination {
	c := Combination{Base: l.Base, Next: next}
	for _, u := range l.Units.Learning() {
		c.Updates = append(c.Updates, Sent{Round: l.Round, Unit: u.Index, Root: u.Commit.Update})
	}
	return c
}

// RoundBefore returns the round after which a checkpoint was attested that its rounds are still built on. It is not
// final, and the checkpoint may be shown to be another than its updates lead to.
func (w Window) RoundBefore(c terms.Checkpoint) (RoundState, bool) {
	rounds := w.Rounds()
	for i := range w.Open {
		if rounds[i+1].Base == c {
			return rounds[i], true
		}
	}
	return RoundState{}, false
}
