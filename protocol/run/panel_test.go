package run

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// wide are the terms of a tolerant run of one round of many units.
func wide() terms.Terms {
	t := tolerant()
	t.Units, t.Rounds, t.Window = 64, 1, 1
	return t
}

// A verifier that reports "within" without executing the unit is found: some of its reports are compared with those of
// two others, and it cannot know which when it seals. It alone is excluded.
func TestLazyTolerantVerifierIsFound(t *testing.T) {
	g := begin(t, wide(), newMembers(4, 1))
	g.draw = network(8)
	g.toAudits()
	const lazy = "n3"
	looked := map[string]int{}
	g.panels(func(verifier string, u work.Unit) audit.Finding {
		looked[verifier]++
		if verifier == lazy {
			return audit.Finding{DistancePPM: 900, CosinePPM: 999_999, End: canon.Sum("invented")}
		}
		return g.found(u.Index, 1000+u.Index, 999_999)
	})
	for _, e := range g.events {
		if e.Kind == event.AuditBroken && (e.Who != lazy || e.Why != reason.Differs) || e.Kind == event.UnitReassigned {
			t.Errorf("%+v", e)
		}
	}
	if m, _ := g.s.Member(lazy); m.Why != reason.Differs || g.count(event.AuditBroken) == 0 {
		t.Errorf("the lazy verifier: %+v, after %v looks", m, looked)
	}
	if n := g.count(event.AuditPassed); n < 64 || n > 64*3/2 {
		t.Errorf("%d looks are paid for 64 units", n)
	}
	g.attestAll()
}

// A verifier cannot copy: no finding is shown before all verifiers of a unit are bound, none is drawn for it
// afterwards, and the seal of another does not open under its own name. It is excluded, and the others decide.
func TestCopyingTolerantVerifierIsFound(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 3))
	g.toAudits()
	f := g.found(0, 500_000, 900_000)
	first := g.s.Units[0].Looks[0].Verifier
	g.say(first, 0, f)
	g.tick(2)
	u := g.s.Units[0]
	if len(u.Looks) != audit.Panel || u.Status != work.Auditing {
		t.Fatalf("others are to look: %+v", u)
	}
	copier, honest := u.Looks[1].Verifier, u.Looks[2].Verifier
	g.refused(refusal.ErrWrongPhase,
		func(s State) (State, []event.Event, error) { return figures(s, g.env(), first, s.Units[0], f) })
	g.must(func(s State) (State, []event.Event, error) {
		return s.Report(g.env(), copier, work.UnitID{Attempt: u.Attempt}, u.Looks[0].Seal, true)
	})
	g.say(honest, 0, f)
	g.tick(2)
	g.figures(first, 0, f)
	if len(g.s.Units[0].Looks) != audit.Panel {
		t.Fatalf("%+v", g.s.Units[0])
	}
	g.refused(refusal.ErrBadOpening,
		func(s State) (State, []event.Event, error) { return figures(s, g.env(), copier, s.Units[0], f) })
	g.refused(refusal.ErrBadOpening, func(s State) (State, []event.Event, error) {
		return s.ShowReport(g.env(), copier, work.UnitID{Attempt: u.Attempt}, f, canon.Sum(first))
	})
	g.figures(honest, 0, f)
	g.tick(int(g.s.Units[0].Looks[1].Deadline-g.height) + 2)
	if m, _ := g.s.Member(copier); m.Why != reason.SealUnopened {
		t.Errorf("who copies: %+v", m)
	}
	if v := g.s.Units[0]; !v.Exact || v.Held == nil || !slices.Equal(v.Held.Verifiers, []string{first, honest}) {
		t.Errorf("the others decide: %+v", v)
	}
}

// The finding that a verifier shows must agree with its report.
func TestReportBindsItsWord(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 1))
	g.toAudits()
	u := g.s.Units[0]
	f := g.found(0, 500_000, 900_000)
	verifier := u.Looks[0].Verifier
	seal := f.Seal(work.UnitID{Attempt: u.Attempt}.Subject(verifier, g.s.Terms.Job, 0), canon.Sum(verifier))
	g.refused(refusal.ErrBadOpening, func(s State) (State, []event.Event, error) {
		return s.Report(g.env(), verifier, work.UnitID{Attempt: u.Attempt}, canon.Digest{}, false)
	})
	g.must(func(s State) (State, []event.Event, error) {
		return s.Report(g.env(), verifier, work.UnitID{Attempt: u.Attempt}, seal, false)
	})
	g.refused(refusal.ErrDuplicate, func(s State) (State, []event.Event, error) {
		return s.Report(g.env(), verifier, work.UnitID{Attempt: u.Attempt}, seal, true)
	})
	for g.s.Units[0].Status != work.Sealed {
		g.tick(1)
	}
	g.refused(refusal.ErrBadOpening,
		func(s State) (State, []event.Event, error) { return figures(s, g.env(), verifier, s.Units[0], f) })
	g.tick(int(g.s.Units[0].Looks[0].Deadline-g.height) + 2)
	if m, _ := g.s.Member(verifier); m.Why != reason.SealUnopened {
		t.Errorf("%+v", m)
	}
}

