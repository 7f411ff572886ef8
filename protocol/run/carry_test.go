package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// carrying are terms of five rounds whose units carry a state through two rounds in a row.
func carrying() terms.Terms {
	t := long()
	t.Carry, t.Deadlines.Challenge = 2, 3
	return t
}

// The rounds of a group become final together, the last round alone, and what a unit starts from is what was committed.
func TestGroupsBecomeFinalTogether(t *testing.T) {
	g := begin(t, carrying(), newMembers(4, 2))
	g.round()
	g.passAll()
	g.phase(progress.Train)
	for i, c := range g.lap(1).From {
		if first := g.unit(0, uint32(i)); c != first.Commit.HandedState || c.Root.IsZero() {
			t.Errorf("unit %d starts from %v, handed on was %v", i, c, first.Commit.HandedState)
		}
		if was, is := g.unit(0, uint32(i)).Worker, g.unit(1, uint32(i)).Worker; was != is {
			t.Errorf("unit %d goes from %s to %s, who has not its state", i, was, is)
		}
	}
	g.commitAll()
	g.tick(20)
	if g.count(event.RoundFinal) != 0 {
		t.Fatal("a round is final whose state others start from")
	}
	g.attestAll()
	g.passAll()
	g.tick(5)
	if n := g.count(event.RoundFinal); n != 2 || len(g.s.RoundState.From) != 0 || g.s.Round != 2 {
		t.Fatalf("%d rounds are final in round %d, which starts from %v", n, g.s.Round, g.s.RoundState.From)
	}
	g.finish()
	if g.count(event.RoundFinal) != 5 {
		t.Errorf("%d rounds are final", g.count(event.RoundFinal))
	}
}

// A run that ends in the middle of a group does not wait for the rest of it.
func TestGroupThatEndsEarly(t *testing.T) {
	g := begin(t, carrying(), newMembers(4, 2))
	g.round()
	g.phase(progress.Assign)
	g.sealAll()
	for i := range 20 {
		env := g.env()
		env.CancelRequested = true
		g.must(func(s State) (State, []event.Event, error) {
			s, events := s.Tick(env)
			return s, events, nil
		})
		g.height++
		if i == 2 { // it is known where
			g.openAll()
		}
	}
	if g.s.Phase != progress.Halted || g.s.Why != reason.Cancelled || len(g.s.Open) > 0 {
		t.Errorf("phase %d (%s), %d rounds are open", g.s.Phase, g.s.Why, len(g.s.Open))
	}
}

// A commitment names a carried state in rounds whose units carry one, and only there.
func TestCommitmentsToCarriedState(t *testing.T) {
	some := work.HandedState{Root: canon.Sum("state"), CID: "bafystate"}
	carries, alone := carrying(), long()
	for _, c := range []struct {
		terms terms.Terms
		round uint32
		given work.HandedState
		fits  bool
	}{
		{carries, 0, some, true}, {carries, 0, work.HandedState{}, false},
		{carries, 0, work.HandedState{Root: some.Root}, false}, {carries, 0, work.HandedState{CID: some.CID}, false},
		{carries, 1, some, false}, {carries, 1, work.HandedState{}, true},
		{carries, 4, work.HandedState{}, true}, {carries, 4, some, false},
		{alone, 0, some, false}, {alone, 0, work.HandedState{}, true},
	} {
		commit := commitment(work.RoundState{}, 0)
		commit.HandedState = c.given
		if err := work.CheckCommitment(c.terms, commit, c.round, 0); (err == nil) != c.fits {
			t.Errorf("%d rounds in a row, round %d, %v: %v", c.terms.Carry, c.round, c.given, err)
		}
	}
	carries.Carry = carries.Window + 1
	if carries.Validate() == nil {
		t.Error("a group that is longer than the window can never be final")
	}
}

// If a unit gets a new worker, another verifier audits the unit that its carried state is from, also when one has
// passed that.
func TestTakingOverQuestionsTheOrigin(t *testing.T) {
	g := begin(t, carrying(), newMembers(4, 2))
	before, after := g.takeOver(2)
	if after.Status != work.Auditing || after.Verifier == before.Verifier || after.Segment != 0 {
		t.Errorf("what was handed on is not audited: %+v", after)
	}
	if slices.ContainsFunc([]uint32{0, 1, 3}, func(i uint32) bool { return g.unit(0, i).Status != work.Accepted }) {
		t.Error("what nobody took over is audited again")
	}
}

// The only verifier is asked again if it has seen a part, and not if it has seen all.
func TestTheOnlyVerifierIsAskedForTheRest(t *testing.T) {
	part := carrying()
	part.PartialAudits = true
	asked := map[bool]bool{}
	for unit := range part.Units {
		g := begin(t, part, newMembers(4, 1))
		before, after := g.takeOver(unit)
		partly := before.Segment != 0
		asked[partly] = true
		if partly != (after.Status == work.Auditing) || after.Segment != 0 {
			t.Errorf("passed to the end of segment %d, then %+v", before.Segment, after)
		}
	}
	if !asked[true] || !asked[false] {
		t.Errorf("nothing to see: %v", asked)
	}
}

