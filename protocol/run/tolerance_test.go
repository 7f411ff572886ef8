package run

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

// tolerant are the terms of a run whose updates may be a tenth apart.
func tolerant() Terms {
	t := terms()
	t.Tolerance = Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	return t
}

// report answers the audit of a unit of the current round.
func (g *stage) report(unit, distance, cosine uint32) (verifier string) {
	g.t.Helper()
	u := g.s.Units[unit]
	g.must(func(s State) (State, []Event, error) {
		return s.Report(g.env(), u.Verifier, s.Round, unit, u.Attempt, distance, cosine)
	})
	return u.Verifier
}

// reportAll finds every unit under audit within the tolerance.
func (g *stage) reportAll() {
	g.t.Helper()
	for i, u := range g.s.Units {
		if u.Status == Auditing && g.s.Tolerant(*u) {
			g.report(uint32(i), 1000, 999_999)
		}
	}
}

func (g *stage) refused(want error, f func(State) (State, []Event, error)) {
	g.t.Helper()
	if err := g.do(f); !errors.Is(err, want) {
		g.t.Errorf("%v, want %v", err, want)
	}
}

// nobodySlashed checks that nothing happened that costs stake.
func (g *stage) nobodySlashed() {
	g.t.Helper()
	if n := g.count(DisputeEnded) + g.count(AuditBroken) + g.count(RolledBack); n > 0 {
		g.t.Errorf("%d events that cost stake or work of others", n)
	}
}

// A tolerant round is attested when its audits are over, however long that takes, and nobody is blamed for the wait.
func TestTolerantRoundWaitsForItsAudits(t *testing.T) {
	g := begin(t, tolerant(), crew(3, 2))
	for round := range g.s.Terms.Rounds {
		g.toAudits()
		g.refused(ErrWrongPhase, func(s State) (State, []Event, error) { return s.Attest(g.env(), round, vote(s, "w0")) })
		u := g.s.Units[0]
		g.refused(ErrWrongPhase, func(s State) (State, []Event, error) {
			return s.Pass(g.env(), u.Verifier, round, 0, u.Attempt, canon.Sum("seal"))
		})
		g.refused(ErrWrongPhase, func(s State) (State, []Event, error) { return s.Challenge(g.env(), "v0", round, 0, u.Attempt) })
		g.refused(ErrNotYours, func(s State) (State, []Event, error) {
			return s.Report(g.env(), u.Worker, round, 0, u.Attempt, 0, 1_000_000)
		})
		g.tick(8)
		g.reportAll()
		g.tick(1)
		g.attestAll()
	}
	g.tick(5)
	g.phase(Done)
	if g.count(AuditPassed) != 8 || g.count(MemberLeft) != 0 || g.count(UnitReassigned) != 0 {
		t.Errorf("events: %+v", g.events)
	}
	g.nobodySlashed()
}

// What two verifiers find outside is not paid and goes to another worker, whose attempt is settled by its bits.
func TestOutsideIsWithheldAndDoneExactly(t *testing.T) {
	g := begin(t, tolerant(), crew(3, 2))
	g.toAudits()
	u := g.s.Units[1]
	first := g.report(1, 100_001, 999_999)
	if v := g.s.Units[1]; v.Status != Auditing || v.Verifier == first || v.Worker != u.Worker {
		t.Fatalf("the second verifier is not asked: %+v", v)
	}
	second := g.report(1, 1, 989_999)
	next := g.s.Units[1]
	if next.Worker == u.Worker || !next.Exact || !next.Audited || next.Status != Assigned || len(next.Doubts) > 0 {
		t.Fatalf("not withheld: %+v", next)
	}
	if m, _ := g.s.Member(u.Worker); m.Passed != 0 || m.Missed != 1 || !m.Active {
		t.Errorf("its worker: %+v", m)
	}
	var paid []string
	for _, e := range g.events {
		if e.Kind == AuditOutside {
			paid = append(paid, e.Who)
		}
	}
	if !slices.Equal(paid, []string{first, second}) {
		t.Errorf("paid are %v", paid)
	}
	g.phase(Train)
	g.commitAll()
	g.tick(2)
	g.reportAll()
	g.refused(ErrWrongPhase, func(s State) (State, []Event, error) {
		return s.Report(g.env(), s.Units[1].Verifier, 0, 1, next.Attempt, 0, 1_000_000)
	})
	g.passAll()
	g.attestAll()
	g.nobodySlashed()
	if g.s.Round != 1 {
		t.Errorf("the run is in round %d", g.s.Round)
	}
	g.challenge("v0", 0, 1) // an exact attempt can be disputed until its round is final
	g.verdict(0, 1, true)
	if g.s.Round != 0 || g.count(RolledBack) != 1 {
		t.Errorf("no rollback over an exact lie: round %d", g.s.Round)
	}
}

