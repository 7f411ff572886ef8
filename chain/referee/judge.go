package referee

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/protocol/dispute"
)

var _ dispute.Referee = (*Referee)(nil)

// Judge implements dispute.Referee. Errors wrap evidence.ErrPayload or evidence.ErrTooLarge.
func (r *Referee) Judge(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	r = judgeOf(r, c.Unit)
	switch c.Kind {
	case dispute.Start:
		return r.start(c, payload)
	case dispute.Binding:
		return r.binding(c, payload)
	case dispute.Update:
		return r.update(c, payload)
	case dispute.Carry:
		if r.plan != nil {
			return exchanged(r, c, payload)
		}
		return r.carry(c, payload)
	case dispute.Tile:
		if uint64(c.Index) >= uint64(len(r.step.Ops)) || c.Part >= r.Parts(c) {
			return dispute.Ruling{}, evidence.Wrong("the program has no operator %d, or that no part %d", c.Index, c.Part)
		}
		if question.Begins(r.spec, r.step, c) {
			return r.begin(c, payload)
		}
		if op := &r.step.Ops[c.Index]; op.Kind == program.Input {
			return r.input(c, op.Name, payload)
		}
		return r.operator(c, payload)
	}
	return dispute.Ruling{}, evidence.Wrong("nothing answers a question of kind %q", c.Kind)
}

// rule compares the computed result with the claimed one.
func rule(right, claimed canon.Digest) dispute.Ruling {
	return dispute.Ruling{Right: right == claimed, Computed: right}
}

// nothing is the ruling about what cannot be made: no claim of it is right.
var nothing = dispute.Ruling{}

func (r *Referee) start(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Start
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isCheckpoint(c, p.Checkpoint); err != nil {
		return dispute.Ruling{}, err
	}
	x, n := r.spec.Exchange, len(r.names)
	var left, moments, answers []canon.Digest
	if train.DependsOnCarry(r.spec) && !c.From.IsZero() {
		if err := r.isFrom(c, p.From); err != nil {
			return dispute.Ruling{}, err
		}
		if left, moments = train.Split(x, n, p.From); train.IsGiven(r.spec) {
			left, answers = nil, p.From
		}
	}
	if x.Pairs > 0 && c.Unit < x.Pairs {
		at := n * (1 + train.PairState*int(c.Unit))
		left = p.Checkpoint[at : at+n]
	}
	if !question.Below(r.spec, c) {
		left = nil
	}
	if train.IsGiven(r.spec) && len(answers) != len(parts.Given(r.step)) {
		return dispute.Ruling{}, evidence.Wrong("the unit learns from %d tensors, these are %d", len(parts.Given(r.step)),
			len(answers))
	}
	return rule(startRoot(r, parametersOf(r, c, p.Checkpoint), moments, left, answers), c.After), nil
}

// parametersOf are, of the tensors of a checkpoint, those of the parameters that the unit begins with: of its model in
// a swarm, or of its stage.
func parametersOf(r *Referee, c dispute.Claim, checkpoint []canon.Digest) []canon.Digest {
	if r.plan != nil {
		return replica.Part(r.spec.Pipeline, uint32(r.stage), checkpoint)
	}
	at := train.Node(r.spec, c.Unit) * len(r.names)
	return checkpoint[at : at+len(r.names)]
}

// held is the number of parameters in a checkpoint.
func held(r *Referee) int {
	if r.plan != nil {
		return len(r.whole.names)
	}
	return len(r.names)
}

// startRoot is the root of the first inner state: the parameters of the checkpoint, again for each parameter before
// earlier updates, the answers that are given, and the moments, zero if there are none; of a replica, also its carried
// difference from the parameters.
func startRoot(r *Referee, params, moments, left, answers []canon.Digest) canon.Digest {
	roots := slices.Concat(params, moments)
	if moments == nil {
		shapes := r.step.InputShapes()
		for _, name := range train.Moments(r.step) {
			if parts.IsGiven(name) {
				roots, answers = append(roots, answers[0]), answers[1:]
				continue
			}
			if _, of, ok := optimizer.EarlierOf(name); ok {
				roots = append(roots, params[r.index[train.Param+of]]) // parameters are the first tensors of a state
				continue
			}
			roots = append(roots, zeroRoot(shapes[name]))
		}
	}
	return train.BeginRoot(roots, left)
}

