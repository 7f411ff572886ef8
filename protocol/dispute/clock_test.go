package dispute

import (
	"testing"

	"github.com/starling-network/starling/canon"
)

// Each party has a whole time for all its moves together, and its own time for each.
func TestWhoTakesAllItsTimeForEveryMoveRunsOutOfIt(t *testing.T) {
	g := Dispute{Config: Config{MoveBlocks: 10, ChallengerBlocks: 7}}
	height := int64(100)
	g = g.moved(height, Challenger, ShowStates, Record{})
	var spent int64
	for range 20 {
		if g.Deadline > height+10 || g.Deadline <= height {
			t.Fatalf("the asserter has %d blocks for a move", g.Deadline-height)
		}
		spent, height = spent+g.Deadline-height, g.Deadline
		g = g.moved(height, Asserter, PickState, Record{})
		if g.Deadline > height+7 {
			t.Fatalf("the challenger has %d blocks for a move", g.Deadline-height)
		}
		g = g.moved(height, Challenger, ShowStates, Record{})
	}
	if spent > 4*10+20 {
		t.Errorf("an asserter that delays took %d blocks for 20 moves", spent)
	}
}

// The clock of the party to move stands still for as long as all its moves may take, and no longer; these blocks do
// not count as its time.
func TestClockStandsStillForAWhile(t *testing.T) {
	g, err := Open(Config{
		Job: "job", Asserter: "worker", Challenger: "verifier", Segments: make([]canon.Digest, 2), Steps: []uint32{1 << 20},
		Operators:  1,
		Parameters: 1, MoveBlocks: 24, ChallengerBlocks: 6,
	}, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		g = g.Stand()
	}
	if g.Deadline != 100+24+10 || g.Tick(134).Verdict != nil || g.Tick(135).Verdict == nil {
		t.Errorf("after ten blocks the deadline is %d", g.Deadline)
	}
	moved, err := g.Apply(130, "worker", Move{States: &States{Digests: make([]canon.Digest, len(g.Steps.Boundaries()))}},
		nil)
	if err != nil || moved.Spent[0] != 20 || moved.Still != 0 || moved.Deadline != 136 {
		t.Errorf("the move took %d blocks, the next has time up to %d (%v)", moved.Spent[0], moved.Deadline, err)
	}
	for range 1000 {
		g, moved = g.Stand(), moved.Stand()
	}
	if g.Deadline != 100+24+turns*24 || moved.Deadline != 136+turns*6 {
		t.Errorf("clocks stand still up to %d and %d", g.Deadline, moved.Deadline)
	}
	if over := g.Tick(g.Deadline + 1); over.Stand().Deadline != over.Deadline {
		t.Error("the clock of a game that is over stands still")
	}
}
