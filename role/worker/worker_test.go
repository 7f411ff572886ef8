package worker

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

const me, other = "a", "b"

var base = terms.Checkpoint{Round: 0, Root: canon.Digest{1}, CID: "base"}

func state(p progress.Phase, units ...*work.Unit) run.State {
	for i := range units {
		units[i].Index = uint32(i)
	}
	return run.State{
		Progress: progress.Progress{
			Phase:  p,
			Window: work.Window{RoundState: work.RoundState{Base: base, Units: units}},
			Crew: crew.Crew{
				Terms:   terms.Terms{Segments: 1},
				Members: []crew.Member{{ID: me, Role: crew.Worker, Active: true}, {ID: other, Role: crew.Worker, Active: true}},
			},
		},
	}
}

func kinds(actions []role.Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, fmt.Sprintf("%T", a)[len("role."):])
	}
	return out
}

func want(t *testing.T, when string, got []role.Action, names ...string) {
	t.Helper()
	if k := kinds(got); !reflect.DeepEqual(k, names) && len(k)+len(names) > 0 {
		t.Fatalf("%s: %v, want %v", when, k, names)
	}
}

func unit(worker string, s work.Status, cid string) *work.Unit {
	return &work.Unit{Worker: worker, Status: s, Commit: work.Commitment{UpdateCID: cid}}
}

// A stage whose values are not finite has no update. Verifiers execute it from the values that it has exchanged, and
// could not audit it if it kept them. A diverged unit that is no stage has nothing to show.
func TestStageThatDivergedShowsItsValues(t *testing.T) {
	w := New(me)
	stage, whole := unit(me, work.Committed, ""), unit(me, work.Committed, "")
	stage.Commit.Links = []work.Exchanged{{Frames: 1}}
	stage.Commit.HandedState.CID = "values"
	w.Step(role.Block{Height: 1, Run: state(progress.Attest, stage, whole)})
	w.Step(role.Loaded{Action: role.Load{Checkpoint: base}})
	got := w.Step(role.Block{Height: 2, Run: state(progress.Attest, stage, whole)})
	show := role.Reveal{Work: stage.ID(0), Base: base, CID: "values"}
	reveals := slices.DeleteFunc(got, func(a role.Action) bool { return fmt.Sprintf("%T", a) != "role.Reveal" })
	if !slices.Equal(reveals, []role.Action{show}) {
		t.Errorf("it reveals %+v", reveals)
	}
}

// A round as one worker lives it. Its update stays hidden until the last commitment of the round is in.
func TestRound(t *testing.T) {
	w := New(me)
	mine, theirs := unit(me, work.Assigned, ""), unit(other, work.Assigned, "")
	first := w.Step(role.Block{Height: 1, Run: state(progress.Train, mine, theirs)})
	want(t, "without the checkpoint", first, "Load")
	want(t, "while it loads", w.Step(role.Block{Height: 2, Run: state(progress.Train, mine, theirs)}))
	want(t, "loaded", w.Step(role.Loaded{Action: first[0].(role.Load)}))
	train := w.Step(role.Block{Height: 3, Run: state(progress.Train, mine, theirs)})
	want(t, "with the checkpoint", train, "Train")
	commit := w.Step(role.Trained{Action: train[0].(role.Train), Commit: work.Commitment{UpdateCID: "mine"}})
	want(t, "trained", commit, "Commit")
	want(t, "while it commits", w.Step(role.Block{Height: 4, Run: state(progress.Train, mine, theirs)}))
	want(t, "committed", w.Step(role.Finished{Action: commit[0]}))
	done := unit(me, work.Committed, "mine")
	want(t, "while the other trains", w.Step(role.Block{Height: 5, Run: state(progress.Train, done, theirs)}))
	doneToo := unit(other, work.Committed, "theirs")
	committed := state(progress.Attest, done, doneToo)
	reveal := w.Step(role.Block{Height: 6, Run: committed})
	want(t, "once all are committed", reveal, "Advance", "Reveal")
	advance := reveal[:1]
	w.Step(role.Finished{Action: reveal[1]})
	next := terms.Checkpoint{Round: 1, Root: canon.Digest{2}, CID: "next"}
	attest := w.Step(role.Advanced{Action: advance[0].(role.Advance), Next: next})
	want(t, "with the next checkpoint, at once", attest, "Attest")
	want(t, "while it attests", w.Step(role.Block{Height: 8, Run: committed}))
	if a := attest[0].(role.Attest); a.Next != next || !reflect.DeepEqual(a.Updates, []string{"mine", "theirs"}) {
		t.Fatalf("attests %+v", a)
	}
	committed.Votes = []progress.Vote{{Member: me}}
	w.Step(role.Finished{Action: attest[0]})
	want(t, "after its vote", w.Step(role.Block{Height: 9, Run: committed}))
}

