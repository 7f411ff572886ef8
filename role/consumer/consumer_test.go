package consumer

import (
	"testing"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

func block(height int64, phase progress.Phase, round uint32) role.Block {
	return role.Block{Height: height, Run: run.State{
		Progress: progress.Progress{
			Phase:  phase,
			Window: work.Window{RoundState: work.RoundState{Round: round, Base: terms.Checkpoint{Round: round}}},
		},
	}}
}

// Every round is collected once and in order, also when several were attested since the last block seen.
func TestCollectsInOrderAndConcludesLast(t *testing.T) {
	c := New(0)
	next := uint32(0)
	for height := int64(1); height < 20; height++ {
		actions := c.Step(block(height, progress.Done, 5))
		if len(actions) != 1 {
			t.Fatalf("height %d: %v", height, actions)
		}
		if _, ok := actions[0].(Conclude); ok {
			if next != 6 {
				t.Fatalf("concludes after %d rounds", next)
			}
			c.Step(role.Finished{Action: actions[0]})
			if again := c.Step(block(height+1, progress.Done, 5)); len(again) != 0 {
				t.Fatalf("after the end: %v", again)
			}
			return
		}
		if got := actions[0].(Collect).Round; got != next {
			t.Fatalf("collects %d, want %d", got, next)
		}
		next++
		c.Step(role.Finished{Action: actions[0]})
	}
	t.Fatal("never concluded")
}

func TestWaitsForTheFirstRoundAfterAResume(t *testing.T) {
	c := New(3)
	if got := c.Step(block(1, progress.Train, 2)); len(got) != 0 {
		t.Fatalf("%v", got)
	}
	if got := c.Step(block(2, progress.Assign, 3)); len(got) != 1 || got[0].(Collect).Round != 3 {
		t.Fatalf("%v", got)
	}
}

// When the run goes back, what was collected beyond is dropped and collected again.
func TestRewinds(t *testing.T) {
	c := New(5)
	got := c.Step(block(1, progress.Train, 2))
	if len(got) != 1 || got[0].(Rewind).Round != 2 {
		t.Fatalf("%v", got)
	}
	c.Step(role.Failed{Action: got[0]})
	if got = c.Step(block(9, progress.Train, 2)); len(got) != 1 {
		t.Fatalf("after a failure %v", got)
	}
	c.Step(role.Finished{Action: got[0]})
	if got := c.Step(block(10, progress.Attest, 2)); len(got) != 0 {
		t.Fatalf("before the round is attested again: %v", got)
	}
	if got := c.Step(block(11, progress.Assign, 3)); len(got) != 1 || got[0].(Collect).Round != 3 {
		t.Fatalf("%v", got)
	}
}
