package witness

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/dispute"
)

// outputs are those of the operators of one execution of a program, of which one is looked at.
type outputs struct {
	step *program.Program

	seen     *tensor.Tensor           // output of the operator looked at last
	tree     *canon.Tree              // over its leaves
	operands map[int32]*tensor.Tensor // and what it reads
	at       uint32                   // its index
}

// look computes the output of an operator and its operands by a function that shows wanted values.
func (w *outputs) look(operator uint32,
	values func(wanted []int, visit func(op int, value *tensor.Tensor)) error) error {
	if w.seen != nil && w.at == operator {
		return nil
	}
	ops := w.step.Ops
	if int(operator) >= len(ops) {
		return fmt.Errorf("%w: no operator %d", evidence.ErrPayload, operator)
	}
	w.seen, w.tree, w.operands = nil, nil, map[int32]*tensor.Tensor{}
	wanted := []int{int(operator)}
	for _, v := range ops[operator].In {
		wanted = append(wanted, int(v))
	}
	var output *tensor.Tensor
	err := values(wanted, func(op int, value *tensor.Tensor) {
		if ops[op].Kind == program.Input {
			value = value.Clone() // it changes with the session
		}
		if op == int(operator) {
			output = value
		} else {
			w.operands[int32(op)] = value
		}
	})
	if err == nil {
		w.seen, w.tree, w.at = output, output.Tree(), operator
	}
	return err
}

// partial returns the states of the output looked at after some of its parts.
func (w *outputs) partial(operator uint32, after []uint64) ([]canon.Digest, error) {
	m, err := w.making(operator)
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
		out[i] = p.Digest()
	}
	return out, nil
}

// making is an output that is made again from its operands, part by part.
type making struct {
	numerics uint32 // of the program
	op       *program.Operator
	division recompute.Division
	tree     *canon.Tree       // over the leaves of the output
	operands []*tensor.Partial // all there is of them
	part     uint64            // the next one to be made
	state    []byte            // before it
}

// making returns the output that was looked at last. A tile of an Input is made in one part from nothing.
func (w *outputs) making(operator uint32) (*making, error) {
	m := &making{numerics: w.step.Numerics, op: &w.step.Ops[operator],
		division: recompute.Division{Ranges: 1, Links: 1}, tree: w.tree}
	if m.op.Kind == program.Input {
		return m, nil
	}
	for _, v := range m.op.In {
		m.operands = append(m.operands, tensor.Whole(w.operands[v]))
	}
	var err error
	m.division, err = division.Of(w.step, int(operator))
	return m, err
}

func (m *making) parts() uint64 { return uint64(m.tree.Len() * m.division.Parts()) }

// at is the state after some parts, but not all. Earlier parts of the same tile are not computed again.
func (m *making) at(part uint64) (evidence.Progress, error) {
	each := uint64(m.division.Parts())
	if m.part > part || m.part/each != part/each {
		m.part, m.state = part/each*each, nil
	}
	for m.part < part {
		state, err := recompute.Eval(m.numerics, m.op, m.operands, m.division, int(m.part/each), int(m.part%each), m.state)
		if err != nil {
			return evidence.Progress{}, err
		}
		m.part, m.state = m.part+1, state
	}
	return evidence.Progress{Done: m.tree.Frontier(int(part / each)), State: m.state}, nil
}

// part brings what a part of an operator's output is computed from.
func (w *outputs) part(c dispute.Claim, prove func(operator int) (canon.Proof, error)) (p evidence.Operator,
	err error) {
	m, err := w.making(c.Index)
	if err != nil {
		return p, err
	}
	if p.Before, err = m.at(c.Part); err != nil {
		return p, err
	}
	each := uint64(m.division.Parts())
	_, err = division.Collect(w.step, int(c.Index), m.division, int(c.Part/each), int(c.Part%each),
		func(need division.Want) (*tensor.Partial, error) {
			shown, part, err := evidence.Show(w.operands[need.Value], need.Leaves)
			if err != nil {
				return nil, err
			}
			proof, err := prove(int(need.Value))
			p.Operands = append(p.Operands, evidence.Operand{Shown: shown, Proof: proof})
			return part, err
		})
	return p, err
}
