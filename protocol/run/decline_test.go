package run

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
)

func (g *stage) decline(id string) {
	g.t.Helper()
	g.must(func(s State) (State, []event.Event, error) { return s.Decline(g.env(), id) })
}

// A job that most members cannot open ends before each of them has missed the deadlines that it may miss.
func TestJobThatMostCannotOpenEndsWithoutMisses(t *testing.T) {
	g := begin(t, newTerms(), newMembers(3, 2))
	g.tick(1)
	for _, id := range []string{"w0", "w1", "v0"} {
		g.decline(id)
	}
	g.phase(progress.Train) // w2 may be about to commit
	for g.s.Phase == progress.Train {
		g.tick(1)
	}
	g.phase(progress.Halted)
	if g.s.Why != reason.Unopened {
		t.Errorf("halted over %s", g.s.Why)
	}
	for _, m := range g.s.Members {
		if m.Missed > 0 {
			t.Errorf("%s missed %d deadlines", m.ID, m.Missed)
		}
	}
}

// Without a worker the run does not wait.
func TestJobThatNoWorkerCanOpenEndsAtOnce(t *testing.T) {
	g := begin(t, newTerms(), newMembers(2, 1))
	for _, id := range []string{"w0", "v0", "w1"} {
		g.decline(id)
	}
	g.phase(progress.Halted)
	if g.s.Why != reason.Unopened {
		t.Errorf("halted over %s", g.s.Why)
	}
}

// A member that declines an honest job leaves and does not end the run: one worker that commits in time is enough,
// whatever the stake of those that declined.
func TestWhoCannotOpenAnHonestJobEndsNothing(t *testing.T) {
	members := newMembers(3, 2)
	for i := range members {
		members[i].Stake = 1
		if members[i].ID != "w2" && members[i].ID != "v1" {
			members[i].Stake = 1000
		}
	}
	g := begin(t, newTerms(), members)
	g.tick(1)
	for _, id := range []string{"w0", "w1", "v0"} {
		g.decline(id)
	}
	g.commitAll()
	for range 4 {
		g.tick(1)
	}
	if g.s.Phase == progress.Halted || g.s.MayDecline("w2") || g.s.MayDecline("w0") {
		t.Fatalf("phase %s %s", g.s.Phase, g.s.Why)
	}
	if err := g.do(func(s State) (State, []event.Event, error) { return s.Decline(g.env(), "w2") }); !errors.Is(err,
		refusal.ErrLast) {
		t.Errorf("the last worker of a run in which somebody worked: %v", err)
	}
	if err := g.do(func(s State) (State, []event.Event, error) { return s.Decline(g.env(), "v1") }); !errors.Is(err,
		refusal.ErrLast) {
		t.Errorf("the last verifier of a run in which somebody worked: %v", err)
	}
	if g.s.MayJoin("w0", crew.Worker) {
		t.Error("who could not open the job is taken in again")
	}
}

// Stake decides: many accounts without any end nothing, and neither does silence.
func TestFewWhoCannotOpenAJobAreNotMost(t *testing.T) {
	members := newMembers(3, 2)
	for i := range members {
		members[i].Stake = 1
		if members[i].ID == "w2" {
			members[i].Stake = 1000
		}
	}
	g := begin(t, newTerms(), members)
	g.tick(1)
	for _, id := range []string{"w0", "w1", "v0", "v1"} {
		g.decline(id)
	}
	m, _ := g.s.Member("w2")
	for m.Missed == 0 {
		g.tick(1)
		m, _ = g.s.Member("w2")
	}
	g.phase(progress.Train)
}