func TestFailedActionIsAskedForAgain(t *testing.T) {
	w := New(me)
	block := func(height int64) role.Block {
		return role.Block{Height: height, Run: state(progress.Train, unit(me, work.Assigned, ""))}
	}
	load := w.Step(block(1))
	w.Step(role.Failed{Action: load[0], Err: errors.New("no holder")})
	want(t, "at once", w.Step(block(2)))
	want(t, "after a rest", w.Step(block(4)), "Load")
}

// After a restart a worker knows nothing: what it committed is revealed all the same.
func TestRestart(t *testing.T) {
	w := New(me)
	s := state(progress.Attest, unit(me, work.Committed, "mine"))
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	want(t, "restarted before the attestation", w.Step(role.Block{Height: 2, Run: s}), "Advance", "Reveal")
}

func TestDefendsItsWork(t *testing.T) {
	w := New(me)
	accused := unit(me, work.Disputed, "mine")
	accused.Challengers = []string{"v", "x"}
	s := state(progress.Attest, accused)
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	g := dispute.Dispute{Config: dispute.Config{Asserter: me, Challenger: "v"}, Turn: dispute.Asserter}
	next := g
	next.Config.Challenger = "x"
	want(t, "its turn", w.Step(role.Block{Height: 2, Run: s, Disputes: []dispute.Dispute{g, next}}), "Advance", "Reveal",
		"Move")
	g.Turn = dispute.Challenger
	want(t, "the other's turn, and a dispute that waits",
		w.Step(role.Block{Height: 3, Run: s, Disputes: []dispute.Dispute{g, next}}))
}

// The work of a round that is attested is defended from the checkpoint that the round started from.
func TestDefendsItsWorkOfAnEarlierRound(t *testing.T) {
	w := New(me)
	accused := unit(me, work.Disputed, "mine")
	accused.Challengers = []string{"v"}
	s := state(progress.Train, unit(other, work.Assigned, ""))
	s.Open = []work.RoundState{{Round: 0, Base: base, Attested: 1, Units: work.Units{accused}}}
	s.Round, s.Base = 1, terms.Checkpoint{Round: 1, Root: canon.Digest{2}, CID: "later"}
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	g := dispute.Dispute{Config: dispute.Config{Asserter: me, Challenger: "v"}, Turn: dispute.Asserter}
	got := w.Step(role.Block{Height: 2, Run: s, Disputes: []dispute.Dispute{g}})
	want(t, "accused two rounds later", got, "Reveal", "Move")
	if m := got[1].(role.Move); m.Base != base || m.Commit.UpdateCID != "mine" {
		t.Errorf("moves with %+v", m)
	}
}

