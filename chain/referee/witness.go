package referee

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/protocol/dispute"
)

// Witness is a party's own execution of a disputed unit. What it has computed it keeps, so that a whole dispute costs
// two executions of the unit and the traces of one step. It is for one goroutine, and uses the Exec of its task.
type Witness struct {
	task        *train.Task
	base        *train.Checkpoint
	unit        uint32
	from        []*tensor.Tensor // what was handed on to the unit; nil: nothing
	shardTokens int

	roots   []canon.Digest // inner state roots after 0, 1, ... steps
	session *train.Session
	done    uint32      // steps of session
	trace   *canon.Tree // of the step traced
	traced  uint32
	payload *canon.Tree // over the payloads of the update
	handed  *canon.Tree // over what is handed on

	seen     *tensor.Tensor           // output of the operator looked at last
	tree     *canon.Tree              // over its leaves
	operands map[int32]*tensor.Tensor // and what it reads
	looked   [2]uint32                // its step and index
}

// NewWitness returns the witness of a unit of the round after base, to which from was handed on, nil for nothing. The
// manifest of the job's data is that of the task's corpus in shards of shardTokens.
func NewWitness(task *train.Task, base *train.Checkpoint, unit uint32, from []*tensor.Tensor,
	shardTokens int) *Witness {
	return &Witness{task: task, base: base, unit: unit, from: from, shardTokens: shardTokens}
}

var _ dispute.Oracle = (*Witness)(nil)

