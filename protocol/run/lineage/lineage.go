// Package lineage decides which rounds a run is built on: a quorum attests the checkpoint after a round; a round with
// nothing open becomes final; a conviction or a refuted checkpoint rolls the run back; and a round that was rolled back
// is restored when its base is attested again. It edits a transition.Draft, and knows no message.
package lineage

import (
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/seating"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Rollbacks has the rules that follow a conviction: the run returns to an earlier round, and the rounds after it are
// kept aside.
type Rollbacks struct {
	*transition.Draft
	seats  *seating.Seats
	audits *auditing.Audits
	units  *assignment.Assignment
}

// Lineage is how rounds end: they are attested, become final, or the run diverges.
type Lineage struct {
	*transition.Draft
	rollbacks *Rollbacks
	panels    *auditing.Panels
}

// New returns the lineage of a draft.
func New(d *transition.Draft, seats *seating.Seats, audits *auditing.Audits, panels *auditing.Panels,
	units *assignment.Assignment) (*Rollbacks, *Lineage) {
	rollbacks := &Rollbacks{d, seats, audits, units}
	return rollbacks, &Lineage{d, rollbacks, panels}
}
