// Package auditing decides which units of a run are audited, by which verifiers, and what follows from an answer, from
// a missing answer and from an invalid one. Exact units have one verifier, which seals the state that it reached;
// tolerant units have a panel, whose members commit to their findings before any is shown. The package edits a
// transition.Draft. It neither executes a unit nor decides a dispute, and takes units from their workers only through
// the withholder interface.
package auditing

import (
	"github.com/starling-network/starling/protocol/run/seating"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Audits has the rules for audits of exact work: which verifier audits which unit, and what follows from its answer.
type Audits struct {
	*transition.Draft
	seats  *seating.Seats
	panels *Panels
	units  withholder
}

// Panels has the rules for audits of tolerant work, by several verifiers that commit to their findings.
type Panels struct {
	*transition.Draft
	audits *Audits
}

// withholder takes units of the current round from their workers, without a conviction.
type withholder interface {
	Withheld(i int)
	Withhold(i int, why string, held *work.Held)
}

// New returns the audits of a draft. Take completes them.
func New(d *transition.Draft, seats *seating.Seats) (*Audits, *Panels) {
	audits := &Audits{Draft: d, seats: seats}
	audits.panels = &Panels{d, audits}
	return audits, audits.panels
}

// Take sets the part that takes units from their workers after an audit.
func (d *Audits) Take(units withholder) { d.units = units }
