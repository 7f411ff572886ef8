package progress

import (
	"github.com/starling-network/starling/protocol/run/work"
)

// Rounds may overlap: the updates of a round travel, and are combined and attested, while the next one is trained. A
// unit begins it from the checkpoint that is there, less its own progress of the round before, which it has handed on
// to itself. So a round ends when its units are committed and the checkpoint after it is attested, which is made of the
// updates of the round before.
//
// The last round of a group (Terms.Carry) waits for its own updates, too, and the first of the next has nothing to wait
// for.

// Sent are the units whose updates make the next checkpoint, in order of round and index.
func (p Progress) Sent() work.Units {
	if !p.Terms.Overlap {
		return p.Units
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

// Combines reports whether all is committed that the next checkpoint is made of.
func (p Progress) Combines() bool {
	_, diverged := p.Diverged()
	return p.Phase == Attest && !diverged || p.Phase == Train && p.AttestsAhead()
}
