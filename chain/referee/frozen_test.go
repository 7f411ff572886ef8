package referee

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
)

// adapterJob makes a task that trains an adapter of a frozen model, and its first checkpoint.
func adapterJob(t *testing.T, dropout float64, bits int) (*train.Task, *train.Checkpoint) {
	plain, _ := job(t, tiny)
	cfg, err := architecture.Parse(architecture.GPT2, map[string]any{
		"n_layer": tiny.layers, "n_embd": tiny.width, "n_head": tiny.heads, "n_positions": tiny.length, "vocab_size": 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	adapted, err := cfg.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear},
		Dropout: dropout,
		Bits:    bits})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(adapted, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}, tiny.batch,
		tiny.length)
	if err != nil {
		t.Fatal(err)
	}
	weights := cfg.Init(3)
	task := &train.Task{Spec: plain.Spec, Step: step, Corpus: plain.Corpus}
	var shapes []tensor.Shape
	for _, n := range train.Frozen(step) {
		shapes = append(shapes, step.InputShapes()[train.Param+n])
	}
	if task.Frozen, err = blocks.Compress(train.Frozen(step), shapes, weights); err != nil {
		t.Fatal(err)
	}
	spec := *plain.Spec
	spec.Program, spec.Frozen = step.Digest(), train.FrozenRoot(train.Roots(task.Frozen))
	task.Spec = &spec
	base, err := outer.Genesis(spec.Exchange, train.Params(step), adapted.InitAdapters(4))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, task), base
}

// A worker that trains an adapter of another model than the job's is convicted over the input that it changed.
func TestOtherFrozenTensor(t *testing.T) {
	task, base := adapterJob(t, 0, 0)
	honest := vouch(t, task, base, unit, nil)
	for _, i := range []int{0, len(task.Frozen) - 1} {
		other := *task
		other.Frozen = append([]*tensor.Tensor{}, task.Frozen...)
		other.Frozen[i] = task.Frozen[i].Clone()
		other.Frozen[i].F32()[0] += 1
		liar := vouch(t, compile(t, &other), base, unit, nil)
		g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
		said := g.Text(g.Log[len(g.Log)-1], question.Names(task.Spec, task.Step))
		if !g.Verdict.AsserterLies || !strings.Contains(said, train.Param+train.Frozen(task.Step)[i]) {
			t.Errorf("frozen tensor %d: verdict %+v: %s", i, g.Verdict, said)
		}
		g = play(t, task, base, honest.commit, differ(honest.commit, liar.commit), honest, liar)
		if g.Verdict.AsserterLies {
			t.Errorf("frozen tensor %d: an honest worker lost to a verifier with another model: %+v", i, g.Verdict)
		}
	}
}

// A trace takes the roots of frozen tensors that the task has, and does not hash the tensors again.
func TestTraceTakesRootsOfFrozenTensors(t *testing.T) {
	task, base := adapterJob(t, 0, 8)
	plain, err := witness.New(task, base, unit, nil, shardTokens).Trace(1)
	if err != nil {
		t.Fatal(err)
	}
	given := *task
	given.FrozenRoots = train.Roots(task.Frozen)
	marked := canon.Sum("a root that no tensor has")
	given.FrozenRoots[0] = marked
	trace, err := witness.New(&given, base, unit, nil, shardTokens).Trace(1)
	if err != nil {
		t.Fatal(err)
	}
	differ := 0
	for i, op := range task.Step.Ops {
		a, _ := plain.Node(0, i)
		b, _ := trace.Node(0, i)
		if a != b {
			differ++
			if b != marked || op.Name != train.Param+train.Frozen(task.Step)[0] {
				t.Errorf("operator %d, %s %q, has another root", i, op.Kind, op.Name)
			}
		}
	}
	if differ != 1 {
		t.Errorf("%d roots differ, want one", differ)
	}
}

// The roots shown of frozen tensors must be those of the specification.
func TestForgedFrozenRoots(t *testing.T) {
	task, _ := adapterJob(t, 0, 0)
	r := newReferee(task.Spec, task.Step)
	name := train.Param + train.Frozen(task.Step)[0]
	op := -1
	for i := range task.Step.Ops {
		if task.Step.Ops[i].Name == name {
			op = i
		}
	}
	roots := train.Roots(task.Frozen)
	c := dispute.Claim{Kind: dispute.Tile, Index: uint32(op), Output: roots[0]}
	if ruling, err := r.Judge(c, canon.MustMarshal(evidence.Frozen{Frozen: roots})); err != nil || !ruling.Right {
		t.Errorf("the right roots: %+v, %v", ruling, err)
	}
	roots[1] = canon.Sum("other")
	for _, forged := range [][]canon.Digest{roots, roots[:1], nil} {
		if ruling, err := r.Judge(c, canon.MustMarshal(evidence.Frozen{Frozen: forged})); err == nil {
			t.Errorf("%d forged roots: %+v", len(forged), ruling)
		}
	}
}

