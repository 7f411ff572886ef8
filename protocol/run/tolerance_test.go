package run

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// tolerant are the terms of a run whose updates may be a tenth apart.
func tolerant() terms.Terms {
	t := newTerms()
	t.Tolerance = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	return t
}

// found is the right finding about a unit of the current round whose update has this distance and cosine.
func (g *stage) found(unit, distance, cosine uint32) audit.Finding {
	return audit.Finding{DistancePPM: distance, CosinePPM: cosine,
		End: commitment(g.s.RoundState, unit).Segments[newTerms().Segments]}
}

// say binds a verifier to a finding of a unit of the current round.
func (g *stage) say(verifier string, unit uint32, f audit.Finding) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return say(s, g.env(), verifier, s.Units[unit], f) })
}

func say(s State, env transition.Env, verifier string, u *work.Unit, f audit.Finding) (State, []event.Event, error) {
	seal := f.Seal(u.ID(s.Round).Subject(verifier, s.Terms.Job, 0), canon.Sum(verifier))
	return s.Report(env, verifier, u.ID(s.Round), seal, !s.Terms.Tolerance.Holds(f.DistancePPM, f.CosinePPM))
}

// figures shows what a verifier is bound to.
func (g *stage) figures(verifier string, unit uint32, f audit.Finding) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return figures(s, g.env(), verifier, s.Units[unit], f) })
}

func figures(s State, env transition.Env, verifier string, u *work.Unit,
	f audit.Finding) (State, []event.Event, error) {
	return s.ShowReport(env, verifier, u.ID(s.Round), f, canon.Sum(verifier))
}

// panels plays the audits of all units of the round that are not exact, with the findings of each verifier.
func (g *stage) panels(finds func(verifier string, u work.Unit) audit.Finding) {
	g.t.Helper()
	for range 20 {
		open := false
		for i, u := range g.s.Units {
			if u = g.s.Units[i]; !g.s.Tolerant(*u) {
				continue
			}
			attempt := u.Attempt
			for _, x := range u.Looks {
				f := finds(x.Verifier, *u)
				switch u := g.s.Units[i]; {
				case u.Attempt != attempt:
				case u.OwesReport(x.Verifier):
					g.say(x.Verifier, u.Index, f)
				case u.OwesFigures(x.Verifier):
					g.figures(x.Verifier, u.Index, f)
				}
			}
			open = open || g.s.Tolerant(*g.s.Units[i]) && len(g.s.Units[i].Looks) > 0
		}
		if !open {
			return
		}
		g.tick(2)
	}
	g.t.Fatalf("panels do not end: %+v", g.s.Units)
}

// report lets all verifiers find the same of a unit of the current round.
func (g *stage) report(unit, distance, cosine uint32) {
	g.t.Helper()
	attempt := g.s.Units[unit].Attempt
	for range 20 {
		for _, x := range g.s.Units[unit].Looks {
			switch u := g.s.Units[unit]; {
			case u.Attempt != attempt:
			case u.OwesReport(x.Verifier):
				g.say(x.Verifier, unit, g.found(unit, distance, cosine))
			case u.OwesFigures(x.Verifier):
				g.figures(x.Verifier, unit, g.found(unit, distance, cosine))
			}
		}
		if u := g.s.Units[unit]; u.Attempt != attempt || len(u.Looks) == 0 {
			return
		}
		g.tick(2)
	}
	g.t.Fatalf("the panel does not end: %+v", g.s.Units[unit])
}

// reportAll finds every unit under audit within the tolerance.
func (g *stage) reportAll() {
	g.t.Helper()
	g.panels(func(_ string, u work.Unit) audit.Finding { return g.found(u.Index, 1000, 999_999) })
}

func (g *stage) refused(want error, f func(State) (State, []event.Event, error)) {
	g.t.Helper()
	if err := g.do(f); !errors.Is(err, want) {
		g.t.Errorf("%v, want %v", err, want)
	}
}

// nobodySlashed checks that nothing happened that costs stake.
func (g *stage) nobodySlashed() {
	g.t.Helper()
	if n := g.count(event.DisputeEnded) + g.count(event.AuditBroken) + g.count(event.RolledBack); n > 0 {
		g.t.Errorf("%d events that cost stake or work of others", n)
	}
}

