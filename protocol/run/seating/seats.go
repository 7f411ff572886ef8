// Package seating is who joins a run that goes on, and how: the probation of who takes a seat, and guests, who have
// none. It edits a transition.Draft. Who leaves is the draft's own matter, and what a member weighs is package crew's.
package seating

import (
	"github.com/starling-network/starling/protocol/run/transition"
)

// Seats is who joins the run, and the guests, who have no seat.
type Seats struct{ *transition.Draft }

// New returns the seats of a draft.
func New(d *transition.Draft) *Seats { return &Seats{d} }
