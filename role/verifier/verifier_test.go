package verifier

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

const me = "v"

var base = terms.Checkpoint{Root: canon.Digest{1}, CID: "base"}

// auditing is a run with one unit that this verifier must execute again.
func auditing() run.State {
	return run.State{
		Progress: progress.Progress{
			Phase: progress.Attest,
			Crew: crew.Crew{Members: []crew.Member{{ID: me, Role: crew.Verifier, Active: true},
				{ID: "w", Role: crew.Worker, Active: true}}},
			Votes: []progress.Vote{{Member: me}},
			Window: work.Window{
				RoundState: work.RoundState{Base: base, Units: work.Units{{Worker: "w", Verifier: me, Status: work.Auditing,
					Commit: work.Commitment{UpdateCID: "u"}}}},
			},
		},
	}
}

func ready(t *testing.T) *Verifier {
	t.Helper()
	v := New(me, canon.Sum("secret"))
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
	s.Units[0].Status, s.Units[0].Challengers = work.Disputed, []string{me}
	g := dispute.Dispute{Config: dispute.Config{Asserter: "w", Challenger: me}, Turn: dispute.Challenger}
	if got := v.Step(role.Block{Height: 3, Run: s, Disputes: []dispute.Dispute{g}}); len(got) != 1 ||
		got[0].(role.Move).Game.Config.Challenger != me {
		t.Fatalf("%v", got)
	}
	g.Turn = dispute.Asserter
	if got := v.Step(role.Block{Height: 4, Run: s, Disputes: []dispute.Dispute{g}}); len(got) != 0 {
		t.Fatalf("moves out of turn: %v", got)
	}
}