func TestOneVerifierDecidesAlone(t *testing.T) {
	g := begin(t, tolerant(), crew(3, 1))
	g.toAudits()
	g.report(0, 2_000_000, 0)
	if u := g.s.Units[0]; !u.Exact || u.Status != Assigned {
		t.Errorf("%+v", u)
	}
}

// A verifier that alone finds an update outside is not paid for that, and harms nobody.
func TestContradictedVerifierIsNotPaid(t *testing.T) {
	g := begin(t, tolerant(), crew(3, 2))
	g.toAudits()
	u := g.s.Units[2]
	liar := g.report(2, 500_000, 500_000)
	g.report(2, 10, 1_000_000)
	if v := g.s.Units[2]; v.Status != Accepted || !v.Passed || v.Worker != u.Worker {
		t.Fatalf("%+v", v)
	}
	i := slices.IndexFunc(g.events, func(e Event) bool { return e.Kind == AuditMissed && e.Why == WhyContradicted })
	if i < 0 || g.events[i].Who != liar || g.count(AuditOutside) != 0 {
		t.Errorf("events: %+v", g.events)
	}
	g.reportAll()
	g.attestAll()
	g.nobodySlashed()
}

// What most members find odd is withheld at once, also under audit; after the attestation it is too late.
func TestOddIsWithheld(t *testing.T) {
	g := begin(t, tolerant(), crew(4, 1))
	g.toAudits()
	u := g.s.Units[0]
	said := 0
	for _, m := range g.s.Members {
		if m.ID != u.Worker && g.s.Units[0].Attempt == u.Attempt {
			g.must(func(s State) (State, []Event, error) { return s.Suspect(g.env(), m.ID, 0, 0, u.Attempt) })
			said++
		}
	}
	if v := g.s.Units[0]; said != 3 || !v.Exact || v.Worker == u.Worker {
		t.Fatalf("after %d reports: %+v", said, v)
	}
	g.commitAll()
	g.tick(2)
	g.reportAll()
	g.passAll()
	g.attestAll()
	other := g.unit(0, 1)
	from := "w0"
	if other.Worker == from {
		from = "w1"
	}
	g.refused(ErrWrongPhase, func(s State) (State, []Event, error) { return s.Suspect(g.env(), from, 0, 1, other.Attempt) })
	g.nobodySlashed()
}

// A tolerant worker that keeps its update back costs its verifier nothing.
func TestUnavailableTolerantUpdateMovesOn(t *testing.T) {
	g := begin(t, tolerant(), crew(3, 1))
	g.toAudits()
	u := g.s.Units[0]
	for _, m := range g.s.Members {
		if m.ID != u.Worker && g.s.Units[0].Attempt == u.Attempt {
			g.must(func(s State) (State, []Event, error) { return s.Missing(g.env(), m.ID, 0, 0, u.Attempt, 0) })
		}
	}
	if v := g.s.Units[0]; v.Status != Assigned || v.Exact || v.Worker == u.Worker {
		t.Errorf("%+v", v)
	}
}