func (r *Referee) isCheckpoint(c dispute.Claim, roots []canon.Digest) error {
	if len(roots) != (1+r.outer)*held(r) || train.CheckpointRoot(c.Round, roots) != c.Base {
		return evidence.Wrong("these are not the tensors of the checkpoint %s", c.Base.Short())
	}
	return nil
}

func (r *Referee) isPrior(c dispute.Claim, roots []canon.Digest) error {
	n := len(r.index)
	if c.Step == 0 && question.Below(r.spec, c) {
		n += len(r.names) // and what it begins below
	}
	if len(roots) != n || train.StateRoot(c.Step, roots) != c.Prior {
		return evidence.Wrong("these are not the tensors of the agreed state %s", c.Prior.Short())
	}
	return nil
}

func (r *Referee) binding(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Binding
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if len(p.Outputs) != len(r.step.Ops) || canon.NewTree(p.Outputs).Root() != c.Trace {
		return dispute.Ruling{}, evidence.Wrong("these are not the outputs of the trace %s", c.Trace.Short())
	}
	roots := make([]canon.Digest, len(r.index))
	for _, o := range r.step.Outputs {
		if i, ok := r.index[o.Name]; ok {
			roots[i] = p.Outputs[o.Value]
		}
	}
	return rule(train.StateRoot(c.Step+1, roots), c.After), nil
}

// input answers for operators that read what is given to a step.
func (r *Referee) input(c dispute.Claim, name string, payload []byte) (dispute.Ruling, error) {
	lr, c1, c2 := r.spec.Scalars(c.Round, c.Unit, c.Step)
	switch name {
	case "tokens":
		return r.tokens(c, payload)
	case "dice":
		return rule(r.spec.Dice(c.Round, c.Unit, c.Step).Root(), c.Output), nil
	}
	if x, ok := map[string]float32{"lr": lr, "c1": c1, "c2": c2}[name]; ok {
		return rule(tensor.Scalar(x).Root(), c.Output), nil
	}
	if strings.HasPrefix(name, parts.Received) {
		return received(r, c, name, payload)
	}
	if n, ok := strings.CutPrefix(name, train.Anchor); ok {
		return r.anchor(c, n, payload)
	}
	i, ok := r.index[name]
	if !ok {
		return r.frozen(c, name, payload)
	}
	var p evidence.State
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.State); err != nil {
		return dispute.Ruling{}, err
	}
	return rule(p.State[i], c.Output), nil
}

// anchor answers for inputs that are parameters of the checkpoint that the unit began with.
func (r *Referee) anchor(c dispute.Claim, name string, payload []byte) (dispute.Ruling, error) {
	var p evidence.Start
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isCheckpoint(c, p.Checkpoint); err != nil {
		return dispute.Ruling{}, err
	}
	i := slices.Index(r.names, name)
	if i < 0 {
		return dispute.Ruling{}, evidence.Wrong("the step has no parameter %q", name)
	}
	return rule(parametersOf(r, c, p.Checkpoint)[i], c.Output), nil
}

// frozen answers for inputs that the job reads and does not train.
func (r *Referee) frozen(c dispute.Claim, name string, payload []byte) (dispute.Ruling, error) {
	var p evidence.Frozen
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	all := r.step
	if r.whole != nil {
		all = r.whole.step
	}
	i := slices.Index(train.Frozen(all), strings.TrimPrefix(name, train.Param))
	if i < 0 {
		return dispute.Ruling{}, evidence.Wrong("the step has no input %q", name)
	}
	if i >= len(p.Frozen) || train.FrozenRoot(p.Frozen) != r.spec.Frozen {
		return dispute.Ruling{}, evidence.Wrong("these are not the frozen tensors of the job")
	}
	return rule(p.Frozen[i], c.Output), nil
}

