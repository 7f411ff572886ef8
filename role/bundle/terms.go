package bundle

import (
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Checks is the verification that a consumer orders for a job.
type Checks struct {
	AuditPPM  uint32          // floor of the audit rate, parts per million
	Drawn     bool            // audits go to the end of a drawn segment
	Screen    terms.Screen    // how members compare updates; off in slices, where no member has a whole one
	Tolerance terms.Tolerance // zero: the work is exact
	Attested  terms.Attested  // workers that are audited less
	Slices    uint32          // in which a round is reduced; 0: every member combines all updates
}

// deadlines are the first ones of a job, in blocks: later ones follow observed times (protocol/run).
var deadlines = terms.Deadlines{Train: 600, Audit: 600, Attest: 300, Challenge: terms.MinBlocks}

// Terms are the terms of an order: those that ReadJob checks follow from the work, and the rest from its checks. flops
// are those of a step. referee.Rollout gives the terms of units that draw. The bundle and the first checkpoint, which
// are known once their blobs are stored, are left out.
func Terms(id string, s *train.Spec, flops uint64, c Checks) terms.Terms {
	if c.Slices > 0 {
		c.Screen = terms.ScreenOff
	}
	x := s.Exchange
	return terms.Terms{
		Job: id, Spec: s.Digest(), Rounds: s.Rounds, Units: s.Units, Segments: s.Segments(),
		UnitFlops: flops * uint64(s.Steps), Sizes: s.Sizes,
		AuditPPM: c.AuditPPM, PartialAudits: c.Drawn, Screen: c.Screen, Tolerance: c.Tolerance, Slices: c.Slices,
		Attested:  c.Attested,
		Deadlines: deadlines, Window: terms.OpenRounds(s.Units+s.Apart().Drawing(), x.Carry), Carry: x.Carry,
		Overlap: x.Overlap > 0,
	}
}
