package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// late begins a run in which one worker is late: what is not its own is committed, and its units went to others. It
// returns the first of these as it was before.
func late(t *testing.T, all terms.Terms, members []crew.Member) (g *stage, was work.Unit) {
	t.Helper()
	g = begin(t, all, members)
	g.tick(6)
	was = *g.s.Units[0]
	for _, u := range g.s.Units {
		if u.Worker != was.Worker {
			g.commit(u.Index)
		}
	}
	was = *g.s.Units[0]
	g.height = was.Deadline + 1
	g.tick(1)
	if g.s.Units[0].Worker == was.Worker {
		t.Fatal("it has not moved")
	}
	return g, was
}

func commits(g *stage, u work.Unit, round uint32) func(State) (State, []event.Event, error) {
	return func(s State) (State, []event.Event, error) {
		return s.Commit(g.env(), u.Worker, work.UnitID{Unit: u.Index, Round: round, Attempt: u.Attempt},
			commitment(s.RoundState, u.Index))
	}
}

// A worker that is late with a unit still works on it: the unit goes to a worker without units, and two late workers
// do not exchange their units.
func TestUnitsOfTheLateAreNotExchanged(t *testing.T) {
	few := newTerms()
	few.Units = 3
	g := begin(t, few, newMembers(3, 1))
	g.tick(6)
	g.commit(2)
	was, idle := slices.Clone(g.s.Units[:2]), g.s.Units[2].Worker
	g.height = was[0].Deadline + 1
	g.tick(1)
	moved := 0
	for i, u := range g.s.Units[:2] {
		switch {
		case u.Worker == idle && u.Attempt > 0:
			moved++
		case u.Worker != was[i].Worker || u.Attempt != 0 || u.Deadline <= was[i].Deadline:
			t.Errorf("it was %+v, and is %+v", was[i], u)
		}
	}
	if moved != 1 {
		t.Errorf("%d units went to the one with nothing to do", moved)
	}
}

func TestLateCommitmentCountsIfItIsTheFirst(t *testing.T) {
	g, was := late(t, newTerms(), newMembers(5, 1))
	now := *g.s.Units[0]
	g.must(commits(g, was, 0))
	u := g.s.Units[0]
	if u.Worker != was.Worker || u.Attempt != was.Attempt || u.Status != work.Committed {
		t.Fatalf("the late commitment does not count: %+v", u)
	}
	g.phase(progress.Attest)
	e := g.events[len(g.events)-2]
	if e.Kind != event.UnitReassigned || e.Who != now.Worker || e.Other != was.Worker || e.Why != reason.Overtaken {
		t.Errorf("who stood in is told %+v", e)
	}
	g.refused(refusal.ErrStale, commits(g, now, 0))
	g.refused(refusal.ErrDuplicate, commits(g, was, 0))
	if m, _ := g.s.Member(now.Worker); m.Missed != 0 {
		t.Errorf("who stood in is blamed: %+v", m)
	}
	g.tick(2)
	g.passAll()
	g.attestAll()
	if m, _ := g.s.Member(was.Worker); m.Missed != 1 {
		t.Errorf("a unit committed late wins patience back: %+v", m)
	}
}

func TestLateCommitmentIsRefusedAfterAnother(t *testing.T) {
	g, was := late(t, newTerms(), newMembers(5, 1))
	now := *g.s.Units[0]
	g.commit(0)
	g.refused(refusal.ErrStale, commits(g, was, 0))
	if u := g.s.Units[0]; u.Worker != now.Worker || u.Attempt != now.Attempt {
		t.Fatalf("%+v", u)
	}
	g.tick(2)
	g.passAll()
	g.attestAll()
	g.refused(refusal.ErrStale, commits(g, was, 0))
	g.tick(1)
	g.refused(refusal.ErrStale, commits(g, work.Unit{Worker: was.Worker, Index: 0, Attempt: was.Attempt + 7}, 1))
}

// Of a unit that was committed and is taken away, nothing that was begun before counts: in a tolerant run it may have
// been computed by another stack than the one that is asked for now. And no attempt is given twice.
func TestFormerHoldersEndWithACommitment(t *testing.T) {
	g, was := late(t, newTerms(), newMembers(5, 2))
	now := *g.s.Units[0]
	g.must(commits(g, was, 0))
	g.tick(2)
	g.dispute(0, true)
	u := g.s.Units[0]
	if u.Status != work.Assigned || len(u.PreviousAssignees) > 0 {
		t.Fatalf("%+v", u)
	}
	if u.Attempt <= now.Attempt {
		t.Errorf("attempt %d is given again, %d was given before", u.Attempt, now.Attempt)
	}
	if now.Worker != u.Worker {
		g.refused(refusal.ErrStale, commits(g, now, 0))
	}
}

