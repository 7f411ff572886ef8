package run

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

func (g *stage) join(id string, r crew.Role) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) {
		return s.Join(g.env(), []crew.Member{{ID: id, Role: r, Price: 10}})
	})
}

func (g *stage) probationOf(id string) progress.Probation {
	g.t.Helper()
	t, ok := g.s.Probation(id)
	if !ok {
		g.t.Fatalf("%s is not in probation", id)
	}
	return t
}

// sit answers the task of a member on probation, with the seal of the right state.
func (g *stage) sit(id string) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return sit(s, g.env(), g.probationOf(id)) })
}

// asUnit is a probation task as the audit of a unit: the seals and openings are the same.
func asUnit(t progress.Probation) work.Unit {
	return work.Unit{Index: t.Task.Unit, Attempt: t.Task.Attempt, Verifier: t.Member, Commit: t.Task.Commit, Seal: t.Seal,
		Question: t.Question}
}

func sit(s State, env transition.Env, t progress.Probation) (State, []event.Event, error) {
	return s.SubmitProbation(env, t.Member, t.Task.ID(), seal(s, t.Task.Round, asUnit(t)).Root())
}

func show(s State, env transition.Env, t progress.Probation) (State, []event.Event, error) {
	return unseal(s, env, t.Task.Round, asUnit(t))
}

// prove takes a member through its probation.
func (g *stage) prove(id string) {
	g.t.Helper()
	g.tick(1)
	g.sit(id)
	g.tick(2)
	g.must(func(s State) (State, []event.Event, error) { return show(s, g.env(), g.probationOf(id)) })
}

func (g *stage) leave(id string) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return s.Leave(g.env(), id) })
}

func many() terms.Terms {
	t := newTerms()
	t.Rounds, t.Window = 20, 8
	return t
}

// A member that leaves loses the units that it has not committed, at once and without a penalty, and stays liable for
// those that it has.
func TestLeave(t *testing.T) {
	g := begin(t, many(), newMembers(3, 2))
	g.tick(1)
	first := g.s.Units[0]
	g.commit(0)
	open := len(g.s.Work(first.Worker))
	g.leave(first.Worker)
	if n := g.count(event.UnitReassigned); n != open {
		t.Errorf("%d units move, %d were open", n, open)
	}
	for _, e := range g.events {
		if e.Kind == event.UnitReassigned && e.Why != reason.Left || e.Kind == event.MemberLeft && e.Why != reason.Left {
			t.Errorf("%+v", e)
		}
	}
	if u := g.s.Units[0]; u.Status != work.Committed || u.Worker != first.Worker {
		t.Errorf("the committed unit: %+v", u)
	}
	if !g.s.Liable(first.Worker) || !g.s.Removed(first.Worker) {
		t.Error("it owes nothing, or takes part")
	}
	if err := g.do(func(s State) (State, []event.Event, error) { return s.Leave(g.env(), first.Worker) }); !errors.Is(err,
		refusal.ErrInactive) {
		t.Errorf("it leaves twice: %v", err)
	}
	g.commitAll()
	g.tick(2)
	g.passAll()
	g.attestAll()
	g.tick(5)
	if g.s.Liable(first.Worker) {
		t.Error("it owes something though its round is final")
	}
	if !g.s.MayJoin(first.Worker, crew.Worker) || g.s.MayJoin(first.Worker, crew.Verifier) {
		t.Error("it may not come back, or as something else")
	}
}

// A member that leaves in the middle of a dispute is convicted all the same.
func TestLeavingSparesNoVerdict(t *testing.T) {
	g := begin(t, many(), newMembers(3, 2))
	g.toAudits()
	u := g.s.Units[0]
	g.challenge(u.Verifier, 0, 0)
	g.leave(u.Worker)
	if !g.s.Liable(u.Worker) || !g.s.Liable(u.Verifier) {
		t.Error("a party of a dispute owes nothing")
	}
	g.verdict(0, 0, true)
	if m, _ := g.s.Member(u.Worker); m.Why != reason.Verdict || g.s.MayJoin(u.Worker, crew.Worker) {
		t.Errorf("%+v", m)
	}
}

