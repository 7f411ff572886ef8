package progress

import (
	"github.com/starling-network/starling/protocol/run/work"
)

// Rounds may overlap: the updates of a round are sent, combined and attested while the next round is trained. A unit
// of the next round starts from the latest attested checkpoint, less its own progress of the round before, which is
// its carried state. So a round ends when its units are committed and the checkpoint after it, which is made of the
// updates of the round before, is attested.
//
// The last round of a group (Terms.Carry) waits for its own updates, too, and the first round of the next group waits
// for none.

// Sent are the units whose updates make the next checkpoint, in order of round and index.
func (p Progress) Sent() work.Units {
	if !p.Terms.Overlap {
		return p.Units.Learning()
	}
	var units work.Units
	for _, round := range p.Terms.Applied(p.Round) {
		if l, ok := p.At(round); ok {
			units = append(units, l.Units...)
		}
	}
	return units
}

// AttestsAhead reports whether the next checkpoint is made without the updates of the current round, so that members
// attest it while they train.
func (p Progress) AttestsAhead() bool { return p.Terms.Overlap && p.Terms.Carries(p.Round) }

// Combines reports whether all updates that the next checkpoint is made of are committed.
func (p Progress) Combines() bool {
	_, diverged := p.Diverged()
	return p.Phase == Attest && !diverged || p.Phase == Train && p.AttestsAhead()
}
