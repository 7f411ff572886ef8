// Package assignment decides which worker has which unit of the current round, and until when. It deals units by
// measured speed, reassigns units that are late, lost or withheld, and gives a unit back to a late worker that commits
// first. It edits a transition.Draft. Package schedule has the arithmetic that splits units by speed.
package assignment

import (
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Assignment decides which worker has which unit of the current round, and the height by which it must commit.
type Assignment struct {
	*transition.Draft
	audits *auditing.Audits
}

// New returns the assignment of a draft.
func New(d *transition.Draft, audits *auditing.Audits) *Assignment { return &Assignment{d, audits} }
