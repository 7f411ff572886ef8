// Package readers says which members of a run execute which units at a moment, and so may read their data: the rule by
// which the keys of encrypted shards are released (docs/adr/0204-keys-of-shards-are-released-by-their-consumer.md). It
// knows no keys and no shards.
package readers

import (
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// Purpose is why a member executes a unit.
type Purpose string

// Purposes are part of the record of releases.
const (
	Trains  Purpose = "trains"  // it is the worker of the unit
	Audits  Purpose = "audits"  // it is the verifier that was drawn for the unit
	Proves  Purpose = "proves"  // on probation, it shows that it computes the same
	Answers Purpose = "answers" // its work on the unit is disputed, or it disputes it as the verifier that was drawn
)

// Reading is a unit that a member executes.
type Reading struct {
	work.UnitID
	Segment uint32 // the last segment of the unit that the member executes, counted from 1; 0: it executes the whole unit
	For     Purpose
}

// Of lists what a member executes in a run now, in the order of rounds and units: the units that it trains, or has
// trained and whose rounds are not final; those that it was drawn to audit, until its answer is settled; and the unit
// of its probation. An account that challenges a unit without having been drawn reads nothing, nor does a former worker
// of a unit, or a member that is out of the run and not in a dispute.
func Of(p *progress.Progress, member string) (list []Reading) {
	if p.Over() {
		return nil
	}
	active := p.IsActive(member)
	for l := range p.Each {
		for _, u := range l.Units {
			r := Reading{UnitID: u.ID(l.Round)}
			disputed := u.Status == work.Disputed
			switch {
			case u.Worker == member && (active || disputed):
				r.For = Trains
			case u.Verifier == member && (u.Status == work.Auditing || u.Status == work.Sealed || disputed):
				r.For, r.Segment = Audits, u.Segment
			default:
				continue
			}
			if disputed {
				r.For = Answers
			}
			list = append(list, r)
		}
	}
	if t, ok := p.Probation(member); ok && t.Task.Worker != "" {
		list = append(list, Reading{UnitID: t.Task.ID(), Segment: p.ProbationSegment(t.Task), For: Proves})
	}
	return list
}
