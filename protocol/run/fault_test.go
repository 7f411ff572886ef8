package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

func TestLateUnitMovesOn(t *testing.T) {
	g := begin(t, newTerms(), newMembers(4, 1))
	g.tick(1)
	late := g.s.Units[0].Worker
	for i := range g.s.Units {
		if i != 0 {
			g.commit(uint32(i))
		}
	}
	g.height = g.s.Units[0].Deadline
	g.tick(1)
	if g.s.Units[0].Worker != late {
		t.Fatal("taken away before the deadline is over")
	}
	g.tick(1)
	u := g.s.Units[0]
	if u.Worker == late || u.Attempt != 1 || !slices.Equal(u.Refused, []string{late}) {
		t.Fatalf("not moved on: %+v", u)
	}
	m, _ := g.s.Member(late)
	if !m.Active || m.Missed != 1 {
		t.Errorf("%+v", m)
	}
	g.commitAll()
	g.tick(2)
	g.passAll()
	g.attestAll()
	if m, _ := g.s.Member(late); m.Missed != 1 {
		t.Errorf("a miss is forgiven without a unit that counts: %+v", m)
	}
	g.tick(1)
	if u := g.s.Work(late)[0]; u.Deadline-u.AssignedAt != 2*g.s.TrainDeadline() {
		t.Errorf("after a miss it has %d blocks, others have %d", u.Deadline-u.AssignedAt, g.s.TrainDeadline())
	}
	g.commitAll()
	g.tick(2)
	g.passAll()
	g.attestAll()
	g.phase(progress.Settle)
	if m, _ := g.s.Member(late); m.Missed != 0 {
		t.Errorf("a miss is not forgiven: %+v", m)
	}
}

func TestDeadWorkersHaltTheRun(t *testing.T) {
	g := begin(t, newTerms(), newMembers(2, 1))
	g.tick(2000)
	g.phase(progress.Halted)
	if g.s.Why != reason.NoWorkers || g.count(event.MemberLeft) != 2 {
		t.Errorf("%s, %d left", g.s.Why, g.count(event.MemberLeft))
	}
}

func TestConvictedWorker(t *testing.T) {
	all := newTerms()
	all.Units = 8
	g := begin(t, all, newMembers(3, 2))
	g.toAudits()
	others := len(g.s.RoundState.Where(func(u work.Unit) bool { return u.Worker == g.s.Units[0].Worker })) - 1
	liar, _ := g.dispute(0, true)
	m, _ := g.s.Member(liar)
	if m.Active || m.Why != reason.Verdict {
		t.Fatalf("%+v", m)
	}
	u := g.s.Units[0]
	if g.s.Phase != progress.Train || u.Worker == liar || u.Attempt != 1 || !u.Audited {
		t.Fatalf("phase %d, %+v", g.s.Phase, u)
	}
	if others == 0 || g.count(event.UnitReassigned) != 1+others ||
		len(g.s.RoundState.Where(func(u work.Unit) bool { return u.Worker == liar })) > 0 {
		t.Errorf("of %d other units of the liar, %d moved on", others, g.count(event.UnitReassigned)-1)
	}
	g.commitAll()
	g.phase(progress.Attest)
	g.tick(2)
	if g.s.Units[0].Status != work.Auditing {
		t.Fatal("a replacement is not audited")
	}
	g.passAll()
	g.attestAll()
	g.tick(1)
	if len(g.s.Work(liar)) > 0 {
		t.Error("a convicted worker is given units")
	}
}

// A silent party of a dispute loses as if it had lied, and the events of its unit give silence as the reason.
func TestSilentWorker(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.toAudits()
	u := g.unit(0, 0)
	g.challenge(u.Verifier, 0, 0)
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{}, true, true, u.Worker)
	})
	if m, _ := g.s.Member(u.Worker); m.Active || m.Why != reason.Verdict {
		t.Errorf("%+v", m)
	}
	if after := g.unit(0, 0); after.Worker == u.Worker || !after.Audited {
		t.Errorf("%+v", after)
	}
	var why []string
	for _, e := range g.events {
		if e.Kind == event.DisputeEnded || e.Kind == event.UnitReassigned && e.Unit == 0 {
			why = append(why, e.Why)
		}
	}
	if !slices.Equal(why, []string{reason.Silent, reason.Silent}) {
		t.Errorf("it ends with %q", why)
	}
}