// tokens reads a tile of the batch.
func (r *Referee) tokens(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Tokens
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	m, err := data.DecodeManifest(p.Manifest)
	if err != nil {
		return dispute.Ruling{}, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	if m.Digest() != r.spec.Data {
		return dispute.Ruling{}, evidence.Wrong("this is not the manifest of the job's data")
	}
	lo, hi := r.step.Ops[c.Index].Out.LeafRange(int(c.Part))
	spans, err := m.Spans(r.spec.Address(c.Round, c.Unit, c.Step), int(r.spec.Length), lo, hi)
	if err != nil {
		return dispute.Ruling{}, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	tokens, err := m.Read(spans, p.Proofs)
	if err != nil {
		return dispute.Ruling{}, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	return r.made(c, 1, p.Before, func([]byte) ([]byte, error) { return tensor.FromI32(tokens, len(tokens)).Bytes(), nil })
}

// operator recomputes a part of one operator's output from the operands in the asserter's trace.
func (r *Referee) operator(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Operator
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	d, err := r.divisions.of(int(c.Index))
	if err != nil {
		return dispute.Ruling{}, err
	}
	leaf, part := int(c.Part/uint64(d.Parts())), int(c.Part%uint64(d.Parts()))
	given := p.Operands
	in, err := division.Collect(r.step, int(c.Index), d, leaf, part, func(w division.Want) (*tensor.Partial, error) {
		if len(given) == 0 {
			return nil, evidence.Wrong("%d operands are too few", len(p.Operands))
		}
		o := given[0]
		given = given[1:]
		return r.shown(c, w, o)
	})
	op := &r.step.Ops[c.Index]
	switch {
	case errors.Is(err, program.ErrIndex):
		return nothing, nil // the indices are the asserter's own: there is no output that it could have claimed
	case err != nil:
		return dispute.Ruling{}, err
	case len(given) > 0:
		return dispute.Ruling{}, evidence.Wrong("%d operands are too many", len(p.Operands))
	}
	eval := func(state []byte) ([]byte, error) {
		return recompute.Eval(r.step.Numerics, op, in, d, leaf, part, state)
	}
	return r.made(c, d.Parts(), p.Before, eval)
}

// made compares the state of an output after a part of it with the claimed one. each is the number of parts of a leaf;
// eval returns the state after this part.
func (r *Referee) made(c dispute.Claim, each int, before evidence.Progress,
	eval func(state []byte) ([]byte, error)) (dispute.Ruling, error) {
	shape := r.step.Ops[c.Index].Out
	leaf, part := int(c.Part/uint64(each)), int(c.Part%uint64(each))
	done, err := evidence.Resume(c.Part, c.Before, before, leaf)
	if err != nil {
		return dispute.Ruling{}, err
	}
	state, err := eval(before.State)
	switch {
	case errors.Is(err, program.ErrIndex):
		return nothing, nil
	case err != nil:
		return dispute.Ruling{}, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	if part+1 < each {
		return rule(evidence.Progress{Done: done.Nodes(), State: state}.Digest(), c.Output), nil
	}
	done.Push(canon.Leaf(state))
	if leaf+1 < shape.Leaves() {
		return rule(evidence.Progress{Done: done.Nodes()}.Digest(), c.Output), nil
	}
	return rule(tensor.RootOf(shape, done.Root()), c.Output), nil
}

// shown returns the leaves of an operand, if they are what is in the asserter's trace.
func (r *Referee) shown(c dispute.Claim, w division.Want, o evidence.Operand) (*tensor.Partial, error) {
	part, root, err := o.Shown.Read(r.step.Ops[w.Value].Out, w.Leaves)
	if err != nil {
		return nil, err
	}
	if !o.Proof.Verify(c.Trace, len(r.step.Ops), int(w.Value), root) {
		return nil, evidence.Wrong("these are not leaves of the output of operator %d in the trace %s", w.Value,
			c.Trace.Short())
	}
	return part, nil
}