// A tolerant round is attested when its audits are over, however long they take, and no member is penalised for the
// wait.
func TestTolerantRoundWaitsForItsAudits(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 2))
	for round := range g.s.Terms.Rounds {
		g.toAudits()
		g.refused(refusal.ErrWrongPhase,
			func(s State) (State, []event.Event, error) { return s.Attest(g.env(), round, vote(s, "w0")) })
		u := g.s.Units[0]
		g.refused(refusal.ErrWrongPhase, func(s State) (State, []event.Event, error) {
			return s.Pass(g.env(), u.Looks[0].Verifier, work.UnitID{Round: round, Attempt: u.Attempt}, canon.Sum("seal"))
		})
		g.refused(refusal.ErrWrongPhase, func(s State) (State, []event.Event, error) {
			return s.Challenge(g.env(), "v0", work.UnitID{Round: round, Attempt: u.Attempt})
		})
		g.refused(refusal.ErrNotYours, func(s State) (State, []event.Event, error) {
			return s.Report(g.env(), u.Worker, work.UnitID{Round: round, Attempt: u.Attempt}, canon.Sum("seal"), false)
		})
		g.tick(8)
		g.reportAll()
		g.tick(1)
		g.attestAll()
	}
	g.tick(5)
	g.phase(progress.Done)
	if g.count(event.AuditPassed) < 8 || g.count(event.MemberLeft) != 0 || g.count(event.UnitReassigned) != 0 {
		t.Errorf("events: %+v", g.events)
	}
	g.nobodySlashed()
}

// An update that several verifiers of different owners all find outside is not paid. Its worker is excluded, and loses
// its deposit when another worker has done the unit again, in an exact attempt. All other units that it had in the
// round are done again, too.
func TestOutsideIsWithheldAndForfeitsTheDeposit(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 3))
	g.toAudits()
	u := g.s.Units[1]
	others := 0
	for _, v := range g.s.Units {
		if v.Worker == u.Worker {
			others++
		}
	}
	g.report(1, 100_001, 999_999)
	next := g.s.Units[1]
	if next.Worker == u.Worker || !next.Exact || !next.Audited || next.Status != work.Assigned || next.Held == nil ||
		len(next.Held.Verifiers) != 3 {
		t.Fatalf("not withheld: %+v", next)
	}
	if m, _ := g.s.Member(u.Worker); m.Active || m.Why != reason.Withheld || !g.s.Liable(u.Worker) {
		t.Errorf("its worker: %+v", m)
	}
	if n := g.count(event.UnitReassigned); n != others || g.count(event.AuditOutside) != 3 {
		t.Errorf("%d of %d units are done again, %d audits are paid", n, others, g.count(event.AuditOutside))
	}
	g.phase(progress.Train)
	g.commitAll()
	g.tick(2)
	g.reportAll()
	g.passAll()
	g.attestAll()
	g.nobodySlashed()
	if g.s.Round != 1 || g.count(event.DepositForfeited) != 0 {
		t.Errorf("the run is in round %d, %d deposits are forfeited", g.s.Round, g.count(event.DepositForfeited))
	}
	g.tick(8)
	i := slices.IndexFunc(g.events, func(e event.Event) bool { return e.Kind == event.DepositForfeited })
	if i < 0 || g.events[i].Who != u.Worker || g.count(event.DepositForfeited) != 1 ||
		g.count(event.DepositReturned) != 0 {
		t.Errorf("when the round is final: %+v", g.events[max(0, i):])
	}
}

// An exact attempt after a withheld one can be disputed until its round is final, and then the deposit waits for the
// next.
func TestExactAttemptIsDisputed(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 3))
	g.toAudits()
	g.report(1, 1, 989_999)
	g.commitAll()
	g.tick(2)
	g.reportAll()
	g.passAll()
	g.attestAll()
	held := *g.lap(0).Units[1].Held
	g.challenge("v0", 0, 1)
	g.verdict(0, 1, true)
	if g.s.Round != 0 || g.count(event.RolledBack) != 1 || g.s.Units[1].Held == nil ||
		g.s.Units[1].Held.Worker != held.Worker {
		t.Errorf("no rollback over an exact lie: round %d, %+v", g.s.Round, g.s.Units[1])
	}
}

// Where there is one verifier it decides alone what is withheld. A deposit it does not touch.
func TestOneVerifierForfeitsNothing(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 1))
	g.toAudits()
	before := g.s.Units[0]
	g.report(0, 2_000_000, 0)
	u := g.s.Units[0]
	if !u.Exact || u.Status != work.Assigned || u.Held != nil {
		t.Errorf("%+v", u)
	}
	if m, _ := g.s.Member(before.Worker); !m.Active || m.Missed != 1 {
		t.Errorf("%+v", m)
	}
	g.nobodySlashed()
}