// A member that is out has no say in a unit that it once had.
func TestNobodyCommitsLateWhoIsOut(t *testing.T) {
	g, was := late(t, newTerms(), newMembers(5, 1))
	g.must(func(s State) (State, []event.Event, error) { return s.Leave(g.env(), was.Worker) })
	g.refused(refusal.ErrInactive, commits(g, was, 0))
	if h := g.s.PreviousAssignments(was.Worker, g.s.Round, 0); len(h) > 0 {
		t.Errorf("it may commit %+v", h)
	}
}

// A fault of a machine with a known pace says nothing about its pace; of a machine that is not measured, a late
// commitment may be the only measure.
func TestLateWorkMeasuresWhoIsNotMeasured(t *testing.T) {
	many := newTerms()
	many.Units = 16
	g, was := late(t, many, newMembers(2, 1))
	g.tick(5)
	g.must(commits(g, was, 0))
	m, _ := g.s.Member(was.Worker)
	if blocks := int64(m.Speed >> 8); blocks != g.height-was.AssignedAt {
		t.Errorf("%d blocks for a unit that took %d", blocks, g.height-was.AssignedAt)
	}
	g.commitAll()
	m, _ = g.s.Member(was.Worker)
	measured, waits := m.Speed, len(g.s.TrainBlocks)
	g.tick(2)
	g.passAll()
	g.attestAll()
	g.tick(1)
	for _, u := range g.s.Units {
		if u.Worker != was.Worker {
			g.commit(u.Index)
			waits++
		}
	}
	mine := g.s.Work(was.Worker)
	g.height = mine[0].Deadline + 1
	g.tick(2)
	g.must(commits(g, mine[0], 1))
	if m, _ := g.s.Member(was.Worker); m.Speed != measured || len(g.s.TrainBlocks) != waits {
		t.Errorf("after a fault its pace is %d, before it %d; %d observations of %d", m.Speed, measured, len(g.s.TrainBlocks),
			waits)
	}
}

// A worker that is alone gets more time, and keeps its unit.
func TestTheOnlyWorkerKeepsItsUnit(t *testing.T) {
	g := begin(t, newTerms(), newMembers(1, 1))
	g.tick(1)
	was := *g.s.Units[0]
	g.height = was.Deadline + 1
	g.tick(1)
	if u := g.s.Units[0]; u.Attempt != was.Attempt || u.Deadline <= was.Deadline || g.count(event.UnitReassigned) > 0 {
		t.Errorf("%+v, before %+v", u, was)
	}
	if m, _ := g.s.Member("w0"); m.Missed != 1 {
		t.Errorf("%+v", m)
	}
	g.must(commits(g, was, 0))
}

// A worker that is not measured holds its first unit as long as the terms say only until the others' pace is known.
func TestFirstDeadlinesFollowTheOthers(t *testing.T) {
	long := newTerms()
	long.Deadlines.Train = 600
	g := begin(t, long, newMembers(4, 1))
	g.tick(1)
	if u := g.s.Units[0]; u.Deadline-u.AssignedAt != 600 {
		t.Fatalf("before anything is known: %+v", u)
	}
	g.tick(3)
	for _, c := range []struct{ unit, blocks uint32 }{
		{1, 8 * 9}, // four blocks, five on top: of one observation, eight times as many
		{2, 4 * 9},
		{3, 4 * 9},
	} {
		g.commit(c.unit)
		if u := g.s.Units[0]; u.Deadline-u.AssignedAt != int64(c.blocks) {
			t.Errorf("after the commitment of unit %d it has %d blocks, want %d", c.unit, u.Deadline-u.AssignedAt, c.blocks)
		}
	}
	slow := g.s.Units[0].Worker
	g.height = g.s.Units[0].Deadline + 1
	g.tick(1)
	if u := g.s.Units[0]; u.Worker == slow || u.Deadline-u.AssignedAt > 3*9 {
		t.Errorf("%+v", u)
	}
	if m, _ := g.s.Member(slow); m.Missed != 1 {
		t.Errorf("%+v", m)
	}
}