// The elements that a step drops follow from the seed and the place of the step: a worker that drops others is
// convicted.
func TestOtherDropout(t *testing.T) {
	task, base := adapterJob(t, 0.25, 0)
	if err := train.CheckProgram(task.Spec, task.Step); err != nil {
		t.Fatal(err)
	}
	w := witness.New(task, base, unit, nil, shardTokens)
	r := newReferee(task.Spec, task.Step)
	for _, i := range distinct(task.Step) {
		checkPart(t, w, r, base, i, 0)
	}
	honest := vouch(t, task, base, unit, nil)
	liar := vouch(t, tampered(t, task, program.Less, func(op *program.Operator) { op.Kind = program.Greater }), base, unit,
		nil)
	g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
	if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
		t.Errorf("verdict %+v", *v)
	}
	dice := func(round, unit, step uint32) canon.Digest { return task.Spec.Dice(round, unit, step).Root() }
	if one := dice(1, 0, 2); one == dice(1, 1, 2) || one == dice(1, 0, 3) || one == dice(2, 0, 2) {
		t.Error("steps share their dice")
	}
}

// Weights in blocks of few bits are disputed like others: each part of each operator on them, and what they are.
func TestWeightsInBlocks(t *testing.T) {
	for bits, kind := range map[int]program.Kind{8: program.Dequantize, 4: program.TakeRows} {
		task, base := adapterJob(t, 0, bits)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for i := range task.Step.Ops {
			n := w.Parts(dispute.Claim{Kind: dispute.Tile, Index: uint32(i)})
			for _, part := range slices.Compact([]uint64{0, n - 1}) {
				checkPart(t, w, r, base, i, part)
			}
		}
		honest := vouch(t, task, base, unit, nil)
		caught := func(what string, liar *party) {
			g := play(t, task, base, liar.commit, differ(honest.commit, liar.commit), liar, honest)
			if v := g.Verdict; !v.AsserterLies || v.Reason != dispute.Recomputed || v.Leaf != string(dispute.Tile) {
				t.Errorf("%s in %d bits: verdict %+v", what, bits, *v)
			}
		}
		caught("another product", vouch(t, tampered(t, task, kind, func(op *program.Operator) {
			if op.Kind = program.Identity; bits == 8 {
				op.In = op.In[1:]
				return
			}
			op.Kind, op.In, op.Out = program.Convert, op.In[1:], tensor.Make(tensor.Float32, op.Out.Dims...)
		}), base, unit, nil))
		coded := 0
		for i, x := range task.Frozen {
			if !blocks.Coded(x.Shape) {
				continue
			}
			coded++
			other := *task
			other.Frozen = slices.Clone(task.Frozen)
			other.Frozen[i] = x.Clone()
			other.Frozen[i].Bytes()[3] ^= 1
			caught("another code", vouch(t, &other, base, unit, nil))
		}
		if coded != 4 {
			t.Errorf("%d of 4 layers are in blocks", coded)
		}
	}
}

// A unit begins with the checkpoint, and with nothing else.
func TestForgedAnchor(t *testing.T) {
	task, base := jobOf(t, tiny, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Proximal: 0.1})
	r, w := newReferee(task.Spec, task.Step), witness.New(task, base, unit, nil, shardTokens)
	name := train.Anchor + train.Params(task.Step)[1]
	c, prove := operatorClaim(t, w, base, 2,
		slices.IndexFunc(task.Step.Ops, func(op program.Operator) bool { return op.Name == name }), 0)
	payload, err := w.Leaf(c, prove)
	if err != nil {
		t.Fatal(err)
	}
	if ruling, err := r.Judge(c, payload); err != nil || !ruling.Right || c.Output != base.Params[1].Root() {
		t.Errorf("the parameter of the checkpoint: %+v, %v", ruling, err)
	}
	session, err := task.Begin(base, unit, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Advance(); err != nil {
		t.Fatal(err)
	}
	roots := train.Roots(base.Tensors())
	roots[1] = session.Tensors()[1].Root() // after the first step
	lie := c
	lie.Output = roots[1]
	if ruling, err := r.Judge(lie, payload); err != nil || ruling.Right {
		t.Errorf("another parameter: %+v, %v", ruling, err)
	}
	payload = canon.MustMarshal(evidence.Start{Checkpoint: roots})
	if ruling, err := r.Judge(lie, payload); !errors.Is(err, evidence.ErrPayload) {
		t.Errorf("another checkpoint: %+v, %v", ruling, err)
	}
}
