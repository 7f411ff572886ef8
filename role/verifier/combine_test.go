package verifier

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// unchecked is a run with attested rounds of which this verifier could fetch no update.
func unchecked(rounds uint32, reporter string) run.State {
	s := run.State{Progress: progress.Progress{
		Phase: progress.Attest, Rules: progress.ReportsExtend,
		Crew: crew.Crew{Members: []crew.Member{{ID: me, Role: crew.Verifier, Active: true}}},
	}}
	s.Terms.AuditPPM = 1
	at := func(round uint32) terms.Checkpoint { return terms.Checkpoint{Round: round, CID: "c"} }
	for i := range rounds {
		s.Open = append(s.Open, work.RoundState{Round: i, Base: at(i), Units: work.Units{
			{Worker: "w", Status: work.Accepted, Missing: []string{reporter}, Commit: work.Commitment{UpdateCID: "u"}}}})
	}
	s.Round, s.Base = rounds, at(rounds)
	return s
}

// executed is the round of the only execution that is asked for, if there is one.
func executed(t *testing.T, actions []role.Action) (at *role.Advance) {
	t.Helper()
	for _, a := range actions {
		if a, ok := a.(role.Advance); ok && a.Executes {
			if at != nil {
				t.Errorf("executes rounds %d and %d at the same time", at.Base.Round, a.Base.Round)
			}
			at = &a
		}
	}
	return at
}

// A verifier executes the rounds that it reported one after the other, in an order of its own, and refutes what does
// not follow.
func TestReportedRoundsAreExecuted(t *testing.T) {
	orders := map[uint32]bool{}
	for i := range 20 {
		v := New(me, canon.Sum("secret", []byte{byte(i)}))
		first := executed(t, v.Step(role.Block{Height: 1, Run: unchecked(5, me)}))
		if first == nil {
			t.Fatal("executes no round")
		}
		orders[first.Base.Round] = true
		if a := executed(t, v.Step(role.Block{Height: 2, Run: unchecked(5, me)})); a != nil {
			t.Errorf("begins round %d before the first is executed", a.Base.Round)
		}
		next := terms.Checkpoint{Round: first.Base.Round + 1, Root: canon.Sum("right")}
		after := v.Step(role.Advanced{Action: *first, Next: next})
		if !slices.ContainsFunc(after, func(a role.Action) bool {
			r, ok := a.(role.Refute)
			return ok && r.Base == first.Base && r.Wrong.Round == next.Round
		}) {
			t.Errorf("round %d leads to another checkpoint, and %+v", first.Base.Round, after)
		}
		if a := executed(t, v.Step(role.Block{Height: 3, Run: unchecked(5, me)})); a == nil || a.Base == first.Base {
			t.Errorf("after round %d it executes %+v", first.Base.Round, a)
		}
	}
	if len(orders) < 3 {
		t.Errorf("twenty verifiers begin with rounds %v", orders)
	}
}

// Units of a round that cannot be executed to the updates that were committed are checked.
func TestRoundsThatCannotBeExecutedAreChecked(t *testing.T) {
	v := New(me, canon.Sum("secret"))
	s := unchecked(1, me)
	a := executed(t, v.Step(role.Block{Height: 1, Run: s}))
	v.Step(role.Failed{Action: *a, Err: errors.New("another update")})
	checks := func(a role.Action) bool { _, ok := a.(role.Check); return ok }
	load := v.Step(role.Block{Height: 2, Run: s})
	v.Step(role.Loaded{Action: role.Load{Checkpoint: s.Base}})
	if actions := v.Step(role.Block{Height: 3, Run: s}); !slices.ContainsFunc(append(load, actions...), checks) {
		t.Errorf("it does %v", actions)
	}
}

// A pause that sets an execution aside raises no doubt about the units of the round.
func TestAPauseRaisesNoDoubt(t *testing.T) {
	v := New(me, canon.Sum("secret"))
	a := executed(t, v.Step(role.Block{Height: 1, Run: unchecked(1, me)}))
	v.Step(role.Pause{})
	v.Step(role.Failed{Action: *a, Err: role.ErrPaused})
	if len(v.doubted) > 0 {
		t.Errorf("doubts rounds %v", v.doubted)
	}
}

// Rounds without a report are not executed; without a seat only a proactive verifier executes those of others.
func TestWhoExecutesRounds(t *testing.T) {
	outside := unchecked(1, "x")
	outside.Members = nil
	for _, c := range []struct {
		name string
		v    *Verifier
		s    run.State
		want bool
	}{
		{"another member reported", New(me, canon.Sum("s")), unchecked(1, "x"), false},
		{"no seat", New(me, canon.Sum("s")), outside, false},
		{"no seat, proactive", NewProactive(me, canon.Sum("s")), outside, true},
	} {
		if a := executed(t, c.v.Step(role.Block{Height: 1, Run: c.s})); (a != nil) != c.want {
			t.Errorf("%s: executes %+v", c.name, a)
		}
	}
}