func TestWorkerThatIsWithheldLeavesInTheEnd(t *testing.T) {
	long := tolerant()
	long.Rounds = 20
	g := begin(t, long, crew(3, 1))
	const bad = "w0"
	for g.s.Round < long.Rounds && g.count(MemberLeft) == 0 {
		g.toAudits()
		for i, u := range g.s.Units {
			switch {
			case u.Status != Auditing || !g.s.Tolerant(*u):
			case u.Worker == bad:
				g.report(uint32(i), 1_000_000, 0)
			default:
				g.report(uint32(i), 0, 1_000_000)
			}
		}
		g.commitAll()
		g.tick(2)
		g.passAll()
		g.attestAll()
	}
	if m, _ := g.s.Member(bad); m.Active || m.Why != WhyWithheld {
		t.Errorf("after %d rounds: %+v", g.s.Round, m)
	}
	g.nobodySlashed()
}

// FuzzTolerantRun is FuzzRun in a tolerant run, where verifiers say what they like: an attested round has nothing open, and
// nobody is slashed over work that is not exact.
func FuzzTolerantRun(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 20 {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		all := tolerant()
		all.AuditPPM = 300_000
		all.Deadlines = Deadlines{Train: 3, Audit: 3, Attest: 3, Challenge: 2}
		s, err := New(all, crew(4, 2), 0)
		if err != nil {
			t.Fatal(err)
		}
		height := int64(1)
		for ; len(script) >= 3; script = script[3:] {
			op, who, what := script[0], script[1], script[2]
			env := Env{Height: height, Beacon: canon.Sum("fuzz/beacon", []byte(fmt.Sprint(height)))}
			before := canon.MustMarshal(s)
			after, events, err := move(s, env, op%16, who, what)
			if op&0x30 == 0x10 && len(s.Units) > 0 {
				u := s.Units[int(what)%len(s.Units)]
				after, events, err = s.Report(env, u.Verifier, s.Round, u.Index, u.Attempt, uint32(who)<<10, 1_000_000)
			} else if op%16 == 0 {
				height++
			}
			if !bytes.Equal(before, canon.MustMarshal(s)) || err != nil && (!bytes.Equal(before, canon.MustMarshal(after)) || len(events) > 0) {
				t.Fatalf("operation %d changed its receiver, or was refused with %v and changed the state", op%16, err)
			}
			for _, e := range events {
				u, err := s.find(e.Round, e.Unit, s.attemptAt(e.Round, e.Unit))
				if (e.Kind == DisputeEnded || e.Kind == AuditBroken) && (err != nil || s.Tolerant(u)) {
					t.Fatalf("%+v over work that is not exact", e)
				}
			}
			s = after
			hold(t, s)
			for _, l := range s.Open {
				if slices.ContainsFunc(l.Units, func(u *Unit) bool { return s.Tolerant(*u) && u.Status != Accepted }) {
					t.Fatalf("round %d is attested with something open", l.Round)
				}
			}
		}
	})
}

func (s State) attemptAt(round, unit uint32) uint32 {
	if l, ok := s.At(round); ok && int(unit) < len(l.Units) {
		return l.Units[unit].Attempt
	}
	return 0
}

// Who has a long history of passed audits in tolerant work, over which nobody is convicted, is still audited in half of its units: so
// it cannot work honestly for a while to fake many units unseen.
func TestHistoryDoesNotLowerTolerantAuditsBelowHalf(t *testing.T) {
	exact, loose := terms(), tolerant()
	exact.AuditPPM, loose.AuditPPM = 100_000, 100_000
	if exact.Floor() != 100_000 || loose.Floor() != 500_000 {
		t.Fatalf("floors of %d and %d", exact.Floor(), loose.Floor())
	}
	members := crew(3, 2)
	for i := range members {
		members[i].Passed = 30
	}
	drawn := func(terms Terms) (n int) {
		for job := range 200 {
			terms.Job = fmt.Sprint("job-", job)
			g := begin(t, terms, members)
			g.toAudits()
			n += g.count(AuditDrawn)
		}
		return n
	}
	units := int(200 * loose.Units)
	if n := drawn(loose); n < units*2/5 || n > units*3/5 {
		t.Errorf("%d of %d tolerant units are audited", n, units)
	}
	if n := drawn(exact); n > units/5 {
		t.Errorf("%d of %d exact units are audited", n, units)
	}
}