// A challenge is not repeated when something else ends before the block that shows it: if the fault was planted, and
// has been shown by then, the second challenge is a false one.
func TestChallengesOnce(t *testing.T) {
	v := ready(t)
	s := auditing()
	other := *s.Units[0]
	other.Index = 1
	s.Units = append(s.Units, &other)
	checks := v.Step(role.Block{Height: 2, Run: s})
	if len(checks) != 2 {
		t.Fatalf("wants %v for two audits", checks)
	}
	challenge := v.Step(role.Checked{Action: checks[0].(role.Check), Differ: 2})
	if len(challenge) != 1 {
		t.Fatalf("wants %v for wrong work", challenge)
	}
	v.Step(role.Finished{Action: challenge[0]})
	if got := v.Step(role.Checked{Action: checks[1].(role.Check), Right: true}); len(got) != 1 ||
		got[0].Key() == challenge[0].Key() {
		t.Errorf("wants %v when the other check has ended", got)
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

// An audit of an earlier round is answered during the current one.
func TestAuditsEarlierRounds(t *testing.T) {
	v := ready(t)
	s := auditing()
	s.Open = []work.RoundState{s.RoundState}
	s.RoundState = work.RoundState{Round: 1, Base: base}
	s.Phase = progress.Assign
	got := v.Step(role.Block{Height: 2, Run: s})
	if len(got) != 1 || got[0].(role.Check).Work.Round != 0 || got[0].(role.Check).Base != base {
		t.Fatalf("%v", got)
	}
}

// A proactive verifier with nothing to audit checks the work of others one at a time, and challenges wrong work even
// while another does.
func TestWatches(t *testing.T) {
	v := NewProactive(me, seeds(func(unit uint32) bool { return unit == 0 }))
	s := auditing()
	s.Units = work.Units{{Index: 0, Worker: "w", Status: work.Accepted},
		{Index: 1, Worker: "w", Verifier: "somebody", Status: work.Auditing}}
	load := v.Step(role.Block{Height: 1, Run: s})
	v.Step(role.Loaded{Action: load[0].(role.Load)})
	first := v.Step(role.Block{Height: 2, Run: s})
	if len(first) != 1 || first[0].(role.Check).Work.Unit != 0 {
		t.Fatalf("%v", first)
	}
	second := v.Step(role.Checked{Action: first[0].(role.Check), Right: true})
	if len(second) != 1 || second[0].(role.Check).Work.Unit != 1 {
		t.Fatalf("%v", second)
	}
	s.Units[1].Status, s.Units[1].Challengers = work.Disputed, []string{"somebody"}
	v.Step(role.Block{Height: 3, Run: s})
	got := v.Step(role.Checked{Action: second[0].(role.Check), Differ: 1})
	if len(got) != 1 || got[0].(role.Challenge).Work.Unit != 1 {
		t.Fatalf("%v", got)
	}
}

// In a run in which it has no part a watchful verifier looks at units too, challenges what is wrong, and leaves when
// the run is over.
func TestWatchesRunsOfOthers(t *testing.T) {
	v := NewProactive(me, canon.Digest{})
	s := auditing()
	s.Members, s.Units = s.Members[1:], work.Units{{Index: 0, Worker: "w", Verifier: "other", Status: work.Accepted}}
	spare := v.Step(role.Block{Height: 1, Run: s})
	if len(spare) != 1 || spare[0].(role.Check).Work.Unit != 0 {
		t.Fatalf("wants %v", spare)
	}
	challenge := v.Step(role.Checked{Action: spare[0].(role.Check), Differ: 1})
	if len(challenge) != 1 || challenge[0].(role.Challenge).Commitment != s.Units[0].Commit.Digest() {
		t.Fatalf("wants %v for wrong work", challenge)
	}
	s.Phase = progress.Done
	if got := v.Step(role.Block{Height: 9, Run: s}); !slices.ContainsFunc(got,
		func(a role.Action) bool { return a == role.Depart{} }) {
		t.Errorf("wants %v when the run is over", got)
	}
}

// Where the data is encrypted, a verifier checks the units that it is drawn for, and looks at nothing else: neither at
// units that no audit drew, nor at the rounds of updates that it cannot fetch.
func TestEncryptedDataIsNotWatched(t *testing.T) {
	v := NewProactive(me, canon.Digest{})
	v.Step(role.Encrypted{})
	s := auditing()
	watched, drawn := *s.Units[0], *s.Units[0]
	watched.Status, watched.Verifier, drawn.Index = work.Accepted, "", 1
	s.Units = work.Units{&watched}
	v.Step(role.Loaded{Action: v.Step(role.Block{Height: 1, Run: s})[0].(role.Load)})
	if got := v.Step(role.Block{Height: 2, Run: s}); len(got) > 0 {
		t.Errorf("wants %v without an audit", got)
	}
	s.Units = work.Units{&watched, &drawn}
	if got := v.Step(role.Block{Height: 3, Run: s}); len(got) != 1 || got[0].(role.Check).Work.Unit != 1 {
		t.Errorf("wants %v for an audit", got)
	}
	reported := New(me, canon.Sum("secret"))
	reported.Step(role.Encrypted{})
	for _, a := range reported.Step(role.Block{Height: 1, Run: unchecked(3, me)}) {
		if a, ok := a.(role.Advance); ok && a.Executes {
			t.Errorf("it executes round %d", a.Base.Round)
		}
	}
}

// seeds returns a seed by which a verifier watches a unit first, of units 0 and 1 of round 0.
func seeds(first func(unit uint32) bool) canon.Digest {
	for seed := (canon.Digest{}); ; seed[0]++ {
		v := NewProactive(me, seed)
		a, b := v.turn(run.State{}, work.UnitID{}), v.turn(run.State{}, work.UnitID{Unit: 1})
		if first(map[bool]uint32{true: 0, false: 1}[bytes.Compare(a[:], b[:]) < 0]) {
			return seed
		}
	}
}

// Where a verifier looks unasked follows from its seed, so that two look at different units.
func TestWatchersLookAtDifferentUnits(t *testing.T) {
	s := auditing()
	s.Units = work.Units{{Index: 0, Worker: "w", Status: work.Accepted}, {Index: 1, Worker: "w", Status: work.Accepted}}
	for _, want := range []uint32{0, 1} {
		v := NewProactive(me, seeds(func(unit uint32) bool { return unit == want }))
		v.Step(role.Loaded{Action: v.Step(role.Block{Height: 1, Run: s})[0].(role.Load)})
		if got := v.Step(role.Block{Height: 2, Run: s}); len(got) != 1 || got[0].(role.Check).Work.Unit != want {
			t.Errorf("wants %v, unit %d comes first by its seed", got, want)
		}
	}
}

// An audit that is drawn for it does not wait until it has watched another unit.
func TestDutiesComeBeforeWatching(t *testing.T) {
	v := NewProactive(me, canon.Digest{})
	s := auditing()
	watched, drawn := *s.Units[0], *s.Units[0]
	watched.Status, watched.Verifier, drawn.Index = work.Accepted, "", 1
	s.Units = work.Units{&watched}
	v.Step(role.Loaded{Action: v.Step(role.Block{Height: 1, Run: s})[0].(role.Load)})
	spare := v.Step(role.Block{Height: 2, Run: s})
	s.Units = work.Units{&watched, &drawn}
	for height := range int64(2) { // also a second time
		got := v.Step(role.Block{Height: 3 + 10*height, Run: s})
		if len(got) != 2 || got[0].(role.Check).Work.Unit != 1 || got[1].(role.Stop).Of != spare[0].Key() {
			t.Fatalf("wants %v for an audit while it watches", got)
		}
		v.Step(role.Failed{Action: spare[0], Err: context.Canceled})
		v.Step(role.Checked{Action: got[0].(role.Check), Right: true})
		drawn.Status = work.Sealed
		if got := v.Step(role.Block{Height: 9 + 10*height, Run: s}); len(got) != 1 || got[0].(role.Check).Work.Unit != 0 {
			t.Fatalf("wants %v when the audit is answered", got)
		}
		drawn.Status, drawn.Attempt = work.Auditing, drawn.Attempt+1
	}
}

// A seal is opened at the tile of the question, also by a verifier that left the run.
func TestSealIsOpened(t *testing.T) {
	v := ready(t)
	s := auditing()
	s.Units[0].Status, s.Units[0].Seal = work.Sealed, canon.Digest{9}
	if got := v.Step(role.Block{Height: 2, Run: s}); len(got) != 0 {
		t.Fatalf("before the question: %v", got)
	}
	s.Units[0].Question = canon.Digest{8}
	s.Members[0].Active = false
	got := v.Step(role.Block{Height: 3, Run: s})
	if len(got) != 1 || got[0].(role.Unseal).Question != (canon.Digest{8}) || got[0].(role.Unseal).Base != base {
		t.Fatalf("asked for the opening: %v", got)
	}
}

// When the fault that it found was planted, the verifier looks at the right commitment.
func TestPlantedFaultIsLookedAtAgain(t *testing.T) {
	v := ready(t)
	c := check(t, v)
	if got := v.Step(role.Checked{Action: c, Differ: 1}); len(got) != 1 || got[0].(role.Challenge).Segment != 1 {
		t.Fatalf("%v", got)
	}
	v.Step(role.Finished{Action: role.Challenge{Work: c.Work, Segment: 1}})
	shown := auditing()
	shown.Units[0].Commit.Segments = []canon.Digest{{1}, {2}}
	got := v.Step(role.Block{Height: 3, Run: shown})
	if len(got) != 1 || len(got[0].(role.Check).Commit.Segments) != 2 {
		t.Fatalf("after the plant is shown: %v", got)
	}
	if got = v.Step(role.Checked{Action: got[0].(role.Check), Right: true}); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	if _, ok := got[0].(role.Pass); !ok {
		t.Fatalf("%v", got)
	}
}

// A unit that it has passed is executed again when it is audited again, as all is that a convicted worker did: the
// state that it sealed is not held any more.
func TestSealedWorkIsCheckedAgain(t *testing.T) {
	v := ready(t)
	passed := v.Step(role.Checked{Action: check(t, v), Right: true})
	v.Step(role.Finished{Action: passed[0]})
	s := auditing()
	s.Units[0].Status = work.Sealed
	v.Step(role.Block{Height: 3, Run: s})
	s.Units[0].Status = work.Accepted
	v.Step(role.Block{Height: 4, Run: s})
	got := v.Step(role.Block{Height: 5, Run: auditing()})
	if len(got) != 1 {
		t.Fatalf("wants %v for a second audit", got)
	}
	again, ok := got[0].(role.Check)
	if !ok {
		t.Fatalf("wants %v for a second audit", got)
	}
	if got = v.Step(role.Checked{Action: again, Right: true}); len(got) != 1 ||
		got[0].Key() != (role.Pass{Work: again.Work}).Key() {
		t.Fatalf("%v", got)
	}
}

// However many audits are drawn at once, it executes two units at a time, and others while one rests after a failure.
func TestFewChecksAtATime(t *testing.T) {
	v := ready(t)
	s := auditing()
	for i := range uint32(5) {
		u := *s.Units[0]
		u.Index = i + 1
		s.Units = append(s.Units, &u)
	}
	got := v.Step(role.Block{Height: 2, Run: s})
	if len(got) != 2 || got[0].(role.Check).Work.Unit != 0 || got[1].(role.Check).Work.Unit != 1 {
		t.Fatalf("wants %v", got)
	}
	if got = v.Step(role.Block{Height: 3, Run: s}); len(got) != 0 {
		t.Fatalf("wants %v while two are executed", got)
	}
	v.Step(role.Failed{Action: role.Check{Work: work.UnitID{}}})
	if got = v.Step(role.Block{Height: 4, Run: s}); len(got) != 1 || got[0].(role.Check).Work.Unit != 2 {
		t.Fatalf("wants %v after a failure", got)
	}
}

// A paused verifier sets its audit aside and begins no other, watches nothing, opens the seals that it owes, and checks
// the attempt that contradicts its report: without a challenge it would lose stake.
func TestPause(t *testing.T) {
	v := ready(t)
	now := auditing()
	now.Terms.Segments, now.Units[0].Deadline = 1, 1000
	step := func(when string, e role.Event, keys ...string) {
		t.Helper()
		var got []string
		for _, a := range v.Step(e) {
			got = append(got, a.Key())
		}
		if !slices.Equal(got, keys) {
			t.Errorf("%s: %v, want %v", when, got, keys)
		}
	}
	checks := v.Step(role.Block{Height: 2, Run: now})
	audit := checks[0].Key()
	step("paused", role.Pause{}, "stop "+audit)
	step("set aside", role.Failed{Action: checks[0]})
	step("during the pause", role.Block{Height: 3, Run: now})
	sealed := now
	u := *now.Units[0]
	u.Status, u.Question = work.Sealed, canon.Digest{3}
	sealed.Units = work.Units{&u}
	step("with a seal to open", role.Block{Height: 4, Run: sealed}, "unseal 0/0.0")
	u.Status, u.Verifier, u.Commit.Segments = work.Accepted, "", []canon.Digest{{1}}
	u.Held = &work.Held{End: canon.Digest{2}, Verifiers: []string{me}}
	step("with a report that is contradicted", role.Block{Height: 5, Run: sealed}, audit)
	step("resumed", role.Resume{})
	step("resumed", role.Block{Height: 6, Run: now}, role.Load{Checkpoint: base}.Key())
}

// A paused verifier without an audit watches no unit.
func TestPausedVerifiersWatchNothing(t *testing.T) {
	v := NewProactive(me, canon.Sum("secret"))
	s := auditing()
	s.Terms.Segments, s.Units[0].Verifier, s.Units[0].Status = 1, "", work.Accepted
	load := v.Step(role.Block{Height: 1, Run: s})
	v.Step(role.Loaded{Action: load[0].(role.Load)})
	v.Step(role.Pause{})
	if got := v.Step(role.Block{Height: 2, Run: s}); len(got) > 0 {
		t.Errorf("it watches %v", got)
	}
	v.Step(role.Resume{})
	v.Step(role.Loaded{Action: load[0].(role.Load)})
	if got := v.Step(role.Block{Height: 3, Run: s}); len(got) != 1 {
		t.Errorf("resumed, it asks for %v", got)
	}
}
