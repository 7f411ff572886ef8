package referee

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

var rewarded = rollout.Reward{Exact: 1, Prefix: 1}

// drawnBy is what a unit draws from a checkpoint, and passes on.
func drawnBy(t *testing.T, task *train.Task, base *train.Checkpoint, unit uint32) []*tensor.Tensor {
	t.Helper()
	r, err := task.Run(base, unit, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.End[len(r.End)-3:]
}

// A unit that learns from answers which another unit drew with the same parameters ends with the bits of one that draws
// them by itself: so the log-probabilities that it computes are those with which the answers were drawn.
func TestApartIsTheSameAsTogether(t *testing.T) {
	together, base := rolloutJob(t, model.Rollout{Reward: rewarded})
	one := respecified(together, func(s *train.Spec) { s.Steps, s.Segment = 1, 1 })
	apart, _ := rolloutJob(t, model.Rollout{Reward: rewarded, Apart: 1})
	apart = respecified(apart, func(s *train.Spec) { s.Rollout = &train.Rollout{} })
	want, err := one.Run(base, unit, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	drawn := drawnBy(t, apart, base, apart.Spec.Apart().Drawn(unit, 0))
	got, err := apart.Run(base, unit, drawn, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots, others := train.Roots(want.Delta), train.Roots(got.Delta)
	if !slices.Equal(roots, others) || want.Losses[0] != got.Losses[0] || want.Norms[0] != got.Norms[0] {
		t.Errorf("a loss of %v with the norm %v, wanted %v and %v", got.Losses, got.Norms, want.Losses, want.Norms)
	}
}

// apartTarget is a unit of a job whose answers are drawn apart, as a dispute is about it.
func apartTarget(base *train.Checkpoint, index uint32, from canon.Digest, c work.Commitment) work.AuditTarget {
	d := work.AuditTarget{
		RoundState: work.RoundState{Round: base.Round, Base: terms.Checkpoint{Round: base.Round, Root: base.Root()}},
		Unit:       work.Unit{Index: index, Status: work.Auditing, Worker: worker, Verifier: verifier, Commit: c},
	}
	if !from.IsZero() {
		d.From = make([]work.HandedState, index+1)
		d.From[index].Root = from
	}
	return d
}

// A unit that draws is disputed as every other one: who draws with another seed, of other prompts, by another policy,
// edits a token or a reward, ends early, or passes on another tensor than it drew, loses. An honest one wins.
func TestForgedRollouts(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rewarded, Apart: 2})
	index := task.Spec.Apart().Drawn(1, 1)
	by := func(task *train.Task, base *train.Checkpoint) *witness.Witness {
		return witness.New(task, base, index, nil, shardTokens)
	}
	drawing := task.Of(index)
	c := newCourt(t, "rollout", task, func(lie work.Commitment) work.AuditTarget {
		return apartTarget(base, index, canon.Digest{}, lie)
	})
	honest := by(task, base)
	right := roots(t, drawing, honest, honest)
	right.Update = canon.Digest{}
	if on := drawnBy(t, task, base, index); train.CarriedRoot(train.Roots(on)) != right.HandedState.Root {
		t.Fatal("a witness and a worker pass on other answers")
	}
	stale := *base
	stale.Params = slices.Clone(base.Params)
	stale.Params[0] = base.Params[0].Clone()
	stale.Params[0].F32()[0] += 0.5
	other := func(k program.Kind, nth int, to program.Kind) *witness.Witness {
		return by(tamperedAt(t, task, k, nth, func(op *program.Operator) { op.Kind = to }), base)
	}
	for name, liar := range map[string]*witness.Witness{
		"another policy": by(task, &stale),
		"another seed":   by(respecified(task, func(s *train.Spec) { s.Seed++ }), base),
		"another prompt": witness.New(task, base, index-1, nil, shardTokens),
		"other noise":    other(program.Log, 0, program.Abs),
	} {
		lie := roots(t, drawing, liar, liar)
		lie.Update = canon.Digest{}
		at := differ(right, lie)
		if at == uint32(len(right.Segments)) {
			t.Fatalf("%s: no state differs", name)
		}
		if g := c.play(lie, at, liar, by(task, base)); !g.Verdict.AsserterLies {
			t.Errorf("%s: %+v", name, *g.Verdict)
		}
		if g := c.play(right, at, honest, liar); g.Verdict.AsserterLies {
			t.Errorf("%s: an honest worker lost: %+v", name, *g.Verdict)
		}
	}
	last := uint32(len(right.Segments))
	for i := range 3 { // what it passes on is not what it drew
		liar := twister{honest, dispute.Carry, i}
		lie := roots(t, drawing, honest, liar)
		lie.Update = canon.Digest{}
		c.caught("an edited token", dispute.Carry, c.play(lie, last+1, liar, by(task, base)))
		c.acquitted("what it drew", c.play(right, last+1, honest, twister{by(task, base), dispute.Carry, i}))
	}
	config, err := c.referee.Config("job", c.duty(right), verifier, 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dispute.Open(config, last, 1); err == nil {
		t.Error("the update of a unit without one can be disputed")
	}
}

// givenTo are the answers that the unit learns from, with the roots that the chain gives it.
func givenTo(t *testing.T, task *train.Task, base *train.Checkpoint) (from []*tensor.Tensor, drawn []canon.Digest) {
	t.Helper()
	for k := range task.Spec.Steps {
		on := drawnBy(t, task, base, task.Spec.Apart().Drawn(unit, k))
		from, drawn = append(from, on...), append(drawn, train.CarriedRoot(train.Roots(on)))
	}
	return from, drawn
}

// A unit that lets the tokens of older answers count otherwise than the job says loses over a tile. Every operator that
// learns is decided.
func TestOtherCorrections(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rewarded, Apart: 2, Correction: rollout.Tapered})
	from, drawn := givenTo(t, task, base)
	nth, ops := -1, task.Step.Ops // of the exponentials that is of a logarithm of at most 0
	for _, op := range ops {
		if op.Kind != program.Exp {
			continue
		}
		nth++
		if of := ops[op.In[0]]; of.Kind == program.Min && slices.ContainsFunc(of.In, func(i int32) bool {
			return ops[i].Kind == program.Constant && !slices.ContainsFunc(ops[i].Data, func(x byte) bool { return x != 0 })
		}) {
			break
		}
	}
	by := func(task *train.Task) *witness.Witness { return witness.New(task, base, unit, from, shardTokens) }
	honest, liar := by(task), by(tamperedAt(t, task, program.Exp, nth, func(op *program.Operator) {
		op.Kind = program.Abs
	}))
	right, lie := roots(t, task.Of(unit), honest, honest), roots(t, task.Of(unit), liar, liar)
	c := newCourt(t, "corrections", task, func(lie work.Commitment) work.AuditTarget {
		return apartTarget(base, unit, parts.GivenRoot(drawn), lie)
	})
	at := differ(right, lie)
	c.caught("another ratio", dispute.Tile, c.play(lie, at, liar, by(task)))
	c.acquitted("the ratio", c.play(right, at, honest, liar))
	checkLearning(t, task, base, unit, from, parts.GivenRoot(drawn))
}

