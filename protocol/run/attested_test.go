package run

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
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

// Where a job requires attested machines, a member whose attestation ends, or names other software, leaves the run and
// is not slashed: others take its units over, it comes back once its machine is attested again, and a run of which no
// worker is attested ends. Where the job does not require them, the member stays.
func TestMembersLeaveWithTheirAttestation(t *testing.T) {
	holds := map[string]canon.Digest{}
	play := func(required bool) *stage {
		x := many()
		x.Attested = terms.Attested{Measurements: []canon.Digest{canon.Sum("image")}, FactorPPM: audit.Certain,
			Required: required}
		g := begin(t, x, newMembers(3, 2))
		g.attested = func(member string) canon.Digest { return holds[member] }
		for _, m := range g.s.Members {
			holds[m.ID] = canon.Sum("image")
		}
		if g.tick(1); g.count(event.MemberLeft) > 0 {
			t.Fatal("a member leaves whose attestation holds")
		}
		holds["w0"], holds["v0"] = canon.Digest{}, canon.Sum("another")
		g.tick(1)
		return g
	}
	if g := play(false); g.count(event.MemberLeft) > 0 {
		t.Error("a member leaves a job that does not require attested machines")
	}

	g := play(true)
	for _, id := range []string{"w0", "v0"} {
		if m, _ := g.s.Member(id); m.Active || m.Why != reason.Unattested || g.s.Removed(id) {
			t.Errorf("%+v", m)
		}
	}
	if g.count(event.MemberLeft) != 2 || len(g.s.Work("w0")) > 0 || g.count(event.UnitReassigned) == 0 {
		t.Errorf("%d members left, %d units of w0", g.count(event.MemberLeft), len(g.s.Work("w0")))
	}
	g.commitAll()
	if g.count(event.UnitCommitted) != len(g.s.Units) {
		t.Errorf("%d of %d units are committed", g.count(event.UnitCommitted), len(g.s.Units))
	}

	m, _ := g.s.Member("w0")
	g.height = m.Since + g.s.TrainDeadline()
	holds["w0"] = canon.Sum("image")
	g.must(func(s State) (State, []event.Event, error) { return s.Return(g.env(), "w0") })
	if g.join("w0", crew.Worker); !g.s.MayReturn("v0", g.height) {
		t.Error("a verifier that was attested may not come back")
	}
	if _, ok := g.s.Probation("w0"); !ok {
		t.Error("a worker that is attested again does not come back")
	}

	g = play(true)
	clear(holds)
	g.tick(300)
	g.phase(progress.Halted)
	if g.s.Why != reason.NoWorkers {
		t.Errorf("the run ends with %s", g.s.Why)
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
		"a small factor":      {Measurements: []canon.Digest{{1}}, FactorPPM: audit.LeastFactorPPM - 1},
		"a large factor":      {Measurements: []canon.Digest{{1}}, FactorPPM: audit.Certain + 1},
		"a requirement alone": {Required: true},
		"no measurement":      {Measurements: []canon.Digest{{}}, FactorPPM: audit.Certain},
		"too many":            {Measurements: make([]canon.Digest, terms.MaxMeasurements+1), FactorPPM: audit.Certain},
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
