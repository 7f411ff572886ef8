// Package assignment is which worker has which unit of the current round, and by when it owes it: how units are dealt
// by measured speed, given to others when they are late, lost or withheld, and taken back by who was late and commits
// first. It edits a transition.Draft. How units are split over speeds is the arithmetic of package schedule.
package assignment

import (
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Assignment is which worker has which unit of the current round, and by when it owes it.
type Assignment struct {
	*transition.Draft
	audits *auditing.Audits
}

// New returns the assignment of a draft.
func New(d *transition.Draft, audits *auditing.Audits) *Assignment { return &Assignment{d, audits} }
