package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// slow is a run whose worker takes 20 blocks for each of eight units, which a verifier passes one block after they are
// drawn.
func slow(t *testing.T) *stage {
	t.Helper()
	all := newTerms()
	all.Units, all.Rounds = 8, 3
	all.Deadlines = terms.Deadlines{Train: 40, Audit: 1, Attest: 10}
	g := begin(t, all, newMembers(1, 2))
	for range 2 {
		g.tick(1)
		for i := range g.s.Units {
			g.tick(20)
			g.commit(uint32(i))
		}
		g.tick(2)
		g.sealAll()
		g.tick(1)
		g.unsealAll()
		g.attestAll()
	}
	if len(g.s.AuditBlocks) < schedule.Trusted || schedule.Typical(g.s.AuditBlocks) > 10 {
		t.Fatalf("answers after %v blocks: nothing to see", g.s.AuditBlocks)
	}
	return g
}

func TestQuickVerifierDoesNotSetTheClockOfTheWorker(t *testing.T) {
	g := slow(t)
	u := g.unit(1, 0)
	if u.Took < 20 {
		t.Fatalf("the worker took %d blocks", u.Took)
	}
	worker, challenger := g.s.MoveBlocks(u, "v0")
	if worker < 4*20 {
		t.Errorf("a worker that takes 20 blocks for a unit has %d for a move", worker)
	}
	if challenger < 24 {
		t.Errorf("the challenger has %d blocks for a move", challenger)
	}
	u.Took = 500
	if longer, same := g.s.MoveBlocks(u, "v0"); longer < 4*500 || same != challenger {
		t.Errorf("with a worker that took 500 blocks: %d and %d blocks for a move, were %d and %d", longer, same, worker,
			challenger)
	}
	u.Challengers = []string{"v1", "v0"}
	if _, waiting := g.s.MoveBlocks(u, "v0"); waiting >= challenger {
		t.Errorf("who waits for another dispute has %d blocks for a move, as if it could not prepare", waiting)
	}
}

// Before the first audit is answered, the deadline of audits is that of the terms: a silent party in a dispute stalls
// the run for no longer, and a party that is known to need more has more.
func TestSilenceStallsARunForNoLongerThanTheTermsGive(t *testing.T) {
	all := newTerms()
	all.Deadlines.Audit = 600
	s := begin(t, all, newMembers(2, 1)).s
	if worker, challenger := s.MoveBlocks(work.Unit{Worker: "w0"}, "v0"); worker != 600 || challenger != 600 {
		t.Errorf("parties of which nothing is known have %d and %d blocks for a move", worker, challenger)
	}
	if worker, _ := s.MoveBlocks(work.Unit{Worker: "w0", Took: 400}, "v0"); worker != 4*400 {
		t.Errorf("a worker that took 400 blocks has %d for a move", worker)
	}
	s.AuditBlocks = []int64{10, 10, 10, 10, 10, 10, 10, 10}
	if worker, _ := s.MoveBlocks(work.Unit{Worker: "w0"}, "v0"); worker < s.AuditDeadline() || worker < 600/4 {
		t.Errorf("where audits take 10 blocks: %d blocks for a move, %d for an audit", worker, s.AuditDeadline())
	}
}

func TestQuickVerifierDoesNotEvictOthers(t *testing.T) {
	g := slow(t)
	if blocks := g.s.AuditDeadline(); blocks < 20 {
		t.Errorf("a unit of 20 blocks is to be executed again in %d", blocks)
	}
}

// A worker that holds many units, and commits each at once, counts once among the members.
func TestDeadlinesFollowMembersAndTheirStakeNotObservations(t *testing.T) {
	s := State{
		Progress: progress.Progress{
			Crew: crew.Crew{Terms: newTerms(), Members: []crew.Member{
				{ID: "a", Role: crew.Worker, Active: true, Speed: 1 << 8, Stake: 1},
				{ID: "b", Role: crew.Worker, Active: true, Speed: 1 << 8, Stake: 1},
				{ID: "c", Role: crew.Worker, Active: true, Speed: 30 << 8, Stake: 3},
			}},
		},
	}
	for range 4 * schedule.Trusted {
		s.TrainBlocks, s.AuditBlocks = schedule.Remember(s.TrainBlocks, 1), schedule.Remember(s.AuditBlocks, 1)
	}
	if s.TrainDeadline() < 30 || s.AuditDeadline() < 30 {
		t.Errorf("deadlines of %d and %d blocks, where most of the stake needs 30", s.TrainDeadline(), s.AuditDeadline())
	}
	s.Members[2].Stake = 1
	if s.TrainDeadline() >= 30 {
		t.Errorf("a deadline of %d blocks for the slowest of three", s.TrainDeadline())
	}
}

func TestWindowForChallengesLastsAsLongAsAUnitDoneAgain(t *testing.T) {
	g := slow(t)
	if blocks := g.s.ChallengeBlocks(); blocks < 2*20 {
		t.Errorf("units of 20 blocks may be challenged for %d", blocks)
	}
	g.s.Terms.Deadlines.Challenge = 1000
	if blocks := g.s.ChallengeBlocks(); blocks != 1000 {
		t.Errorf("the terms' window of 1000 blocks lasts %d", blocks)
	}
}