func TestTheLastStay(t *testing.T) {
	g := begin(t, many(), newMembers(2, 1))
	g.tick(1)
	refused := func(id string) {
		t.Helper()
		if err := g.do(func(s State) (State, []event.Event, error) { return s.Leave(g.env(), id) }); !errors.Is(err,
			refusal.ErrLast) ||
			g.s.MayLeave(id) {
			t.Errorf("%s: %v", id, err)
		}
	}
	refused("v0")
	g.leave("w0")
	refused("w1")
	g.join("w2", crew.Worker)
	refused("w1") // a member on probation cannot take over
	g.commitAll()
	g.tick(2)
	g.passAll()
	g.prove("w2")
	g.leave("w1")
	refused("w2")
}

// Until its probation is over a new member has no unit, audit or vote; then it has all of them.
func TestTrial(t *testing.T) {
	g := begin(t, many(), newMembers(3, 2))
	g.join("w9", crew.Worker)
	g.tick(3)
	if g.probationOf("w9").Task.Worker != "" {
		t.Fatal("a probation task about nothing")
	}
	_, quorum := g.s.Weighs(nil)
	g.round()
	g.passAll()
	if len(g.s.Work("w9")) > 0 || heads(g.s) != quorum {
		t.Fatal("a newcomer counts")
	}
	for name, f := range map[string]func(s State) (State, []event.Event, error){
		"votes": func(s State) (State, []event.Event, error) { return s.Attest(g.env(), s.Round, vote(s, "w9")) },
		"shows": func(s State) (State, []event.Event, error) { return show(s, g.env(), g.probationOf("w9")) },
		"proves": func(s State) (State, []event.Event, error) {
			return s.SubmitProbation(g.env(), "w9", work.UnitID{Round: 9, Unit: 9, Attempt: 9}, canon.Sum("x"))
		},
		"returns": func(s State) (State, []event.Event, error) {
			return s.Return(g.env(), "w9")
		},
		"joins": func(s State) (State, []event.Event, error) {
			return s.Join(g.env(), []crew.Member{{ID: "w9", Role: crew.Worker}})
		},
	} {
		if err := g.do(f); err == nil {
			t.Errorf("in probation it %s", name)
		}
	}
	g.prove("w9")
	if m, _ := g.s.Member("w9"); !m.Active || m.Why != "" || len(g.s.Probations) > 0 || g.count(event.MemberProven) != 1 {
		t.Fatalf("%+v", m)
	}
	if heads(g.s) != 6 {
		t.Errorf("%d of 6 have a vote", heads(g.s))
	}
	g.finish()
	worked := false
	for _, e := range g.events {
		worked = worked || e.Kind == event.UnitCommitted && e.Who == "w9"
	}
	if !worked {
		t.Error("it never worked")
	}
}

