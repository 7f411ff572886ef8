package node

import (
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// opening is what a challenge shows of the job.
func (e *engine) opening() []byte { return referee.Opening(e.task.Spec, e.task.Step) }

// oracle is what a party knows about a disputed unit. A liar knows how to stand by what fabricate made up.
func (e *engine) oracle(base run.Checkpoint, g dispute.Game, liar bool) (dispute.Oracle, error) {
	w, err := e.witness(base, g.Config.Unit)
	if err != nil {
		return nil, err
	}
	honest := &exclusive{lock: &e.computing, oracle: w}
	if !liar {
		return honest, nil
	}
	ops := e.task.Step.Ops
	dot := max(slices.IndexFunc(ops, func(op program.Operator) bool { return op.Kind == program.Dot }), 0)
	return &pretender{Oracle: honest, claimed: g.After, operator: uint32(dot), shape: ops[dot].Out}, nil
}

// disputed names a unit that was executed again for a dispute.
type disputed struct {
	base run.Checkpoint
	unit uint32
}

// witness returns the execution of a disputed unit, which is kept from move to move until another round is disputed.
func (e *engine) witness(name run.Checkpoint, unit uint32) (*referee.Witness, error) {
	base, err := e.base(name)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := disputed{name, unit}
	if w, ok := e.witnesses[key]; ok {
		return w, nil
	}
	kept := map[disputed]*referee.Witness{key: referee.NewWitness(e.task, base, unit, shardTokens)}
	for k, w := range e.witnesses {
		if k.base == name {
			kept[k] = w
		}
	}
	e.witnesses = kept
	return kept[key], nil
}

// exclusive is an oracle that computes only while nothing else does.
type exclusive struct {
	lock   sync.Locker
	oracle dispute.Oracle
}

// Steps implements dispute.Oracle.
func (x *exclusive) Steps(after []uint32) ([]canon.Digest, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Steps(after)
}

// Trace implements dispute.Oracle.
func (x *exclusive) Trace(step uint32) (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Trace(step)
}

// Tiles implements dispute.Oracle.
func (x *exclusive) Tiles(operator uint32) uint32 { return x.oracle.Tiles(operator) }

// Output implements dispute.Oracle.
func (x *exclusive) Output(step, operator uint32) (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Output(step, operator)
}

// Update implements dispute.Oracle.
func (x *exclusive) Update() (*canon.Tree, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Update()
}

// Leaf implements dispute.Oracle.
func (x *exclusive) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	return x.oracle.Leaf(c, prove)
}

// pretender is what a worker can say who committed to a state that it made up: everything as it is, except that the last
// step leads to that state, by an operator with another output.
type pretender struct {
	dispute.Oracle
	claimed  canon.Digest
	operator uint32
	shape    tensor.Shape // of the operator's output
}

// Steps implements dispute.Oracle.
func (p *pretender) Steps(after []uint32) ([]canon.Digest, error) {
	roots, err := p.Oracle.Steps(after)
	if err == nil && len(roots) > 0 {
		roots[len(roots)-1] = p.claimed
	}
	return roots, err
}

// Trace implements dispute.Oracle.
func (p *pretender) Trace(step uint32) (*canon.Tree, error) {
	t, err := p.Oracle.Trace(step)
	if err != nil {
		return nil, err
	}
	made, err := p.Output(step, p.operator)
	if err != nil {
		return nil, err
	}
	return replaced(t, int(p.operator), tensor.RootOf(p.shape, made.Root()))
}

// Output implements dispute.Oracle: the last tile of the operator is made up.
func (p *pretender) Output(step, operator uint32) (*canon.Tree, error) {
	t, err := p.Oracle.Output(step, operator)
	if err != nil || operator != p.operator {
		return t, err
	}
	return replaced(t, t.Len()-1, p.claimed)
}

// replaced is a tree in which one leaf is another.
func replaced(t *canon.Tree, i int, leaf canon.Digest) (*canon.Tree, error) {
	leaves := make([]canon.Digest, t.Len())
	for k := range leaves {
		var err error
		if leaves[k], err = t.Node(0, k); err != nil {
			return nil, err
		}
	}
	leaves[i] = leaf
	return canon.NewTree(leaves), nil
}
