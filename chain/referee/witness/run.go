package witness

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/traced"
	"github.com/starling-network/starling/protocol/dispute"
)

// Run is a party's own execution of a program that is no unit: all its inputs are known to both parties and the chain,
// but for the weights, whose root is. It is for one goroutine.
type Run struct {
	exec    *cpu.Exec
	in      map[string]*tensor.Tensor
	weights []canon.Digest // roots, in the order of the inputs
	known   map[string]canon.Digest

	outputs
	trace *canon.Tree
}

var _ dispute.Oracle = (*Run)(nil)

// NewRun returns the witness of the execution of a program on inputs, of which the weights have these roots, in order.
func NewRun(p *program.Program, threads int, in map[string]*tensor.Tensor, weights []canon.Digest) (*Run, error) {
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	names := parts.Frozen(p)
	if len(names) != len(weights) {
		return nil, fmt.Errorf("%w: %d roots of %d weights", dispute.ErrWork, len(weights), len(names))
	}
	r := &Run{exec: x, in: in, weights: weights, known: map[string]canon.Digest{}, outputs: outputs{step: p}}
	for i, n := range names {
		r.known[parts.Param+n] = weights[i]
	}
	return r, nil
}

// Steps implements dispute.Oracle: a program is one step.
func (r *Run) Steps([]uint64) ([]canon.Digest, error) {
	return nil, fmt.Errorf("%w: a program has no steps", dispute.ErrWork)
}

// Result implements dispute.Oracle: a program has no update.
func (r *Run) Result(dispute.Kind) (*canon.Tree, error) {
	return nil, fmt.Errorf("%w: a program has no update", dispute.ErrWork)
}

// Trace implements dispute.Oracle.
func (r *Run) Trace(uint32) (*canon.Tree, error) {
	if r.trace != nil {
		return r.trace, nil
	}
	leaves := traced.New(r.step, r.known)
	if err := r.exec.Trace(r.in, func(op int, value *tensor.Tensor) error {
		leaves.Add(op, value)
		return nil
	}); err != nil {
		return nil, err
	}
	r.trace = leaves.Tree()
	return r.trace, nil
}

// Parts implements dispute.Oracle.
func (r *Run) Parts(c dispute.Claim) uint64 {
	return division.Parts(r.step, c.Index, func(i int) (recompute.Division, error) { return division.Of(r.step, i) })
}

// Partial implements dispute.Oracle.
func (r *Run) Partial(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	if err := r.lookAt(c.Index); err != nil {
		return nil, err
	}
	return r.partial(c.Index, after)
}

func (r *Run) lookAt(operator uint32) error {
	return r.look(operator, func(wanted []int, visit func(op int, value *tensor.Tensor)) error {
		return r.exec.TraceOf(r.in, wanted, func(op int, value *tensor.Tensor) error {
			visit(op, value)
			return nil
		})
	})
}

// Leaf implements dispute.Oracle. For an input that the chain knows it brings nothing.
func (r *Run) Leaf(c dispute.Claim, prove func(operator int) (canon.Proof, error)) ([]byte, error) {
	if c.Kind == dispute.Binding {
		t, err := r.Trace(c.Step)
		if err != nil {
			return nil, err
		}
		return encoded(evidence.Binding{Outputs: leaves(t)})
	}
	if op := &r.step.Ops[c.Index]; op.Kind == program.Input {
		if strings.HasPrefix(op.Name, parts.Param) {
			return encoded(evidence.Frozen{Frozen: r.weights})
		}
		return nil, nil
	}
	if err := r.lookAt(c.Index); err != nil {
		return nil, err
	}
	p, err := r.part(c, prove)
	if err != nil {
		return nil, err
	}
	return encoded(p)
}
