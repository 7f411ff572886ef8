// Package witness is the side of a party in a dispute: it executes the disputed unit again, answers the questions of
// the descent, and makes the evidence for the last one. It also makes the evidence that refutes a checkpoint.
//
// Which questions are asked is protocol/dispute; the evidence is judged by chain/referee.
package witness

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/protocol/dispute"
)

// Witness is a party's own execution of a disputed unit. It keeps its results, so that a whole dispute costs two
// executions of the unit and the traces of one step. It is for one goroutine, and uses the Exec of its task.
type Witness struct {
	task        *train.Task
	base        *train.Checkpoint
	model       *train.Checkpoint // what the unit begins with of base: all of it, but in a swarm
	unit        uint32
	from        []*tensor.Tensor // the carried state of the unit; nil: none
	shardTokens int

	plan *stages.Plan // of which the unit is a stage; nil: of none

	known   map[uint64]canon.Digest // inner state roots, by steps
	session *train.Session
	done    uint32      // steps of session
	trace   *canon.Tree // of the step traced
	traced  uint32
	payload *canon.Tree // over the payloads of the update
	handed  *canon.Tree // over the state that the unit carries

	// roots of the tensors of the checkpoint, of the carried state, and of those that name the state of the session
	based, carried, named roots

	outputs        // of the step looked at last
	looked  uint32 // that step
}

// New returns the witness of a unit of the round after base, with the carried state from, nil for none. The
// manifest of the job's data is that of the task's corpus in shards of shardTokens.
func New(task *train.Task, base *train.Checkpoint, unit uint32, from []*tensor.Tensor,
	shardTokens int) *Witness {
	of := task.Of(unit)
	return &Witness{task: of, base: base, model: train.ModelOf(of.Spec, base, unit), unit: unit, from: from,
		shardTokens: shardTokens, known: map[uint64]canon.Digest{}, plan: task.Plan()}
}

var _ dispute.Oracle = (*Witness)(nil)

// Steps implements dispute.Oracle.
func (w *Witness) Steps(after []uint64) ([]canon.Digest, error) {
	out := make([]canon.Digest, len(after))
	for i, step := range after {
		// Later questions are about states between those of the first one: those are hashed, and none before them.
		for k := slices.Min(after); k <= step; k++ {
			if _, known := w.known[k]; known {
				continue
			}
			if err := w.at(uint32(k)); err != nil {
				return nil, err
			}
			w.known[k] = train.StateRoot(w.done, w.state())
		}
		out[i] = w.known[step]
	}
	return out, nil
}

// at brings the session to the state after some steps.
func (w *Witness) at(step uint32) (err error) {
	if w.session == nil || w.done > step {
		w.done = 0
		if w.session, err = w.task.Begin(w.base, w.unit, w.from); err != nil {
			return err
		}
	}
	for ; w.done < step; w.done++ {
		if _, err := w.session.Advance(); err != nil {
			w.session = nil
			return err
		}
	}
	return nil
}

// Trace implements dispute.Oracle.
func (w *Witness) Trace(step uint32) (*canon.Tree, error) {
	if w.trace != nil && w.traced == step {
		return w.trace, nil
	}
	if err := w.at(step); err != nil {
		return nil, err
	}
	t, err := w.session.Trace(nil)
	if err != nil {
		return nil, err
	}
	w.trace, w.traced = t, step
	return t, nil
}

// Parts implements dispute.Oracle.
func (w *Witness) Parts(c dispute.Claim) uint64 {
	return question.Parts(w.task.Spec, w.task.Step, c,
		func(i int) (recompute.Division, error) { return division.Of(w.task.Step, i) })
}

// Partial implements dispute.Oracle.
func (w *Witness) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	switch c.Kind {
	case dispute.Update:
		out, _, err := w.payloadAfter(c, after)
		return out, err
	case dispute.Carry:
		return w.carryAfter(c, after)
	}
	if err := w.look(c.Step, c.Index); err != nil {
		return nil, err
	}
	return w.partial(c.Index, after)
}

// look computes the output of one operator of a step and its operands, and nothing after them.
func (w *Witness) look(step, operator uint32) error {
	if w.looked != step {
		w.outputs = outputs{}
	}
	w.outputs.step, w.looked = w.task.Step, step
	return w.outputs.look(operator, func(wanted []int, visit func(op int, value *tensor.Tensor)) error {
		if err := w.at(step); err != nil {
			return err
		}
		return w.session.Values(wanted, visit)
	})
}

// Result implements dispute.Oracle.
func (w *Witness) Result(k dispute.Kind) (*canon.Tree, error) {
	if w.payload == nil {
		if err := w.finish(); err != nil {
			return nil, err
		}
	}
	if k == dispute.Carry {
		return w.handed, nil
	}
	return w.payload, nil
}

