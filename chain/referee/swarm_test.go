package referee

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/work"
)

// Swarms of four models, which answer, or play games of three stages, each by itself or about answers of the others.
var (
	answering = model.Rollout{Reward: rewarded, Apart: 2, Others: 3, Shared: 2}
	playing   = model.Rollout{Reward: rewarded, Apart: 1, Others: 3, Shared: 2, Stages: 3, Reads: 2}
	replying  = model.Rollout{Reward: rewarded, Apart: 1, Others: 3, Shared: 2, Stages: 3, Reads: 2, Across: true}
)

// swarm makes a job of four models that learn from answers of each other, and all answers that a unit learns from.
func swarm(t *testing.T, r model.Rollout, unit uint32) (task *train.Task, base *train.Checkpoint, from []*tensor.Tensor,
	given canon.Digest) {
	task, base = rolloutJob(t, r)
	if err := Check(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)); err != nil {
		t.Fatal(err)
	}
	var drawn []canon.Digest
	for _, k := range task.Spec.Apart().ReadsAll(unit) {
		r, err := task.Run(base, k, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		on := r.End[len(r.End)-len(parts.HandedOn(task.Step)):]
		from, drawn = append(from, on...), append(drawn, train.CarriedRoot(train.Roots(on)))
	}
	return task, base, from, parts.GivenRoot(drawn)
}

// Each operator of a step that learns from answers of others is decided over a part of it, once for equal ones.
func TestPartsOfSwarms(t *testing.T) {
	checkPartsOfSwarm(t, answering, 2)
	if *long {
		checkPartsOfSwarm(t, answering, 0)
		checkPartsOfSwarm(t, playing, 2)
		checkPartsOfSwarm(t, replying, 2)
	}
}

func checkPartsOfSwarm(t *testing.T, drawn model.Rollout, unit uint32) {
	t.Helper()
	task, base, from, given := swarm(t, drawn, unit)
	checkLearning(t, task, base, unit, from, given)
}

// checkLearning decides every operator of a unit that learns from given answers.
func checkLearning(t *testing.T, task *train.Task, base *train.Checkpoint, unit uint32, from []*tensor.Tensor,
	given canon.Digest) {
	t.Helper()
	w := witness.New(task, base, unit, from, shardTokens)
	r := newReferee(task.Spec, task.Step)
	step := task.Of(unit).Step
	for _, i := range distinct(step) {
		op := &step.Ops[i]
		c, prove := operatorClaim(t, w, base, 0, i, 0)
		c.Unit, c.From = unit, given
		payload, err := w.Leaf(c, prove)
		if err != nil {
			t.Fatal(i, op.Kind, err)
		}
		if ruling, err := r.Judge(c, payload); err != nil || !ruling.Right {
			t.Errorf("operator %d (%s): an honest output was refused: %v, %v", i, op.Kind, ruling, err)
		}
		c.Output[0] ^= 1
		if ruling, err := r.Judge(c, payload); err != nil || ruling.Right {
			t.Errorf("operator %d (%s): a false output was accepted: %v, %v", i, op.Kind, ruling, err)
		}
	}
}

// Each operator of a step that plays games is decided over a part of it, and a worker that draws other texts of a later
// stage, or whose players read other texts, is convicted over a tile.
func TestOtherGames(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rewarded, Stages: 3, Reads: 2})
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for n, i := range distinct(task.Step) {
		if *long || n%8 == 0 {
			checkPart(t, w, r, base, i, 0)
		}
	}
	honest := vouch(t, task, base, unit, nil)
	for name, of := range map[string]struct {
		kind program.Kind
		nth  int
		to   program.Kind
	}{"the first token of a critique": {program.ReduceMin, 4, program.ReduceMax},
		"the last token of a final answer": {program.ReduceMin, 9, program.ReduceMax},
		"texts read before a final answer": {program.GreaterEqual, 8, program.LessEqual}} {
		if !*long && name != "the last token of a final answer" {
			continue
		}
		wrong := tamperedAt(t, task, of.kind, of.nth, func(op *program.Operator) { op.Kind = of.to })
		convict(t, name, task, wrong, base, honest)
	}
}

// A unit of a swarm that learns from other answers than were shared, or from groups that it chose, or that begins with
// the model of another unit, is convicted over a tile or its start.
func TestOtherAnswersThanShared(t *testing.T) {
	checkOtherAnswers(t, answering)
	if *long {
		checkOtherAnswers(t, playing)
		checkOtherAnswers(t, replying)
	}
}