// However few were observed and whatever they say, a deadline is at least what is typical for them, and the terms' own
// is the most that a doubt adds.
func TestPatienceIsBounded(t *testing.T) {
	for n := range 12 {
		for _, blocks := range []int64{1, 3, 50, 700} {
			s := State{Progress: progress.Progress{Crew: crew.Crew{Terms: newTerms()}}}
			s.Terms.Deadlines.Train = 600
			for range n {
				s.TrainBlocks = append(s.TrainBlocks, blocks)
			}
			for _, times := range []int64{1, crew.Novice} {
				got, least := s.TrainDeadlineTimes(times), blocks+max(terms.MinBlocks, blocks/4)
				switch {
				case n == 0 && got != 600,
					n > 0 && got < least,
					got > max(600, least),
					n >= schedule.Trusted && times == 1 && got != least:
					t.Errorf("after %d times %d blocks, times %d: %d", n, blocks, times, got)
				}
			}
		}
	}
}

func TestFormerHoldersAreBounded(t *testing.T) {
	g := begin(t, newTerms(), newMembers(40, 1))
	g.tick(1)
	for _, u := range g.s.Units[1:] {
		g.commit(u.Index)
	}
	attempts := map[uint32]bool{}
	for range 30 {
		u := g.s.Units[0]
		if attempts[u.Attempt] {
			t.Fatalf("attempt %d is given twice", u.Attempt)
		}
		attempts[u.Attempt] = true
		g.height = u.Deadline + 1
		g.tick(1)
	}
	if n := len(g.s.Units[0].PreviousAssignees); n != work.MaxPreviousAssignees {
		t.Errorf("%d former holders", n)
	}
	if size := len(canon.MustMarshal(g.s.Units[0])); size > 4096 {
		t.Errorf("a unit of %d bytes", size)
	}
}

// A worker that gets a second unit, and loses it to the late worker's commitment, is measured by all the time that it
// had its own unit for.
func TestTakingBackDoesNotMeasure(t *testing.T) {
	few := newTerms()
	few.Units = 3
	g := begin(t, few, newMembers(3, 1))
	g.tick(6)
	late, own := *g.s.Units[0], *g.s.Units[1]
	moved := late
	moved.Worker, moved.Attempt, moved.AssignedAt = own.Worker, 1, g.height+1
	moved.PreviousAssignees = []work.PreviousAssignee{
		late.Assignee(),
	}
	g.s.Units[0] = &moved
	g.height += 3
	g.must(commits(g, late, 0))
	if u := g.s.Units[0]; u.Worker != late.Worker || u.Status != work.Committed {
		t.Errorf("%+v", u)
	}
	if u := g.s.Units[1]; u.Worker != own.Worker || u.AssignedAt != own.AssignedAt || u.Deadline <= own.Deadline {
		t.Errorf("%+v, before %+v", u, own)
	}
}

// A worker that takes over from a late one may see the late commitment before it is in a block, and send the same,
// since roots are plain. It lacks the bytes of the update, so it is not paid; the late worker, which has them, is.
func TestCopiedLateCommitmentEarnsNothing(t *testing.T) {
	g, was := late(t, newTerms(), newMembers(5, 1))
	copier := *g.s.Units[0]
	g.must(commits(g, copier, 0))
	g.refused(refusal.ErrStale, commits(g, was, 0))
	g.phase(progress.Attest)
	g.tick(2)
	g.passAll()
	for _, m := range g.s.Members {
		if m.ID != copier.Worker && g.s.Units[0].Worker == copier.Worker {
			g.must(func(s State) (State, []event.Event, error) {
				return s.Missing(g.env(), m.ID, work.UnitID{Attempt: copier.Attempt}, 0)
			})
		}
	}
	if u := g.s.Units[0]; u.Status != work.Assigned || len(g.s.PreviousAssignments(was.Worker, g.s.Round, 0)) != 1 ||
		len(g.s.PreviousAssignments(copier.Worker, g.s.Round, 0)) != 0 {
		t.Fatalf("after it could not be had: %+v", u)
	}
	g.must(commits(g, was, 0))
	if u := g.s.Units[0]; u.Worker != was.Worker || u.Attempt != was.Attempt || u.Status != work.Committed {
		t.Errorf("the late worker does not have it: %+v", u)
	}
	if m, _ := g.s.Member(copier.Worker); m.Missed == 0 {
		t.Error("who copied has missed nothing")
	}
}
