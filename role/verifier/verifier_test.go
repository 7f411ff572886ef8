package verifier

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
)

const me = "v"

var base = run.Checkpoint{Root: canon.Digest{1}, CID: "base"}

// auditing is a run with one unit that this verifier must execute again.
func auditing() run.State {
	return run.State{
		Phase: run.Exchange, Base: base, Members: []run.Member{{ID: me, Role: run.Verifier, Active: true}, {ID: "w", Role: run.Worker, Active: true}},
		Units: []run.Unit{{Worker: "w", Verifier: me, Status: run.Auditing, Commit: run.Commitment{UpdateCID: "u"}}},
	}
}

func ready(t *testing.T) *Verifier {
	t.Helper()
	v := New(me)
	load := v.Step(role.Block{Height: 1, Run: auditing()})
	if len(load) != 1 {
		t.Fatalf("wants %v before it holds the checkpoint", load)
	}
	v.Step(role.Loaded{Action: load[0].(role.Load)})
	return v
}

func check(t *testing.T, v *Verifier) role.Check {
	t.Helper()
	actions := v.Step(role.Block{Height: 2, Run: auditing()})
	if len(actions) != 1 {
		t.Fatalf("wants %v for an audit", actions)
	}
	c := actions[0].(role.Check)
	if c.Worker != "w" || c.Commit.UpdateCID != "u" || c.Base != base {
		t.Fatalf("checks %+v", c)
	}
	return c
}

func TestRightWorkIsPassed(t *testing.T) {
	v := ready(t)
	seal := canon.Digest{9}
	got := v.Step(role.Checked{Action: check(t, v), Right: true, Seal: seal})
	if len(got) != 1 || got[0].(role.Pass).Seal != seal {
		t.Fatalf("%v", got)
	}
}

func TestWrongWorkIsChallengedAndPressed(t *testing.T) {
	v := ready(t)
	got := v.Step(role.Checked{Action: check(t, v), Differ: 2})
	if len(got) != 1 || got[0].(role.Challenge).Segment != 2 {
		t.Fatalf("%v", got)
	}
	v.Step(role.Finished{Action: got[0]})
	s := auditing()
	s.Units[0].Status = run.Disputed
	g := dispute.Game{Config: dispute.Config{Asserter: "w", Challenger: me}, Turn: dispute.Challenger}
	if got := v.Step(role.Block{Height: 3, Run: s, Disputes: []dispute.Game{g}}); len(got) != 1 || got[0].(role.Move).Game.Config.Challenger != me {
		t.Fatalf("%v", got)
	}
	g.Turn = dispute.Asserter
	if got := v.Step(role.Block{Height: 4, Run: s, Disputes: []dispute.Game{g}}); len(got) != 0 {
		t.Fatalf("moves out of turn: %v", got)
	}
}

// An answer that did not reach the chain is sent again, without computing again.
func TestAnswerIsRepeated(t *testing.T) {
	v := ready(t)
	pass := v.Step(role.Checked{Action: check(t, v), Right: true})
	v.Step(role.Failed{Action: pass[0]})
	got := v.Step(role.Block{Height: 9, Run: auditing()})
	if len(got) != 1 {
		t.Fatalf("%v", got)
	}
	if _, ok := got[0].(role.Pass); !ok {
		t.Fatalf("%T", got[0])
	}
}

func TestOthersAuditsAreTheirs(t *testing.T) {
	v := ready(t)
	s := auditing()
	s.Units[0].Verifier = "somebody"
	if got := v.Step(role.Block{Height: 2, Run: s}); len(got) != 0 {
		t.Fatalf("%v", got)
	}
}