// Two verifiers of one owner are one.
func TestVerifiersOfOneOwnerForfeitNothing(t *testing.T) {
	members := newMembers(3, 3)
	for i := range members {
		if members[i].Role == crew.Verifier {
			members[i].Owner = "one"
		}
	}
	g := begin(t, tolerant(), members)
	g.toAudits()
	g.report(0, 2_000_000, 0)
	if u := g.s.Units[0]; !u.Exact || u.Held != nil || g.count(event.AuditOutside) != 1 {
		t.Errorf("%+v", u)
	}
}

// A verifier that alone finds an update outside is excluded and not paid, with no effect on others.
func TestVerifierThatDiffersIsOut(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 3))
	g.toAudits()
	u := g.s.Units[2]
	liar := u.Looks[0].Verifier
	g.panels(func(verifier string, u work.Unit) audit.Finding {
		if verifier == liar && u.Index == 2 {
			return g.found(2, 500_000, 500_000)
		}
		return g.found(u.Index, 10, 1_000_000)
	})
	if v := g.s.Units[2]; v.Status != work.Accepted || !v.Passed || v.Worker != u.Worker || v.Held != nil {
		t.Fatalf("%+v", v)
	}
	i := slices.IndexFunc(g.events,
		func(e event.Event) bool { return e.Kind == event.AuditMissed && e.Why == reason.Differs })
	if m, _ := g.s.Member(liar); i < 0 || g.events[i].Who != liar || g.count(event.AuditOutside) != 0 || m.Active ||
		m.Why != reason.Differs {
		t.Errorf("%+v, events: %+v", m, g.events)
	}
	g.attestAll()
	if g.count(event.DepositForfeited)+g.count(event.DisputeEnded) > 0 {
		t.Errorf("events: %+v", g.events)
	}
}

// If two verifiers differ, the run cannot tell which one executed the unit: neither is paid or excluded, and the unit
// counts.
func TestOfTwoWhoDifferNeitherIsPaid(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 2))
	g.toAudits()
	liar := g.s.Units[2].Looks[0].Verifier
	g.panels(func(verifier string, u work.Unit) audit.Finding {
		if verifier == liar && u.Index == 2 {
			return g.found(2, 500_000, 500_000)
		}
		return g.found(u.Index, 10, 1_000_000)
	})
	unpaid := 0
	for _, e := range g.events {
		if e.Kind == event.AuditMissed && e.Why == reason.Contradicted && e.Unit == 2 {
			unpaid++
		}
	}
	if u := g.s.Units[2]; u.Status != work.Accepted || u.Passed || unpaid != 2 || len(g.s.Active(crew.Verifier)) != 2 {
		t.Errorf("%d are unpaid: %+v", unpaid, u)
	}
	g.nobodySlashed()
}

// An update that most members find an outlier is withheld at once, also during its audit; after the attestation it is
// too late.
func TestOddIsWithheld(t *testing.T) {
	g := begin(t, tolerant(), newMembers(4, 1))
	g.toAudits()
	u := g.s.Units[0]
	said := 0
	for _, m := range g.s.Members {
		if m.ID != u.Worker && g.s.Units[0].Attempt == u.Attempt {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Suspect(g.env(), m.ID, work.UnitID{Attempt: u.Attempt})
			})
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
	g.refused(refusal.ErrWrongPhase, func(s State) (State, []event.Event, error) {
		return s.Suspect(g.env(), from, work.UnitID{Unit: 1, Attempt: other.Attempt})
	})
	g.nobodySlashed()
}

// A tolerant worker that keeps its update back costs its verifier nothing.
func TestUnavailableTolerantUpdateMovesOn(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 1))
	g.toAudits()
	u := g.s.Units[0]
	for _, m := range g.s.Members {
		if m.ID != u.Worker && g.s.Units[0].Attempt == u.Attempt {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, work.UnitID{Attempt: u.Attempt}, 0)
			})
		}
	}
	if v := g.s.Units[0]; v.Status != work.Assigned || v.Exact || v.Worker == u.Worker {
		t.Errorf("%+v", v)
	}
}

func TestWorkerThatIsWithheldLeavesInTheEnd(t *testing.T) {
	long := tolerant()
	long.Rounds = 20
	g := begin(t, long, newMembers(3, 1))
	const bad = "w0"
	for g.s.Round < long.Rounds && g.count(event.MemberLeft) == 0 {
		g.toAudits()
		g.panels(func(_ string, u work.Unit) audit.Finding {
			if u.Worker == bad {
				return g.found(u.Index, 1_000_000, 0)
			}
			return g.found(u.Index, 0, 1_000_000)
		})
		g.commitAll()
		g.tick(2)
		g.passAll()
		g.attestAll()
	}
	if m, _ := g.s.Member(bad); m.Active || m.Why != reason.Withheld {
		t.Errorf("after %d rounds: %+v", g.s.Round, m)
	}
	g.nobodySlashed()
}