// After a rollback the round is dealt again with attempts of other numbers: nothing of before is sent.
func TestForgetsWhatWasRolledBack(t *testing.T) {
	w := New(me)
	later := func(attempt uint32) run.State {
		s := state(progress.Train, unit(me, work.Assigned, ""))
		s.Round, s.Base, s.Units[0].Attempt = 1,
			terms.Checkpoint{Round: 1, Root: canon.Digest{byte(attempt + 2)}, CID: "later"}, attempt
		return s
	}
	load := w.Step(role.Block{Height: 1, Run: later(0)})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: later(0)})
	want(t, "dealt", train, "Train")
	w.Step(role.Block{Height: 3, Run: state(progress.Train, unit(other, work.Assigned, ""))})
	w.Step(role.Trained{Action: train[0].(role.Train)})
	load = w.Step(role.Block{Height: 4, Run: later(1)})
	want(t, "dealt again", load, "Load")
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	again := w.Step(role.Block{Height: 5, Run: later(1)})
	want(t, "loaded again", again, "Train")
	if a := again[0].(role.Train); a.Work.Attempt != 1 || a.Base.Root == train[0].(role.Train).Base.Root {
		t.Errorf("trains %+v", a)
	}
}

func TestWorkerThatIsOutDeparts(t *testing.T) {
	w := New(me)
	s := state(progress.Train, unit(other, work.Assigned, ""))
	s.Members[0].Active, s.Members[0].Why = false, reason.Verdict
	want(t, "out", w.Step(role.Block{Height: 1, Run: s}), "Depart")
	want(t, "and again", w.Step(role.Block{Height: 2, Run: s}))
}

// A worker that is out over missed deadlines still shows what it planted and defends what it committed to, in a round
// whose checkpoint it does not hold.
func TestWorkerThatIsOutAnswersForItsWork(t *testing.T) {
	roots := []canon.Digest{{1}, {2}, {3}}
	w, s, at := planting(t)
	train := w.Step(role.Block{Height: 2, Run: s})
	commit := w.Step(role.Trained{Action: train[0].(role.Train),
		Commit: work.Commitment{UpdateCID: "mine", Segments: roots}})
	w.Step(role.Finished{Action: commit[0]})
	u := s.Units[at]
	u.Status, u.Verifier, u.Commit = work.Sealed, "v", commit[0].(role.Commit).Commit
	s.Open, s.Phase = []work.RoundState{s.RoundState}, progress.Assign
	s.RoundState = work.RoundState{Round: 1, Base: terms.Checkpoint{Round: 1, Root: canon.Digest{2}, CID: "next"}}
	s.Members[0].Active, s.Members[0].Why = false, reason.MissedAttest
	got := w.Step(role.Block{Height: 3, Run: s})
	want(t, "out, with a planted fault", got, "Return", "Unmask")
}

// Training of a unit that another worker got is stopped.
func TestUselessTrainingIsStopped(t *testing.T) {
	w := New(me)
	s := state(progress.Train, unit(me, work.Assigned, ""))
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: s})
	want(t, "assigned", train, "Train")
	s = state(progress.Train, unit(other, work.Assigned, ""))
	s.Units[0].Attempt = 1
	stop := w.Step(role.Block{Height: 3, Run: s})
	want(t, "given to another", stop, "Stop")
	if stop[0].(role.Stop).Of != train[0].Key() {
		t.Errorf("stops %+v", stop[0])
	}
	w.Step(role.Failed{Action: train[0], Err: errors.New("stopped")})
	want(t, "stopped", w.Step(role.Block{Height: 4, Run: s}))
}