// finish makes what comes of the end of the unit. A payload that cannot be made, because an element is not finite, has
// no root.
func (w *Witness) finish() error {
	if drawn := len(parts.HandedOn(w.task.Step)); drawn > 0 { // it has no update
		if err := w.at(w.task.Spec.StepsOf(w.unit)); err != nil {
			return err
		}
		state := w.state()
		w.payload, w.handed = canon.NewTree(make([]canon.Digest, len(w.model.Params))),
			canon.NewTree(state[len(state)-drawn:])
		return nil
	}
	payloads, left := make([]canon.Digest, len(w.model.Params)), make([]canon.Digest, len(w.model.Params))
	if w.plan != nil {
		heads, err := headsOf(w)
		if err != nil {
			return err
		}
		defer func() { w.handed = canon.NewTree(heads) }()
	}
	for i := range payloads {
		payload, rest, err := w.handsOn(dispute.Claim{Round: w.base.Round, Step: w.task.Spec.StepsOf(w.unit),
			Index: uint32(i)})
		switch {
		case err == nil:
			payloads[i], left[i] = codec.PayloadTree(payload).Root(), rest.Root()
		case !errors.Is(err, codec.ErrPayload):
			return err
		}
	}
	w.payload, w.handed = canon.NewTree(payloads), canon.NewTree(w.handing(left))
	return nil
}

// Leaf implements dispute.Oracle. A payload beyond dispute.MaxLeaf is evidence.ErrTooLarge.
func (w *Witness) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	p, err := w.answer(c, prove)
	if err != nil {
		return nil, err
	}
	return encoded(p)
}

// encoded is the payload of evidence.
func encoded(p any) ([]byte, error) {
	b, err := canon.Marshal(p)
	if err == nil && len(b) > dispute.MaxLeaf {
		err = fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", evidence.ErrTooLarge, len(b), dispute.MaxLeaf)
	}
	return b, err
}

func (w *Witness) answer(c dispute.Claim, prove func(operator int) (canon.Proof, error)) (any, error) {
	switch c.Kind {
	case dispute.Start:
		p := evidence.Start{Checkpoint: w.based.of(w.base.Tensors(), 0)}
		if w.from != nil && train.DependsOnCarry(w.task.Spec) {
			p.From = w.carried.of(w.from, 0)
		}
		return p, nil
	case dispute.Binding:
		t, err := w.Trace(c.Step)
		if err != nil {
			return nil, err
		}
		return evidence.Binding{Outputs: leaves(t)}, nil
	case dispute.Update:
		return w.update(c)
	case dispute.Carry:
		if w.plan != nil {
			return statesOf(w)
		}
		if question.IsMoment(w.task.Spec, w.task.Step, c) {
			return w.moment(c)
		}
		return w.carry(c)
	}
	if err := w.at(c.Step); err != nil {
		return nil, err
	}
	if question.Begins(w.task.Spec, w.task.Step, c) {
		return w.begin(c)
	}
	switch op := &w.task.Step.Ops[c.Index]; {
	case op.Kind == program.Input && op.Name == "tokens":
		return w.tokens(c, op.Out)
	case op.Kind == program.Input && strings.HasPrefix(op.Name, train.Anchor):
		return evidence.Start{Checkpoint: w.based.of(w.base.Tensors(), 0)}, nil
	case op.Kind == program.Input && slices.Contains(train.Frozen(w.task.Step), strings.TrimPrefix(op.Name, train.Param)):
		return evidence.Frozen{Frozen: w.task.AllFrozenRoots()}, nil
	case op.Kind == program.Input && strings.HasPrefix(op.Name, parts.Received) && w.plan != nil:
		return receivedOn(w, op.Name)
	case op.Kind == program.Input:
		return evidence.State{State: w.state()}, nil
	default:
		if err := w.look(c.Step, c.Index); err != nil {
			return nil, err
		}
		return w.part(c, prove)
	}
}

// tokens brings what shows a tile of a batch in the corpus.
func (w *Witness) tokens(c dispute.Claim, batch tensor.Shape) (p evidence.Tokens, err error) {
	if err := w.look(c.Step, c.Index); err != nil {
		return p, err
	}
	corpus, s := w.task.Corpus, w.task.Spec
	m := corpus.Manifest(w.shardTokens)
	lo, hi := batch.LeafRange(int(c.Part))
	spans, err := m.Spans(s.Address(c.Round, c.Unit, c.Step), int(s.Length), lo, hi)
	if err != nil {
		return p, err
	}
	p.Before.Done = w.tree.Frontier(int(c.Part))
	p.Manifest = m.Encode()
	p.Proofs, err = corpus.LeafProofs(m, spans)
	return p, err
}

func (w *Witness) state() []canon.Digest { return w.named.of(w.session.Named(), w.done) }

// roots are those of tensors that change with the steps of a unit, computed once for each step.
type roots struct {
	list []canon.Digest
	step uint32
}

func (r *roots) of(tensors []*tensor.Tensor, step uint32) []canon.Digest {
	if r.list == nil || r.step != step {
		r.list, r.step = train.RootsBy(kernel.Cores, tensors, nil), step
	}
	return r.list
}

func leaves(t *canon.Tree) []canon.Digest {
	out := make([]canon.Digest, t.Len())
	for i := range out {
		out[i], _ = t.Node(0, i) // every leaf exists
	}
	return out
}