// A machine that computes something else is out, and not slashed: nothing says that it lies.
func TestUnproven(t *testing.T) {
	decline := func(g *stage) {
		x := g.probationOf("w9").Task
		g.must(func(s State) (State, []event.Event, error) {
			return s.SubmitProbation(g.env(), "w9", work.UnitID{Round: x.Round, Unit: x.Unit, Attempt: x.Attempt},
				canon.Digest{})
		})
	}
	for name, act := range map[string]func(g *stage){
		"finds another state": decline,
		"says nothing":        func(g *stage) { g.tick(1) },
		"seals what it does not hold": func(g *stage) {
			if x := g.probationOf("w9"); x.Seal.IsZero() {
				g.must(func(s State) (State, []event.Event, error) {
					return s.SubmitProbation(g.env(), "w9", x.Task.ID(), canon.Sum("copied"))
				})
			}
			g.tick(2)
			if x, ok := g.s.Probation("w9"); ok && !x.Question.IsZero() {
				if err := g.do(func(s State) (State, []event.Event, error) { return show(s, g.env(), x) }); !errors.Is(err,
					refusal.ErrBadOpening) {
					t.Errorf("%v", err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := begin(t, many(), newMembers(3, 2))
			g.round()
			g.passAll()
			g.join("w9", crew.Worker)
			for i := 0; i < 1000 && len(g.s.Probations) > 0; i++ {
				g.tick(1)
				if x, ok := g.s.Probation("w9"); ok && x.Task.Worker != "" {
					act(g)
				}
			}
			m, _ := g.s.Member("w9")
			if m.Active || m.Why != reason.Unproven || g.s.MayReturn("w9", g.height) {
				t.Fatalf("%+v", m)
			}
			if !g.s.MayReturn("w9", g.height+1000) {
				t.Error("it can never try again")
			}
		})
	}
}

// A probation task of a round that is rolled back is void, and does not count as a try.
func TestRollbackExcuses(t *testing.T) {
	g := begin(t, many(), newMembers(4, 2))
	g.round()
	g.round()
	for _, v := range []string{"v0", "v1"} {
		for _, a := range g.s.Audits(v) {
			if a.Round == 1 {
				g.pass(v, 1, a.Index)
			}
		}
	}
	g.join("w9", crew.Worker)
	g.tick(1)
	if x := g.probationOf("w9"); x.Task.Round != 1 || x.Tries != 1 {
		t.Fatalf("%+v", x)
	}
	u := g.unit(0, 0)
	g.challenge(u.Verifier, 0, 0)
	g.verdict(0, 0, true)
	if x := g.probationOf("w9"); x.Task.Worker != "" || x.Tries != 0 {
		t.Errorf("%+v", x)
	}
}

// A member that missed its deadlines returns through a probation; the wait before it doubles each time, and one more
// missed deadline excludes it again.
func TestReturn(t *testing.T) {
	g := begin(t, many(), newMembers(3, 2))
	g.round()
	for i := 0; i < 300 && g.count(event.MemberLeft) == 0; i++ {
		g.tick(1)
		for _, u := range g.s.Units {
			if u.Status == work.Assigned && u.Worker != "w0" {
				g.commit(u.Index)
			}
		}
		g.passAll()
		g.attestAll()
	}
	m, _ := g.s.Member("w0")
	if m.Active || m.Why != reason.MissedDeadlines || g.s.Removed("w0") {
		t.Fatalf("%+v", m)
	}
	back := func(s State) (State, []event.Event, error) { return s.Return(g.env(), "w0") }
	if err := g.do(back); !errors.Is(err, refusal.ErrWrongPhase) {
		t.Errorf("without a rest: %v", err)
	}
	g.height = m.Since + g.s.TrainDeadline()
	g.must(back)
	if err := g.do(back); !errors.Is(err, refusal.ErrDuplicate) || !g.s.MayJoin("w0", crew.Worker) {
		t.Errorf("twice: %v", err)
	}
	g.join("w0", crew.Worker)
	g.prove("w0")
	if m, _ = g.s.Member("w0"); !m.Active || m.Missed != transition.MaxMissed-1 || m.Returns != 1 {
		t.Fatalf("%+v", m)
	}
	g.finish()
	for id, why := range map[string]error{"x": refusal.ErrNotMember, "w1": refusal.ErrHalted} {
		if err := g.do(func(s State) (State, []event.Event, error) { return s.Return(g.env(), id) }); err == nil {
			t.Errorf("%s: %v, want %v", id, err, why)
		}
	}
}

// The last worker is kept, and excluded when another has joined.
func TestTheLastIsRelieved(t *testing.T) {
	g := begin(t, many(), newMembers(2, 2))
	g.round()
	g.passAll()
	g.tick(300)
	if w := g.s.Active(crew.Worker); len(w) != 1 {
		t.Fatalf("active: %v", w)
	}
	last := g.s.Active(crew.Worker)[0]
	g.join("w9", crew.Worker)
	g.prove("w9")
	if w := g.s.Active(crew.Worker); !slices.Equal(w, []string{"w9"}) {
		t.Errorf("active: %v", w)
	}
	if m, _ := g.s.Member(last); m.Why != reason.MissedDeadlines {
		t.Errorf("%+v", m)
	}
	g.finish()
}

func TestJoinRefuses(t *testing.T) {
	g := begin(t, many(), newMembers(3, 2))
	for name, m := range map[string]crew.Member{
		"a member":   {ID: "w0", Role: crew.Worker},
		"other role": {ID: "w0", Role: crew.Verifier},
		"no name":    {Role: crew.Worker},
		"no role":    {ID: "x"},
	} {
		if err := g.do(func(s State) (State, []event.Event, error) { return s.Join(g.env(), []crew.Member{m}) }); !errors.Is(
			err,
			refusal.ErrTerms,
		) {
			t.Errorf("%s: %v", name, err)
		}
	}
	g.toAudits()
	w, _ := g.dispute(0, true)
	if g.s.MayJoin(w, crew.Worker) || g.s.MayReturn(w, g.height+1000) {
		t.Error("a convicted worker may come back")
	}
}

// A member that joins a tolerant run has no vote and no unit until it has executed a unit exactly: it must reach the
// state that the verifiers of the unit found, whatever its worker committed to. Without audits there is no such unit.
func TestTrialInATolerantRun(t *testing.T) {
	rough := many()
	rough.Tolerance = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	g := begin(t, rough, newMembers(3, 3))
	g.toAudits()
	g.join("w9", crew.Worker)
	g.tick(1)
	if m, _ := g.s.Member("w9"); m.Active || g.probationOf("w9").Task.Worker != "" {
		t.Fatalf("before a unit is settled: %+v, %+v", m, g.probationOf("w9"))
	}
	g.refused(refusal.ErrInactive,
		func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, "w9")) })
	g.reportAll()
	g.tick(1)
	task := g.probationOf("w9").Task
	if end := g.unit(0, task.Unit).End; end.IsZero() || !slices.Equal(task.Commit.Segments, []canon.Digest{end}) {
		t.Fatalf("the task is %+v, of %+v", task, g.unit(0, task.Unit))
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.SubmitProbation(g.env(), "w9", task.ID(), canon.Sum("a seal of nothing"))
	})
	g.tick(2)
	shows := func(s State) (State, []event.Event, error) { return show(s, g.env(), g.probationOf("w9")) }
	if err := g.do(shows); err == nil {
		t.Error("a seal of nothing is opened")
	}

	none := rough
	none.AuditPPM = 0
	g = begin(t, none, newMembers(3, 0))
	g.join("w9", crew.Worker)
	if m, _ := g.s.Member("w9"); !m.Active || len(g.s.Probations) > 0 {
		t.Errorf("without audits: %+v", m)
	}
}