// A worker continues a unit that it is late with while it has no other, and commits it unless another worker has.
func TestLateTrainingGoesOn(t *testing.T) {
	mine, theirs := unit(me, work.Assigned, ""), unit(other, work.Assigned, "")
	theirs.Attempt, theirs.PreviousAssignees = 1, []work.PreviousAssignee{{Worker: me}}
	w := New(me)
	s := state(progress.Train, mine)
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: s})
	late := state(progress.Train, theirs)
	want(t, "late", w.Step(role.Block{Height: 3, Run: late}))
	busy := state(progress.Train, theirs, unit(me, work.Assigned, ""))
	busy.Units[1].Index = 1
	want(t, "late, and given another unit", w.Step(role.Block{Height: 4, Run: busy}), "Stop", "Train")
	commit := w.Step(role.Trained{Action: train[0].(role.Train), Commit: work.Commitment{UpdateCID: "mine"}})
	want(t, "computed", commit, "Commit")
	if a := commit[0].(role.Commit); a.Work.Attempt != 0 || a.Work.Unit != 0 {
		t.Errorf("commits %+v", a)
	}
	w.Step(role.Failed{Action: commit[0], Err: errors.New("refused")})
	late.Units[0].Status = work.Committed
	late.Phase = progress.Attest
	for _, a := range w.Step(role.Block{Height: 9, Run: late}) {
		if _, ok := a.(role.Commit); ok {
			t.Error("commits what another has committed")
		}
	}
}

// A worker that drains commits the unit that it is computing, and leaves the others to others.
func TestDrain(t *testing.T) {
	w := New(me)
	s := state(progress.Train, unit(me, work.Assigned, ""), unit(me, work.Assigned, ""), unit(other, work.Assigned, ""))
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: s})
	want(t, "assigned", train, "Train", "Train")
	want(t, "drains", w.Step(role.Drain{}))
	want(t, "while it computes", w.Step(role.Block{Height: 3, Run: s}))
	commit := w.Step(role.Trained{Action: train[0].(role.Train), Commit: work.Commitment{UpdateCID: "mine"}})
	want(t, "computed", commit, "Commit")
	want(t, "while it commits", w.Step(role.Block{Height: 4, Run: s}))
	w.Step(role.Finished{Action: commit[0]})
	s.Units[0].Status, s.Units[0].Commit = work.Committed, work.Commitment{UpdateCID: "mine"}
	want(t, "committed", w.Step(role.Block{Height: 5, Run: s}), "Leave")
	s.Members[0].Active, s.Members[0].Why = false, reason.Left
	w.Step(role.Finished{Action: role.Leave{}})
	want(t, "out, and its work may be questioned", w.Step(role.Block{Height: 6, Run: s}))
	s.Units = s.Units[1:]
	s.Units[0].Worker = other
	want(t, "nothing of it is open", w.Step(role.Block{Height: 7, Run: s}), "Depart")
}

// planting returns a worker that holds the checkpoint, and the first unit in which it plants a fault.
func planting(t *testing.T) (w *Worker, s run.State, index uint32) {
	t.Helper()
	w = NewWithPlantedFaults(me, canon.Digest{7})
	s = state(progress.Train)
	s.Terms.AuditPPM = 1
	w.run = s
	for !audit.Plants(w.nonce(work.UnitID{Unit: index})) {
		index++
	}
	for range index + 1 {
		s.Units = append(s.Units, unit(other, work.Committed, "theirs"))
	}
	for i := range s.Units {
		s.Units[i].Index = uint32(i)
	}
	s.Units[index].Worker, s.Units[index].Status = me, work.Assigned
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	return w, s, index
}