// A worker whose lie is found by one audit may have lied in units of earlier rounds that no audit was drawn for.
func TestConvictionAuditsTheRest(t *testing.T) {
	few := newTerms()
	few.Units, few.AuditPPM, few.Deadlines.Challenge = 32, 1, 100
	g := begin(t, few, newMembers(2, 2))
	for i := range g.s.Members {
		g.s.Members[i].Passed = 30 // a rate of almost nothing
	}
	g.round()
	g.toAudits()
	liar := g.s.Units[0].Worker
	unchecked := func(u work.Unit) bool { return u.Worker == liar && u.Status == work.Accepted }
	if n := len(g.s.Open[0].Where(unchecked)); n == 0 {
		t.Fatal("nothing to see: every unit of the liar is audited")
	}
	g.challenge("v1", 1, 0)
	g.verdict(1, 0, true)
	if left := g.s.Open[0].Where(unchecked); len(left) > 0 {
		t.Errorf("%d units of a liar still count unaudited", len(left))
	}
	if left := g.s.RoundState.Where(func(u work.Unit) bool { return u.Worker == liar }); len(left) > 0 {
		t.Errorf("%d units of a liar are kept in the round of the verdict", len(left))
	}
}

func TestFalseChallenge(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.toAudits()
	worker, verifier := g.dispute(0, false)
	if m, _ := g.s.Member(verifier); m.Active || m.Why != reason.FalseChallenge {
		t.Fatalf("%+v", m)
	}
	if m, _ := g.s.Member(worker); !m.Active {
		t.Fatal("the worker that was right is gone")
	}
	for _, u := range g.s.Units {
		if u.Status != work.Auditing || u.Verifier == verifier {
			t.Fatalf("not with the other verifier: %+v", u)
		}
	}
	g.passAll()
	g.phase(progress.Attest)
}

func TestFalseChallengeByTheLastVerifier(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 1))
	g.toAudits()
	g.pass("v0", 0, 1)
	g.pass("v0", 0, 2)
	g.pass("v0", 0, 3)
	g.dispute(0, false)
	if g.s.Units[0].Status != work.Accepted {
		t.Fatal("a unit that nobody is left to audit does not count")
	}
	g.attestAll()
	g.toAudits()
	g.phase(progress.Attest) // its audits wait for a verifier to join
	g.attestAll()
	g.tick(20 * int(g.s.TrainDeadline()))
	g.phase(progress.Halted)
	if g.s.Why != reason.NoVerifiers {
		t.Error(g.s.Why)
	}
}

func TestNoVerifiersWanted(t *testing.T) {
	none := newTerms()
	none.AuditPPM = 0
	g := begin(t, none, newMembers(2, 0))
	g.toAudits()
	g.phase(progress.Attest)
	g.attestAll()
	g.tick(1)
	g.phase(progress.Train)
	if g.count(event.RoundFinal) != 0 {
		t.Error("a round is final that strangers may challenge")
	}
	g.tick(int(g.s.ChallengeBlocks()))
	if g.count(event.RoundFinal) != 1 {
		t.Error("a round that nobody has challenged stays open")
	}
}

func TestLostVerifier(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.toAudits()
	g.attestAll()
	lost := g.s.Open[0].Units[0].Verifier
	open := func() bool { return len(g.s.Audits("v0"))+len(g.s.Audits("v1")) > 0 }
	for i := 0; i < 200 && open(); i++ {
		for _, v := range []string{"v0", "v1"} {
			for _, a := range g.s.Audits(v) {
				if v != lost {
					g.pass(v, 0, a.Index)
				}
			}
		}
		g.tick(1)
	}
	if open() {
		t.Error("audits are never answered")
	}
	if g.count(event.AuditMissed) == 0 {
		t.Error("no audit is noted as missed")
	}
}

func TestLastVerifierIsKept(t *testing.T) {
	one := newTerms()
	one.Rounds = 1
	g := begin(t, one, newMembers(3, 1))
	g.round()
	g.tick(300)
	if m, _ := g.s.Member("v0"); !m.Active || m.Missed < transition.MaxMissed {
		t.Fatalf("%+v", m)
	}
	g.passAll()
	g.tick(1)
	g.phase(progress.Done)
}