// A unit that learns from other answers than those that the chain gave it loses.
func TestOtherAnswersThanGiven(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rewarded, Apart: 2})
	from, drawn := givenTo(t, task, base)
	by := func(from []*tensor.Tensor) *witness.Witness { return witness.New(task, base, unit, from, shardTokens) }
	honest := by(from)
	right := roots(t, task.Of(unit), honest, honest)
	r, err := task.Run(base, unit, from, nil)
	if err != nil || !slices.Equal(r.Segments, right.Segments) {
		t.Fatalf("a witness and a worker reach other states: %v", err)
	}
	c := newCourt(t, "answers", task, func(lie work.Commitment) work.AuditTarget {
		return apartTarget(base, unit, parts.GivenRoot(drawn), lie)
	})
	for i := range from {
		other := slices.Clone(from)
		other[i] = from[i].Clone()
		other[i].Bytes()[0] ^= 1
		liar := by(other)
		c.caught("other answers", dispute.Start, c.play(roots(t, task.Of(unit), liar, liar), 0, liar, by(from)))
		c.acquitted("its answers", c.play(right, 0, honest, by(other)))
		hidden := starter{by(other), right.Segments[0]}
		lie := roots(t, task.Of(unit), hidden.Witness, hidden)
		lie.Segments[0] = right.Segments[0]
		if lie.Segments[1] == right.Segments[1] {
			continue // the step does not depend on the changed bit, but for the states after it
		}
		c.caught("other answers than it says", dispute.Tile, c.play(lie, 1, hidden, by(from)))
	}
	liar := twister{honest, dispute.Update, 0}
	c.caught("its update", dispute.Update, c.play(roots(t, task.Of(unit), honest, liar), uint32(len(right.Segments)), liar,
		by(from)))
}

// Every operator of both parts is decided over a part of it.
func TestPartsOfRollouts(t *testing.T) {
	task, base := rolloutJob(t, model.Rollout{Reward: rewarded, Apart: 1})
	if err := Check(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)); err != nil {
		t.Fatal(err)
	}
	index := task.Spec.Apart().Drawn(unit, 0)
	w := witness.New(task, base, index, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for i, op := range task.Of(index).Step.Ops {
		c, prove := operatorClaim(t, w, base, 0, i, 0)
		c.Unit = index
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
