package run

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// audited plays a round of 180 units up to the draw of its audits, and counts those of each of three workers, w0 with a
// listed measurement, w1 with another, w2 with none, and the units of w0.
func audited(t *testing.T, passed, factor uint32) (counts map[string]int, units int) {
	t.Helper()
	x := long()
	x.Units, x.Rounds, x.Window, x.AuditPPM = 180, 1, 1, 200_000
	if factor > 0 {
		x.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")}, FactorPPM: factor}
	}
	members := newMembers(3, 1)
	for i := range members {
		members[i].Passed = passed
	}
	g := begin(t, x, members)
	g.attested = func(member string) canon.Digest {
		return map[string]canon.Digest{"w0": canon.Sum("image"), "w1": canon.Sum("another")}[member]
	}
	g.toAudits()
	counts = map[string]int{}
	for i := range x.Units {
		u := g.unit(0, i)
		if u.Worker == "w0" {
			units++
		}
		if u.Status != work.Accepted {
			counts[u.Worker]++
		}
	}
	return counts, units
}

// A worker on a machine with a listed measurement is audited at the lowered floor, one with another measurement as any
// other; none is free of audits, and a worker without history is audited whole.
func TestAttestedWorkersAreAuditedLess(t *testing.T) {
	plain, units := audited(t, 31, 0)
	lowered, _ := audited(t, 31, audit.LeastFactorPPM)
	if lowered["w1"] != plain["w1"] || lowered["w2"] != plain["w2"] {
		t.Errorf("of others are audited %v, and %v without attestation", lowered, plain)
	}
	if least, most := units/50, units/10; lowered["w0"] < least || lowered["w0"] > most || plain["w0"] < most {
		t.Errorf("of %d units %d are audited at a twentieth, and %d at a fifth", units, lowered["w0"], plain["w0"])
	}
	if all, n := audited(t, 0, audit.LeastFactorPPM); all["w0"] != n {
		t.Errorf("%d of %d units of a new worker are audited", all["w0"], n)
	}
}

// The floor is never zero, nor below a quarter, whatever the factor.
func TestLoweredFloor(t *testing.T) {
	for _, floor := range []uint32{0, 1, 3, 50_000, audit.Certain} {
		for _, factor := range []uint32{0, 1, audit.LeastFactorPPM, 600_000, audit.Certain, 1 << 31} {
			got := audit.Lowered(floor, factor)
			if got > floor || 4*uint64(got) < uint64(floor) || floor > 0 && got == 0 {
				t.Errorf("%d times %d is %d", floor, factor, got)
			}
		}
	}
	for name, a := range map[string]terms.Attested{
		"a factor alone": {FactorPPM: 500_000}, "no factor": {Measurements: []canon.Digest{{1}}},
		"a small factor": {Measurements: []canon.Digest{{1}}, FactorPPM: audit.LeastFactorPPM - 1},
		"a large factor": {Measurements: []canon.Digest{{1}}, FactorPPM: audit.Certain + 1},
		"no measurement": {Measurements: []canon.Digest{{}}, FactorPPM: audit.Certain},
		"too many":       {Measurements: make([]canon.Digest, terms.MaxMeasurements+1), FactorPPM: audit.Certain},
	} {
		x := newTerms()
		if x.Attested = a; x.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	x := newTerms()
	x.Attested = terms.Attested{Measurements: []canon.Digest{{1}}, FactorPPM: audit.Certain}
	if err := x.Validate(); err != nil {
		t.Error(err)
	}
	if x.Tolerance = (terms.Tolerance{DistancePPM: 100_000, CosinePPM: 900_000}); x.Validate() == nil {
		t.Error("tolerant work has attested machines")
	}
}
