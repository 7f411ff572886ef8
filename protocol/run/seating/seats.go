// Package seating takes accounts into a run in progress: members through a probation, and guests, which have no seat.
// It edits a transition.Draft. Package transition has the rules for leaving, and package crew the weight of a member.
package seating

import (
	"github.com/starling-network/starling/protocol/run/transition"
)

// Seats has the rules for accounts that join, and for guests.
type Seats struct{ *transition.Draft }

// New returns the seats of a draft.
func New(d *transition.Draft) *Seats { return &Seats{d} }
