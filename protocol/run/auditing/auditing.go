// Package auditing is the audits of the units of a run: which are audited and by whom, what follows from an answer,
// from none, and from one that was worth nothing. Exact units have one verifier, which seals the state that it reached;
// tolerant units have a panel, each of whom is bound to what it finds before anybody shows anything. The package edits
// a transition.Draft. It neither executes a unit nor decides a dispute, and takes units from their workers only through
// the interface of who deals them.
package auditing

import (
	"github.com/starling-network/starling/protocol/run/seating"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Audits is the audits of exact work: who looks at which unit, what follows from the answer, and from none.
type Audits struct {
	*transition.Draft
	seats  *seating.Seats
	panels *Panels
	units  withholder
}

// Panels is the audits of tolerant work, by several verifiers that are bound to what they find.
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

// Take says who takes units from their workers over an audit.
func (d *Audits) Take(units withholder) { d.units = units }