// Three verifiers that report honest work as outside, without executing it, are convicted when the unit is done
// exactly, and its worker keeps the deposit. If they know the end state of the unit, the lie cannot be shown.
func TestDepositIsReturnedWhereTheExactExecutionContradicts(t *testing.T) {
	for _, executed := range []bool{false, true} {
		g := begin(t, tolerant(), newMembers(3, 4))
		g.toAudits()
		victim := g.s.Units[0].Worker
		g.panels(func(verifier string, u work.Unit) audit.Finding {
			f := g.found(u.Index, 1000, 999_999)
			if u.Index == 0 {
				if f.DistancePPM = 1_500_000; !executed {
					f.End = canon.Sum("invented")
				}
			}
			return f
		})
		robbers := g.s.Units[0].Held.Verifiers
		g.commitAll()
		g.tick(2)
		if u := g.s.Units[0]; u.ProvesReportFalse(robbers[0]) == executed {
			t.Errorf("executed %v: whoever reported has to challenge: %v", executed, !executed)
		}
		g.reportAll()
		g.passAll()
		g.attestAll()
		g.tick(10)
		want := map[event.Kind]int{event.DepositReturned: 1, event.AuditBroken: 3}
		if executed {
			want = map[event.Kind]int{event.DepositForfeited: 1}
		}
		for _, kind := range []event.Kind{event.DepositReturned, event.DepositForfeited, event.AuditBroken} {
			if g.count(kind) != want[kind] {
				t.Errorf("executed %v: %d of %s, want %d", executed, g.count(kind), kind, want[kind])
			}
		}
		for _, e := range g.events {
			if e.Kind == event.AuditBroken && (e.Why != reason.FalseReport || !slices.Contains(robbers, e.Who)) ||
				e.Kind == event.DepositReturned && e.Who != victim {
				t.Errorf("%+v", e)
			}
		}
	}
}

// A worker that hides the update of a unit whose audit is drawn forfeits its deposit, as for an update outside the
// tolerance: otherwise it could fake every unit, and hide the audited ones. For a unit without an audit it is only not
// paid.
func TestHiddenUpdateForfeitsTheDepositOnceItsAuditIsDrawn(t *testing.T) {
	for _, audited := range []bool{true, false} {
		all := tolerant()
		all.AuditPPM = 500_000
		members := newMembers(3, 2)
		for i := range members {
			members[i].Passed = 30
		}
		g := begin(t, all, members)
		g.toAudits()
		i := slices.IndexFunc(g.s.Units, func(u *work.Unit) bool { return u.Audited == audited })
		u := g.s.Units[i]
		for _, m := range g.s.Members {
			if m.ID != u.Worker && g.s.Units[i].Attempt == u.Attempt {
				g.must(func(s State) (State, []event.Event, error) {
					return s.Missing(g.env(), m.ID, work.UnitID{Unit: u.Index, Attempt: u.Attempt}, 0)
				})
			}
		}
		m, _ := g.s.Member(u.Worker)
		if forfeited := g.count(event.DepositForfeited) == 1; forfeited != audited || m.Active == audited {
			t.Errorf("audited %v: forfeited %v, %+v", audited, forfeited, m)
		}
	}
}

// Honest members of a tolerant run lose nothing, whatever is compared: no place, no deposit, no unit, and every look is
// paid.
func TestHonestMembersOfATolerantRunLoseNothing(t *testing.T) {
	for seed := range howMany(10, 3) {
		all := wide()
		all.Job, all.Rounds, all.Window, all.AuditPPM = fmt.Sprint("job-", seed), 3, 3, 500_000
		g := begin(t, all, newMembers(5, 2))
		g.draw = network(6)
		for range all.Rounds {
			g.toAudits()
			g.panels(func(_ string, u work.Unit) audit.Finding { return g.found(u.Index, 700+13*u.Index, 999_900) })
			g.attestAll()
		}
		g.tick(8)
		g.phase(progress.Done)
		bad := g.count(
			event.MemberLeft,
		) + g.count(
			event.AuditBroken,
		) + g.count(event.AuditMissed) + g.count(event.UnitReassigned) +
			g.count(
				event.DepositForfeited,
			) + g.count(
			event.DepositReturned,
		)
		if sealed, passed := g.count(event.AuditSealed), g.count(event.AuditPassed); bad > 0 || sealed != passed ||
			sealed == 0 {
			t.Errorf("seed %d: %d things went wrong, %d of %d looks are paid", seed, bad, passed, sealed)
		}
	}
}

// A verifier that leaves after it was bound shows what it found all the same; one that left before is replaced.
func TestLeavingVerifierOfAPanel(t *testing.T) {
	g := begin(t, tolerant(), newMembers(3, 4))
	g.toAudits()
	first := g.s.Units[0].Looks[0].Verifier
	g.say(first, 0, g.found(0, 900_000, 0))
	g.tick(2)
	unbound := g.s.Units[0].Looks[1].Verifier
	g.leave(first)
	g.leave(unbound)
	g.tick(1)
	u := g.s.Units[0]
	if u.ReportOf(first) < 0 || u.ReportOf(unbound) >= 0 {
		t.Fatalf("%+v", u.Looks)
	}
	g.report(0, 900_000, 0)
	if v := g.s.Units[0]; v.Held == nil || !slices.Contains(v.Held.Verifiers, first) || !g.s.Liable(first) {
		t.Errorf("%+v", v)
	}
}