// A planted fault is committed, shown when the verifier has answered, and never defended. After a restart the unit is
// computed again to find out.
func TestPlantedFaultIsShown(t *testing.T) {
	roots := []canon.Digest{{1}, {2}, {3}}
	w, s, at := planting(t)
	train := w.Step(role.Block{Height: 2, Run: s})
	want(t, "assigned", train, "Train")
	commit := w.Step(role.Trained{Action: train[0].(role.Train),
		Commit: work.Commitment{UpdateCID: "mine", Segments: roots}})
	want(t, "trained", commit, "Commit")
	made := commit[0].(role.Commit).Commit
	nonce := w.nonce(work.UnitID{Unit: at})
	if made.HiddenRoots != audit.Hide(nonce, roots) || !reflect.DeepEqual(made.Segments, audit.Plant(nonce, roots)) ||
		made.UpdateCID != "mine" {
		t.Fatalf("commits to %+v", made)
	}
	w.Step(role.Finished{Action: commit[0]})
	s.Phase, s.Votes = progress.Attest, []progress.Vote{{Member: me}}
	u := s.Units[at]
	u.Status, u.Commit, u.Verifier = work.Auditing, made, "v"
	reveal := w.Step(role.Block{Height: 3, Run: s})
	want(t, "under audit", reveal, "Reveal")
	w.Step(role.Finished{Action: reveal[0]})
	u.Status, u.Challengers = work.Disputed, []string{"v"}
	game := dispute.Dispute{Config: dispute.Config{Asserter: me, Challenger: "v", Unit: at}, Turn: dispute.Asserter}
	unmask := w.Step(role.Block{Height: 4, Run: s, Disputes: []dispute.Dispute{game}})
	want(t, "challenged", unmask, "Unmask")
	if a := unmask[0].(role.Unmask); a.Nonce != nonce || !reflect.DeepEqual(a.Segments, roots) {
		t.Fatalf("shows %+v", a)
	}
	fresh, _, _ := planting(t)
	again := fresh.Step(role.Block{Height: 4, Run: s, Disputes: []dispute.Dispute{game}})
	want(t, "after a restart", again, "Train")
	want(t, "computed again", fresh.Step(role.Trained{Action: again[0].(role.Train),
		Commit: work.Commitment{UpdateCID: "mine", Segments: roots}}), "Unmask")
}