func TestMissingUpdate(t *testing.T) {
	g := begin(t, newTerms(), newMembers(4, 1))
	g.toAudits()
	u := g.s.Units[2]
	var others []string
	for _, m := range g.s.Members {
		if m.ID != u.Worker {
			others = append(others, m.ID)
		}
	}
	for _, id := range others[:2] {
		g.must(func(s State) (State, []event.Event, error) {
			return s.Missing(g.env(), id, work.UnitID{Unit: 2}, 0)
		})
	}
	g.phase(progress.Attest)
	if err := g.do(func(s State) (State, []event.Event, error) {
		return s.Missing(g.env(), others[0], work.UnitID{Unit: 2}, 0)
	}); !errors.Is(err, refusal.ErrDuplicate) {
		t.Errorf("second report: %v", err)
	}
	silent := func(id string) uint32 { m, _ := g.s.Member(id); return m.Silent }
	g.tick(int(newTerms().Deadlines.Attest))
	if silent(others[0]) != 1 || silent(others[2]) != 1 {
		t.Errorf("%+v", g.s.Members)
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Missing(g.env(), others[2], work.UnitID{Unit: 2}, 0)
	})
	if silent(others[0]) != 1 || silent(others[2]) != 0 {
		t.Errorf("who reports is not silent: %+v", g.s.Members)
	}
	g.phase(progress.Attest) // the audit of the unit needs no update, and continues
	g.passAll()
	g.phase(progress.Train)
	if v := g.s.Units[2]; v.Worker == u.Worker || v.Attempt != 1 || len(v.Missing) > 0 {
		t.Errorf("%+v", v)
	}
	if m, _ := g.s.Member(u.Worker); m.Missed != 1 {
		t.Errorf("%+v", m)
	}
	g.commit(2)
	g.tick(2)
	g.passAll()
	g.phase(progress.Attest)
	g.must(func(s State) (State, []event.Event, error) { return s.Attest(g.env(), 0, vote(s, "w0")) })
	for _, m := range g.s.Members {
		if g.s.Phase == progress.Attest && m.ID != g.s.Units[0].Worker {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, work.UnitID{}, 0)
			})
		}
	}
	g.phase(progress.Train)
	if len(g.s.Votes) > 0 {
		t.Error("votes outlive the updates they were for")
	}
}

// A worker that committed to wrong work and then withholds the update is convicted all the same.
func TestWithheldLieIsConvicted(t *testing.T) {
	g := begin(t, newTerms(), newMembers(4, 1))
	g.toAudits()
	u := g.s.Units[2]
	for _, m := range g.s.Members {
		if m.ID != u.Worker {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, work.UnitID{Unit: 2}, 0)
			})
		}
	}
	g.must(func(s State) (State, []event.Event, error) {
		return s.Challenge(g.env(), u.Verifier, work.UnitID{Unit: 2})
	})
	g.must(func(s State) (State, []event.Event, error) {
		return s.Verdict(g.env(), work.UnitID{Unit: 2}, true, false, u.Worker)
	})
	if m, _ := g.s.Member(u.Worker); m.Active || m.Why != reason.Verdict {
		t.Errorf("the liar after the verdict: %+v", m)
	}
	if v := g.s.Units[2]; v.Worker == u.Worker || v.Attempt != 1 {
		t.Errorf("its unit: %+v", v)
	}
}