// FuzzTolerantRun is FuzzRun in a tolerant run, where verifiers report arbitrary findings: an attested round has
// nothing open, and no member is slashed over work that is not exact.
func FuzzTolerantRun(f *testing.F) {
	r := rand.New(rand.NewPCG(2, 2))
	for range howMany(20, 6) {
		seed := make([]byte, 900)
		for i := range seed {
			seed[i] = byte(r.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script []byte) { playTolerant(t, progress.NewestRules, script) })
}

// playTolerant is play for tolerant work.
func playTolerant(t *testing.T, rules progress.Rules, script []byte) canon.Digest {
	all := tolerant()
	all.AuditPPM = 300_000
	all.Deadlines = terms.Deadlines{Train: 3, Audit: 3, Attest: 3, Challenge: 2}
	s, err := New(all, newMembers(4, 3), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Rules = rules
	rate(s, rules)
	height, history := int64(1), canon.Digest{}
	for ; len(script) >= 3; script = script[3:] {
		op, who, what := script[0], script[1], script[2]
		env := transition.Env{Height: height, Beacon: canon.Sum("fuzz/beacon", []byte(fmt.Sprint(height)))}
		before := canon.MustMarshal(s)
		after, events, err := move(s, env, op%16, who, what)
		if op&0x30 == 0x10 && len(s.Units) > 0 {
			u := s.Units[int(what)%len(s.Units)]
			verifier := fmt.Sprintf("v%d", who%3)
			f := audit.Finding{DistancePPM: uint32(what>>4) << 15, CosinePPM: 1_000_000,
				End: commitment(s.RoundState, u.Index).Segments[newTerms().Segments]}
			if who%8 == 7 { // who has not looked
				f.DistancePPM, f.End = 1, canon.Sum(verifier)
			}
			if after, events, err = say(s, env, verifier, u, f); u.Status == work.Sealed {
				after, events, err = figures(s, env, verifier, u, f)
			}
		} else if op%16 == 0 {
			height++
		}
		if !bytes.Equal(before, canon.MustMarshal(s)) || err != nil &&
			(!bytes.Equal(before, canon.MustMarshal(after)) || len(events) > 0) {
			t.Fatalf("operation %d changed its receiver, or was refused with %v and changed the state", op%16, err)
		}
		for _, e := range events {
			u, err := admission.Find(s.Progress,
				work.UnitID{Round: e.Round, Unit: e.Unit, Attempt: attemptAt(s, e.Round, e.Unit)})
			slashes := e.Kind == event.DisputeEnded || e.Kind == event.AuditBroken && e.Why == reason.PlantPassed
			if slashes && (err != nil || s.Tolerant(u)) ||
				e.Kind == event.DepositForfeited && e.Why == reason.Outside && u.Held == nil {
				t.Fatalf("%+v over work that is not exact", e)
			}
		}
		s = after
		hold(t, s)
		history = canon.Sum("test/history", history[:], canon.MustMarshal(s), canon.MustMarshal(events))
		for _, l := range s.Open {
			if slices.ContainsFunc(l.Units, func(u *work.Unit) bool { return s.Tolerant(*u) && u.Status != work.Accepted }) {
				t.Fatalf("round %d is attested with something open", l.Round)
			}
		}
	}
	return history
}

func attemptAt(s State, round, unit uint32) uint32 {
	if l, ok := s.At(round); ok && int(unit) < len(l.Units) {
		return l.Units[unit].Attempt
	}
	return 0
}

// A worker with many passed audits in tolerant work, which convicts no worker, is still audited in half of its units:
// so it cannot work honestly for a while and then fake many units unseen.
func TestHistoryDoesNotLowerTolerantAuditsBelowHalf(t *testing.T) {
	exact, loose := newTerms(), tolerant()
	exact.AuditPPM, loose.AuditPPM = 100_000, 100_000
	if exact.Floor() != 100_000 || loose.Floor() != 500_000 {
		t.Fatalf("floors of %d and %d", exact.Floor(), loose.Floor())
	}
	members := newMembers(3, 2)
	for i := range members {
		members[i].Passed = 30
	}
	drawn := func(terms terms.Terms) (n int) {
		for job := range 200 {
			terms.Job = fmt.Sprint("job-", job)
			g := begin(t, terms, members)
			g.toAudits()
			n += g.count(event.AuditDrawn)
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