// Nothing is planted beyond what may be shown, in a job without audits, or without a secret. It looks no different.
func TestNothingIsPlantedThatMayNotBe(t *testing.T) {
	roots := []canon.Digest{{1}, {2}, {3}}
	for name, spoil := range map[string]func(w *Worker, s *run.State){
		"enough are shown": func(_ *Worker, s *run.State) { s.Members[0].Planted = 2 },
		"no audits":        func(_ *Worker, s *run.State) { s.Terms.AuditPPM = 0 },
		"no secret":        func(w *Worker, _ *run.State) { w.secret = canon.Digest{} },
	} {
		w, s, at := planting(t)
		spoil(w, &s)
		w.run = s
		c := w.withHiddenRoots(work.UnitID{Unit: at}, work.Commitment{Segments: roots})
		if c.HiddenRoots.IsZero() || !reflect.DeepEqual(c.Segments, roots) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A worker that was restarted executes its committed unit again when it has nothing to train. It confesses a
// commitment that differs, and keeps one that does not; once the round is closed it is too late.
func TestWrongCommitmentIsConfessed(t *testing.T) {
	for name, result := range map[string]string{"right": "mine", "wrong": "another"} {
		w := New(me)
		mine, theirs := unit(me, work.Committed, "mine"), unit(other, work.Assigned, "")
		first := w.Step(role.Block{Height: 1, Run: state(progress.Train, mine, theirs)})
		w.Step(role.Loaded{Action: first[0].(role.Load)})
		train := w.Step(role.Block{Height: 2, Run: state(progress.Train, mine, theirs)})
		want(t, "committed before the restart", train, "Train")
		said := w.Step(role.Trained{Action: train[0].(role.Train), Commit: work.Commitment{UpdateCID: result}})
		if name == "right" {
			want(t, name, said)
			continue
		}
		want(t, name, said, "Confess")
		want(t, "while it is said", w.Step(role.Block{Height: 3, Run: state(progress.Train, mine, theirs)}))
		late := state(progress.Train, mine, theirs)
		late.Closed = 3
		w.Step(role.Failed{Action: said[0], Err: errors.New("late")})
		if k := kinds(w.Step(role.Block{Height: 4, Run: late})); len(k) > 0 && k[0] == "Confess" {
			t.Error("it confesses in a round that is closed")
		}
	}
	w := New(me)
	first := w.Step(role.Block{Height: 1,
		Run: state(progress.Train, unit(me, work.Committed, "mine"), unit(me, work.Assigned, ""))})
	w.Step(role.Loaded{Action: first[0].(role.Load)})
	train := w.Step(role.Block{Height: 2,
		Run: state(progress.Train, unit(me, work.Committed, "mine"), unit(me, work.Assigned, ""))})
	if want(t, "with a unit to train", train, "Train"); train[0].(role.Train).Work.Unit != 1 {
		t.Error("it looks back before it has done its units")
	}
}

// A worker with a false carried state challenges the unit that committed to it, and trains when that is corrected.
func TestMisledWorkerChallenges(t *testing.T) {
	w := New(me)
	before := work.RoundState{Base: base, Units: []*work.Unit{unit(other, work.Accepted, "theirs")}}
	s := state(progress.Train, unit(me, work.Assigned, ""))
	s.Round, s.Base, s.Open = 1, terms.Checkpoint{Round: 1, Root: canon.Digest{2}, CID: "next"}, []work.RoundState{before}
	load := w.Step(role.Block{Height: 1, Run: s})
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: s})
	want(t, "with the checkpoint", train[:1], "Train")
	check := w.Step(role.Misled{Action: train[0].(role.Train), Round: 0})
	want(t, "misled", check, "Check")
	challenge := w.Step(role.Checked{Action: check[0].(role.Check), Differ: 3})
	want(t, "when it knows where", challenge, "Challenge")
	if c := challenge[0].(role.Challenge); c.Segment != 3 || c.Work != before.Units[0].ID(0) {
		t.Errorf("challenges %+v", c)
	}
	disputed := unit(other, work.Disputed, "theirs")
	disputed.Challengers = []string{me}
	s.Open = []work.RoundState{{Base: base, Units: []*work.Unit{disputed}}}
	w.Step(role.Finished{Action: challenge[0]})
	g := dispute.Dispute{Config: dispute.Config{Asserter: other, Challenger: me}, Turn: dispute.Asserter}
	want(t, "while it is judged", w.Step(role.Block{Height: 3, Run: s, Disputes: []dispute.Dispute{g}}))
	g.Turn = dispute.Challenger
	move := w.Step(role.Block{Height: 4, Run: s, Disputes: []dispute.Dispute{g}})
	want(t, "its turn in the dispute", move, "Move")
	if move[0].(role.Move).Game.Config.Challenger != me {
		t.Errorf("moves with %+v", move[0])
	}
	want(t, "put right", w.Step(role.Checked{Action: check[0].(role.Check), Right: true}), "Train")
}

// paused is a worker that trains a unit and is paused.
func paused(t *testing.T, units ...*work.Unit) (w *Worker, train role.Action) {
	t.Helper()
	w = New(me)
	first := w.Step(role.Block{Height: 1, Run: state(progress.Train, units...)})
	w.Step(role.Loaded{Action: first[0].(role.Load)})
	trains := w.Step(role.Block{Height: 2, Run: state(progress.Train, units...)})
	want(t, "before the pause", trains, "Train")
	stop := w.Step(role.Pause{})
	want(t, "paused", stop, "Stop")
	if s := stop[0].(role.Stop); !s.Keep || s.Of != trains[0].Key() {
		t.Errorf("it stops %+v", s)
	}
	w.Step(role.Failed{Action: trains[0], Err: errors.New("stopped")})
	return w, trains[0]
}

// A paused worker sets its unit aside and asks for it again as soon as it is resumed, with the checkpoint, whose memory
// was given back.
func TestPause(t *testing.T) {
	mine, theirs := unit(me, work.Assigned, ""), unit(other, work.Assigned, "")
	mine.Deadline = 1000
	w, train := paused(t, mine, theirs)
	now := state(progress.Train, mine, theirs)
	want(t, "during the pause", w.Step(role.Block{Height: 3, Run: now}))
	w.Step(role.Resume{})
	load := w.Step(role.Block{Height: 3, Run: now})
	want(t, "resumed", load, "Load")
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	again := w.Step(role.Block{Height: 4, Run: now})
	want(t, "with the checkpoint", again, "Train")
	if again[0].Key() != train.Key() {
		t.Errorf("it trains %s", again[0].Key())
	}
}