func TestAttestation(t *testing.T) {
	reach := func() *stage {
		g := begin(t, newTerms(), newMembers(3, 1))
		g.toAudits()
		g.passAll()
		return g
	}
	attest := func(g *stage, id string, spoil bool) {
		g.must(func(s State) (State, []event.Event, error) {
			v := vote(s, id)
			if spoil {
				v.Next.Root = canon.Sum("another")
			}
			return s.Attest(g.env(), 0, v)
		})
	}
	t.Run("minority", func(t *testing.T) {
		g := reach()
		attest(g, "w1", true)
		attest(g, "w0", false)
		attest(g, "v0", false)
		g.phase(progress.Attest)
		attest(g, "w2", false)
		g.phase(progress.Assign)
		if m, _ := g.s.Member("w1"); m.Active || m.Why != reason.WrongAttest {
			t.Errorf("%+v", m)
		}
	})
	t.Run("tie", func(t *testing.T) {
		g := reach()
		attest(g, "w0", true)
		attest(g, "w1", true)
		attest(g, "w2", false)
		attest(g, "v0", false)
		g.phase(progress.Attest) // a member may join
		for g.s.Phase == progress.Attest && g.height < 1000 {
			g.tick(1)
		}
		g.phase(progress.Assign) // one of the two, which can be refuted
	})
	t.Run("silence", func(t *testing.T) {
		g := reach()
		attest(g, "w0", false)
		attest(g, "w1", false)
		start := g.s.Since
		for g.s.Phase == progress.Attest && g.height < 1000 {
			g.tick(1)
		}
		g.phase(progress.Assign) // two silent members leave after 10+20+40 blocks, the others are a quorum
		if over := g.height - 1 - start; over != 71 {
			t.Errorf("left after %d blocks", over)
		}
		if m, _ := g.s.Member("w2"); m.Active || m.Why != reason.MissedAttest {
			t.Errorf("%+v", m)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		g := reach()
		g.tick(100)
		g.phase(progress.Attest) // a member may come back
		g.tick(1000)
		g.phase(progress.Halted)
	})
}

// A round that the escrow does not cover waits for what earlier rounds leave of it; when nothing is open, the run ends.
func TestBroke(t *testing.T) {
	g := begin(t, newTerms(), newMembers(2, 1))
	broke := func() {
		g.must(func(s State) (State, []event.Event, error) {
			env := g.env()
			env.BudgetExhausted = true
			s, events := s.Tick(env)
			return s, events, nil
		})
		g.height++
	}
	g.round()
	broke()
	g.phase(progress.Assign)
	g.sealAll()
	broke()
	broke()
	g.openAll()
	for range 5 {
		broke()
	}
	g.phase(progress.Halted)
	if g.s.Why != reason.BudgetExhausted || g.count(event.RoundFinal) != 1 {
		t.Errorf("%s with %d rounds final", g.s.Why, g.count(event.RoundFinal))
	}
}

func TestDealFollowsSpeed(t *testing.T) {
	for _, c := range []struct {
		units  uint32
		speeds []uint32
		want   []int // units of each worker; -1: any number
	}{
		{8, []uint32{0, 0, 0, 0}, []int{2, 2, 2, 2}},
		{8, []uint32{512, 512, 512, 512}, []int{2, 2, 2, 2}},
		{9, []uint32{512, 1024}, []int{6, 3}},
		{10, []uint32{256, 0, 768}, []int{5, 3, 2}}, // 1 : 1/2 : 1/3
		{2, []uint32{256, 256, 1 << 28}, []int{1, 1, 0}},
		// a new worker gets a unit, which measures it, also if that leaves another without one
		{4, []uint32{256, 256, 256, 256, 2560, 2560, 0}, []int{-1, -1, -1, -1, 0, 0, 1}},
		{4, []uint32{256, 256, 256, 256, 0, 0}, []int{-1, -1, -1, -1, 1, 1}},
		{3, []uint32{256, 256, 0, 0, 0, 0}, []int{0, 0, -1, -1, -1, -1}},
	} {
		spec := newTerms()
		spec.Units = c.units
		g := begin(t, spec, newMembers(len(c.speeds), 1))
		for i, speed := range c.speeds {
			g.s.Members[slices.IndexFunc(g.s.Members,
				func(m crew.Member) bool { return m.ID == fmt.Sprintf("w%d", i) })].Speed = speed
		}
		g.tick(1)
		got := make([]int, len(c.speeds))
		for i := range got {
			got[i] = len(g.s.Work(fmt.Sprintf("w%d", i)))
		}
		if len(g.s.Units) != int(c.units) ||
			!slices.EqualFunc(got, c.want, func(got, want int) bool { return want < 0 || got == want }) {
			t.Errorf("%d units over speeds %v: %v, want %v", c.units, c.speeds, got, c.want)
		}
	}
}

func TestNoBeaconNoDeal(t *testing.T) {
	s, _ := New(newTerms(), newMembers(2, 1), 1)
	if after, events := s.Tick(transition.Env{Height: 2}); after.Phase != progress.Assign || len(events) > 0 {
		t.Error("dealt without a beacon")
	}
}

func TestWorkerOwesOneUnitPerDeadline(t *testing.T) {
	many := newTerms()
	many.Units = 6
	g := begin(t, many, newMembers(1, 1))
	g.tick(1)
	for i := range many.Units {
		g.tick(10)
		g.commit(i)
	}
	if g.count(event.UnitReassigned) > 0 {
		t.Error("a worker that keeps every deadline lost a unit")
	}
	if m, _ := g.s.Member("w0"); m.Speed < 9*256 || m.Speed > 11*256 {
		t.Errorf("speed %d/256 blocks", m.Speed)
	}
}
