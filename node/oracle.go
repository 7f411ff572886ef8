package node

import (
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/program"
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
	dot := slices.IndexFunc(e.task.Step.Ops, func(op program.Operator) bool { return op.Kind == program.Dot })
	return &pretender{Oracle: honest, claimed: g.After, operator: max(dot, 0)}, nil
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
	operator int
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
	outputs := make([]canon.Digest, t.Len())
	for i := range outputs {
		if outputs[i], err = t.Node(0, i); err != nil {
			return nil, err
		}
	}
	outputs[p.operator] = p.claimed
	return canon.NewTree(outputs), nil
}