// takeOver plays a round in which every audit passes, and one in which only the worker of one unit is late. It returns
// the unit whose state that unit starts from, before and after.
func (g *stage) takeOver(unit uint32) (before, after work.Unit) {
	g.t.Helper()
	g.round()
	g.passAll()
	g.tick(1)
	now := g.s.Round
	if before = g.unit(now-1, unit); before.Status != work.Accepted || !before.Passed {
		g.t.Fatalf("nothing to see: %+v", before)
	}
	g.commitOthers(unit)
	late := g.unit(now, unit).Worker
	for range 60 {
		if g.unit(now, unit).Worker == late {
			g.tick(1)
		}
	}
	if g.unit(now, unit).Worker == late {
		g.t.Fatal("nobody takes over")
	}
	return before, g.unit(now-1, unit)
}

// commitOthers commits all units of the current round but one.
func (g *stage) commitOthers(unit uint32) {
	g.t.Helper()
	for _, u := range g.lap(g.s.Round).Units {
		if u.Index != unit {
			g.commit(u.Index)
		}
	}
}

// A round built on the round of a verdict is kept without duties for any member: it may have started from a state that
// no honest member has. It continues when the same state is committed again.
func TestVoidRoundsOfCarriedState(t *testing.T) {
	few := carrying()
	few.Carry, few.Deadlines.Challenge = 3, 100
	g := begin(t, few, newMembers(4, 2))
	g.round()
	g.passAll()
	g.toAudits()
	g.attestAll()
	from := g.lap(1).From
	g.challenge("v1", 0, 0)
	g.verdict(0, 0, true)
	if len(g.s.RolledBack) != 1 || g.s.Round != 0 || len(g.s.From) != 0 {
		t.Errorf("round %d starts from %v, %d rounds are kept", g.s.Round, g.s.From, len(g.s.RolledBack))
	}
	for _, u := range g.s.RolledBack[0].Units {
		if u.Status != work.Assigned && u.Status != work.Committed && u.Status != work.Accepted {
			t.Errorf("somebody still has to answer for %+v", u)
		}
	}
	g.commitAll()
	g.tick(2)
	g.attestAll()
	if !slices.Equal(g.s.From, from) {
		t.Error("honest work done again hands on something else")
	}
	if len(g.s.RolledBack) != 0 || g.count(event.RoundRestored) != 1 || g.s.Round != 1 {
		t.Errorf("round %d, %d rounds kept, %d restored", g.s.Round, len(g.s.RolledBack), g.count(event.RoundRestored))
	}
}

// A worker that may lack a right state to train from, because an earlier unit of its index is disputed, is not late
// while the dispute lasts, however many rounds ago that unit was.
func TestUnitsWaitForTheDisputeAboutTheirOrigin(t *testing.T) {
	for _, rounds := range []int{0, 1} {
		terms := carrying()
		terms.Carry = uint32(rounds + 2)
		g := begin(t, terms, newMembers(4, 2))
		for range rounds {
			g.round()
			g.passAll()
		}
		_, origin := g.takeOver(2)
		round := uint32(rounds + 1)
		g.challenge(origin.Verifier, 0, 2)
		misled := g.unit(round, 2)
		before, _ := g.s.Member(misled.Worker)
		g.tick(int(6 * (misled.Deadline - misled.AssignedAt + 1)))
		if after, _ := g.s.Member(misled.Worker); g.unit(round, 2).Worker != misled.Worker || after.Missed != before.Missed {
			t.Errorf("while its origin is disputed: %+v, %+v", g.unit(round, 2), after)
		}
		g.verdict(0, 2, false)
		g.tick(int(20 * (misled.Deadline - misled.AssignedAt + 1)))
		if after, _ := g.s.Member(misled.Worker); g.unit(round, 2).Worker == misled.Worker && after.Missed == before.Missed {
			t.Errorf("after it: %+v, %+v", g.unit(round, 2), after)
		}
	}
}

// A worker is late with its unit even if the unit that its own carried state is from is disputed: it has that state,
// and a challenger of its own would otherwise buy it time.
func TestNobodyWaitsForADisputeAboutItsOwnWork(t *testing.T) {
	g := begin(t, carrying(), newMembers(4, 2))
	g.round()
	g.passAll()
	mine := g.unit(1, 2)
	if g.unit(0, 2).Worker != mine.Worker {
		t.Fatalf("nothing to see: %+v", mine)
	}
	g.commitOthers(2)
	g.challenge("v0", 0, 2)
	g.tick(int(2 * (mine.Deadline - mine.AssignedAt + 1)))
	if g.unit(1, 2).Worker == mine.Worker {
		t.Errorf("it still has %+v", g.unit(1, 2))
	}
}