// Steps implements dispute.Oracle.
func (w *Witness) Steps(after []uint64) ([]canon.Digest, error) {
	out := make([]canon.Digest, len(after))
	for i, step := range after {
		for uint64(len(w.roots)) <= step {
			if err := w.at(uint32(len(w.roots))); err != nil {
				return nil, err
			}
			w.roots = append(w.roots, w.session.Root())
		}
		out[i] = w.roots[step]
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
	return partsOf(w.task.Spec, w.task.Step, c,
		func(i int) (recompute.Division, error) { return division(w.task.Step, i) })
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
	m, err := w.making(c.Index)
	if err != nil {
		return nil, err
	}
	out := make([]canon.Digest, len(after))
	for i, n := range after {
		if n == m.parts() {
			out[i] = tensor.RootOf(w.seen.Shape, w.tree.Root())
			continue
		}
		p, err := m.at(n)
		if err != nil {
			return nil, err
		}
		out[i] = p.digest()
	}
	return out, nil
}

// making is an output that is made again from its operands, part by part.
type making struct {
	op       *program.Operator
	division recompute.Division
	tree     *canon.Tree       // over the leaves of the output
	operands []*tensor.Partial // all there is of them
	part     uint64            // the next one to be made
	state    []byte            // before it
}

// making returns the output that was looked at last. A tile of an Input is made in one part from nothing.
func (w *Witness) making(operator uint32) (*making, error) {
	m := &making{op: &w.task.Step.Ops[operator], division: recompute.Division{Ranges: 1, Links: 1}, tree: w.tree}
	if m.op.Kind == program.Input {
		return m, nil
	}
	for _, v := range m.op.In {
		m.operands = append(m.operands, tensor.Whole(w.operands[v]))
	}
	var err error
	m.division, err = division(w.task.Step, int(operator))
	return m, err
}

func (m *making) parts() uint64 { return uint64(m.tree.Len() * m.division.Parts()) }

// at is what there is after some parts, but not all. What was made of the same tile before is not made again.
func (m *making) at(part uint64) (progress, error) {
	each := uint64(m.division.Parts())
	if m.part > part || m.part/each != part/each {
		m.part, m.state = part/each*each, nil
	}
	for m.part < part {
		state, err := recompute.Eval(m.op, m.operands, m.division, int(m.part/each), int(m.part%each), m.state)
		if err != nil {
			return progress{}, err
		}
		m.part, m.state = m.part+1, state
	}
	return progress{Done: m.tree.Frontier(int(part / each)), State: m.state}, nil
}

// look traces a step for the output of one operator and its operands.
func (w *Witness) look(step, operator uint32) error {
	if w.seen != nil && w.looked == [2]uint32{step, operator} {
		return nil
	}
	if err := w.at(step); err != nil {
		return err
	}
	ops := w.task.Step.Ops
	if int(operator) >= len(ops) {
		return fmt.Errorf("%w: no operator %d", ErrPayload, operator)
	}
	w.seen, w.tree, w.operands = nil, nil, map[int32]*tensor.Tensor{}
	var output *tensor.Tensor
	trace, err := w.session.Trace(func(op int, value *tensor.Tensor) {
		reads := slices.Contains(ops[operator].In, int32(op))
		if (reads || op == int(operator)) && ops[op].Kind == program.Input {
			value = value.Clone() // it changes with the session
		}
		if reads {
			w.operands[int32(op)] = value
		}
		if op == int(operator) {
			output = value
		}
	})
	if err == nil {
		w.seen, w.tree, w.looked = output, output.Tree(), [2]uint32{step, operator}
		w.trace, w.traced = trace, step
	}
	return err
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
	payloads, left := make([]canon.Digest, len(w.base.Params)), make([]canon.Digest, len(w.base.Params))
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

// Leaf implements dispute.Oracle. A payload beyond dispute.MaxLeaf is ErrTooLarge.
func (w *Witness) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	p, err := w.answer(c, prove)
	if err != nil {
		return nil, err
	}
	b, err := canon.Marshal(p)
	if err == nil && len(b) > dispute.MaxLeaf {
		err = fmt.Errorf("%w: a payload of %d bytes, at most %d are taken", ErrTooLarge, len(b), dispute.MaxLeaf)
	}
	return b, err
}

func (w *Witness) answer(c dispute.Claim, prove func(operator int) (canon.Proof, error)) (any, error) {
	switch c.Kind {
	case dispute.Start:
		p := startPayload{Checkpoint: w.checkpoint()}
		if w.from != nil && w.task.Spec.Exchange.GoesOn() {
			p.From = train.Roots(w.from)
		}
		return p, nil
	case dispute.Binding:
		t, err := w.Trace(c.Step)
		if err != nil {
			return nil, err
		}
		return bindingPayload{Outputs: leaves(t)}, nil
	case dispute.Update:
		return w.update(c)
	case dispute.Carry:
		if isMoment(w.task.Spec, w.task.Step, c) {
			return w.moment(c)
		}
		return w.carry(c)
	}
	if err := w.at(c.Step); err != nil {
		return nil, err
	}
	if begins(w.task.Spec, w.task.Step, c) {
		return w.begin(c)
	}
	switch op := &w.task.Step.Ops[c.Index]; {
	case op.Kind == program.Input && op.Name == "tokens":
		return w.tokens(c, op.Out)
	case op.Kind == program.Input && strings.HasPrefix(op.Name, train.Anchor):
		return startPayload{Checkpoint: w.checkpoint()}, nil
	case op.Kind == program.Input && slices.Contains(train.Frozen(w.task.Step), strings.TrimPrefix(op.Name, train.Param)):
		return frozenPayload{Frozen: train.Roots(w.task.Frozen)}, nil
	case op.Kind == program.Input:
		return statePayload{State: train.Roots(w.session.Named())}, nil
	default:
		return w.part(c, prove)
	}
}

// tokens brings what shows a tile of a batch in the corpus.
func (w *Witness) tokens(c dispute.Claim, batch tensor.Shape) (p tokensPayload, err error) {
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
	p.Excerpts, err = corpus.LeafProofs(m, spans)
	return p, err
}

// part brings what a part of an operator's output is computed from.
func (w *Witness) part(c dispute.Claim, prove func(operator int) (canon.Proof, error)) (p operatorPayload, err error) {
	if err := w.look(c.Step, c.Index); err != nil {
		return p, err
	}
	m, err := w.making(c.Index)
	if err != nil {
		return p, err
	}
	if p.Before, err = m.at(c.Part); err != nil {
		return p, err
	}
	each := uint64(m.division.Parts())
	_, err = collect(w.task.Step, int(c.Index), m.division, int(c.Part/each), int(c.Part%each),
		func(need want) (*tensor.Partial, error) {
			shown, part, err := excerptOf(w.operands[need.value], need.leaves)
			if err != nil {
				return nil, err
			}
			proof, err := prove(int(need.value))
			p.Operands = append(p.Operands, operand{shown, proof})
			return part, err
		})
	return p, err
}

func (w *Witness) checkpoint() []canon.Digest {
	return train.Roots(w.base.Tensors())
}

func leaves(t *canon.Tree) []canon.Digest {
	out := make([]canon.Digest, t.Len())
	for i := range out {
		out[i], _ = t.Node(0, i) // every leaf exists
	}
	return out
}