// A resume overtakes the end of the action that the pause stopped: nothing is asked for twice, and the unit is asked
// for again when it has ended.
func TestResumeBeforeTheStop(t *testing.T) {
	w := New(me)
	now := state(progress.Train, unit(me, work.Assigned, ""), unit(other, work.Assigned, ""))
	now.Units[0].Deadline = 1000
	first := w.Step(role.Block{Height: 1, Run: now})
	w.Step(role.Loaded{Action: first[0].(role.Load)})
	train := w.Step(role.Block{Height: 2, Run: now})
	w.Step(role.Pause{})
	w.Step(role.Resume{})
	load := w.Step(role.Block{Height: 3, Run: now})
	want(t, "resumed", load, "Load")
	w.Step(role.Loaded{Action: load[0].(role.Load)})
	want(t, "while the unit is being stopped", w.Step(role.Block{Height: 4, Run: now}))
	w.Step(role.Failed{Action: train[0], Err: errors.New("stopped")})
	want(t, "stopped", w.Step(role.Block{Height: 7, Run: now}), "Train")
}

// A paused worker answers for what it did, also when the run has a checkpoint that it does not hold: it commits and
// reveals what is computed, moves in disputes, and computes again what shows that a fault was planted. It computes
// nothing else.
func TestPausedWorkersAnswer(t *testing.T) {
	mine, theirs := unit(me, work.Assigned, ""), unit(other, work.Assigned, "")
	mine.Deadline = 1000
	w, train := paused(t, mine, theirs)
	commit := w.Step(role.Trained{Action: train.(role.Train), Commit: work.Commitment{UpdateCID: "mine"}})
	want(t, "computed when it was paused", commit, "Commit")
	w.Step(role.Finished{Action: commit[0]})
	done := unit(me, work.Committed, "mine")
	attest := state(progress.Attest, done, unit(other, work.Committed, "theirs"))
	attest.Terms.Deadlines.Attest = 1000
	reveal := w.Step(role.Block{Height: 5, Run: attest})
	want(t, "committed", reveal, "Reveal")
	w.Step(role.Finished{Action: reveal[0]})

	disputed := unit(me, work.Disputed, "mine")
	disputed.Challengers = []string{"v"}
	next := state(progress.Train, unit(other, work.Assigned, ""), unit(other, work.Assigned, ""))
	next.Round, next.Base = 1, terms.Checkpoint{Round: 1, Root: canon.Digest{2}, CID: "next"}
	next.Open = []work.RoundState{{Base: base, Units: work.Units{disputed, unit(other, work.Accepted, "theirs")}}}
	game := dispute.Dispute{Config: dispute.Config{Asserter: me, Challenger: "v"}, Turn: dispute.Asserter}
	want(t, "disputed", w.Step(role.Block{Height: 6, Run: next, Disputes: []dispute.Dispute{game}}), "Move")

	lost := New(me)
	lost.Step(role.Pause{})
	want(t, "paused since its start, and asked for its update", lost.Step(role.Block{Height: 5, Run: attest}))
	planted := NewWithPlantedFaults(me, canon.Digest{9})
	at := work.UnitID{}
	for !audit.Plants(planted.nonce(at)) {
		at.Attempt++
	}
	planted.Step(role.Pause{})
	sealed := unit(me, work.Sealed, "mine")
	sealed.Attempt, sealed.Commit.HiddenRoots = at.Attempt, canon.Digest{1}
	next.Open[0].Units[0] = sealed
	want(t, "with a planted fault to show", planted.Step(role.Block{Height: 6, Run: next}), "Train")
}