// A member has the stake and the owner with which it took its seat: at the beginning, when it joins, and when it is
// back.
func TestSeatsKeepStakeAndOwner(t *testing.T) {
	s, err := New(newTerms(), []crew.Member{{ID: "w1", Role: crew.Worker, Stake: 7},
		{ID: "w2", Role: crew.Worker, Owner: "pool", Stake: 9}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err = s.Join(transition.Env{Height: 2}, []crew.Member{{ID: "w3", Role: crew.Worker, Owner: "pool", Stake: 5}})
	if err != nil {
		t.Fatal(err)
	}
	s.Members = slices.Clone(s.Members)
	s.Members[0].Active, s.Members[0].Why = false, reason.Returning
	s, _, err = s.Join(transition.Env{Height: 3}, []crew.Member{{ID: "w1", Role: crew.Worker, Owner: "other", Stake: 3}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []crew.Member{{Stake: 3, Owner: "other"}, {Stake: 9, Owner: "pool"}, {Stake: 5, Owner: "pool"}} {
		if m := s.Members[i]; m.Stake != want.Stake || m.Owner != want.Owner {
			t.Errorf("%s has %d uzen of %q, want %d of %q", m.ID, m.Stake, m.Owner, want.Stake, want.Owner)
		}
	}
}

// The trial of a machine is a unit of another owner, while there is one.
func TestAFleetSetsNoTrialForItsMachines(t *testing.T) {
	terms := long()
	terms.Units = 8
	members := newMembers(4, 1)
	members[0].Owner, members[1].Owner, members[2].Owner = "o", "o", "o"
	g := begin(t, terms, members)
	g.round()
	for i := range 6 {
		id := "x" + string(rune('0'+i))
		g.must(func(s State) (State, []event.Event, error) {
			return s.Join(g.env(), []crew.Member{{ID: id, Role: crew.Worker, Price: 10, Owner: "o"}})
		})
		g.tick(1)
		if p := g.probationOf(id); p.Task.Worker != "" {
			if m, _ := g.s.Member(p.Task.Worker); m.OwnerID() == "o" {
				t.Errorf("the trial of %s is a unit of %s, of the same owner", id, p.Task.Worker)
			}
		} else if i == 0 {
			t.Error("there is no trial")
		}
	}
}