// A unit that draws other critiques or final answers about answers of others than its model does is convicted over a
// tile.
func TestOtherReplies(t *testing.T) {
	const unit = 2
	task, base, from, given := swarm(t, replying, unit)
	if n := len(parts.HandedOn(task.Step)); n != 4 { // answers, rewards, scores and examples of the first stage alone
		t.Fatalf("a unit passes on %d tensors", n)
	}
	honest := witness.New(task, base, unit, from, shardTokens)
	right := roots(t, task.Of(unit), honest, honest)
	c := newCourt(t, "replies", task, func(lie work.Commitment) work.AuditTarget {
		return apartTarget(base, unit, given, lie)
	})
	var tokens []int // draws of a token for each player, among all operators of the kind
	n := 0
	for _, op := range task.Of(unit).Step.Ops {
		if op.Kind != program.ReduceMin {
			continue
		}
		if slices.Equal(op.Out.Dims, []int{replying.Shared * 4}) {
			tokens = append(tokens, n)
		}
		n++
	}
	if len(tokens) != 2*3 {
		t.Fatalf("a unit that learns draws %d tokens of each text", len(tokens))
	}
	for name, nth := range map[string]int{"the first token of critiques": tokens[0],
		"the last token of critiques": tokens[2], "the first token of final answers": tokens[3]} {
		if !*long && nth != tokens[0] {
			continue
		}
		wrong := tamperedAt(t, task, program.ReduceMin, nth, func(op *program.Operator) { op.Kind = program.ReduceMax })
		liar := witness.New(wrong, base, unit, from, shardTokens)
		lie := roots(t, task.Of(unit), liar, liar)
		at := differ(right, lie)
		if at == uint32(len(right.Segments)) {
			t.Fatalf("%s: no state differs", name)
		}
		c.caught(name, dispute.Tile, c.play(lie, at, liar, honest))
		c.acquitted(name, c.play(right, at, honest, liar))
	}
}

func checkOtherAnswers(t *testing.T, drawn model.Rollout) {
	t.Helper()
	const unit = 2
	task, base, from, given := swarm(t, drawn, unit)
	by := func(task *train.Task, base *train.Checkpoint, from []*tensor.Tensor) *witness.Witness {
		return witness.New(task, base, unit, from, shardTokens)
	}
	honest := by(task, base, from)
	right := roots(t, task.Of(unit), honest, honest)
	r, err := task.Run(base, unit, from, nil)
	if err != nil || !slices.Equal(r.Segments, right.Segments) {
		t.Fatalf("a witness and a worker reach other states: %v", err)
	}
	c := newCourt(t, "answers", task, func(lie work.Commitment) work.AuditTarget {
		return apartTarget(base, unit, given, lie)
	})
	each := len(parts.HandedOn(task.Step))
	swapped := slices.Clone(from) // the answers of two others
	copy(swapped[each:2*each], from[2*each:3*each])
	copy(swapped[2*each:3*each], from[each:2*each])
	edited := slices.Clone(from)
	edited[each] = from[each].Clone()
	for i := range edited[each].I32() {
		edited[each].I32()[i] ^= 1
	}
	for name, other := range map[string][]*tensor.Tensor{"swapped": swapped, "edited": edited} {
		liar := by(task, base, other)
		c.caught(name, dispute.Start, c.play(roots(t, task.Of(unit), liar, liar), 0, liar, by(task, base, from)))
		c.acquitted(name, c.play(right, 0, honest, by(task, base, other)))
		hidden := starter{by(task, base, other), right.Segments[0]}
		lie := roots(t, task.Of(unit), hidden.Witness, hidden)
		lie.Segments[0] = right.Segments[0]
		c.caught(name+", in secret", dispute.Tile, c.play(lie, 1, hidden, by(task, base, from)))
	}
	choice := tamperedAt(t, task, program.ReduceMin, 0, func(op *program.Operator) { op.Kind = program.ReduceMax })
	liar := by(choice, base, from)
	lie := roots(t, task.Of(unit), liar, liar)
	if at := differ(right, lie); at == uint32(len(right.Segments)) {
		t.Error("another operator leads to the same state")
	} else if g := c.play(lie, at, liar, by(task, base, from)); !g.Verdict.AsserterLies {
		t.Errorf("another choice: %+v", *g.Verdict)
	}
	foreign := *base
	foreign.Outer = slices.Clone(base.Outer)
	foreign.Outer[unit-1] = base.Params
	stranger := by(task, &foreign, from)
	c.caught("the model of another", dispute.Start, c.play(roots(t, task.Of(unit), stranger, stranger), 0, stranger,
		by(task, base, from)))
	update := twister{honest, dispute.Update, 0}
	c.caught("its update", dispute.Update, c.play(roots(t, task.Of(unit), honest, update), uint32(len(right.Segments)),
		update, by(task, base, from)))
	c.acquitted("its update", c.play(right, uint32(len(right.Segments)), honest,
		twister{by(task, base, from), dispute.Update, 0}))
}
