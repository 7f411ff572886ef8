// Package division finds in how many parts the output of an operator is disputed, so that the leaves of operands that a
// part needs fit in a payload with their proofs, and lists these leaves.
//
// The parts themselves are cut and computed by compute/recompute.
package division

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
)

// Of returns the division of the tiles of operator i's output. It is an error that wraps evidence.ErrTooLarge if no
// part of a tile is small enough, or if finding one costs too much.
func Of(p *program.Program, i int) (recompute.Division, error) {
	return divide(p, i, evidence.Limit(evidence.MaxCheck))
}

// divide is Of within a budget.
func divide(p *program.Program, i int, n *evidence.Budget) (recompute.Division, error) {
	op := &p.Ops[i]
	d, ok := recompute.Divide(op, Shapes(p, op), recompute.Fit{
		Part: func(need [][]int, state int) bool {
			n, err := Bytes(p, i, need, state)
			return err == nil && n <= evidence.MaxPart
		},
		Spend: func(units int) bool { return n.Spend(uint64(units)) },
	})
	switch {
	case !n.Spend(0):
		return d, evidence.ErrBudget
	case !ok:
		_, n := op.Out.LeafRange(0)
		return recompute.Division{Elements: n, Ranges: 1, Links: 1},
			fmt.Errorf("%w: no part of a tile of operator %d, %s of %s to %v, needs less than %d bytes", evidence.ErrTooLarge, i,
				op.Kind, operandNames(p, op), op.Out, evidence.MaxPart)
	}
	return d, nil
}

// operandNames says what an operator is applied to: the shapes, with the names of those that are inputs of the program.
func operandNames(p *program.Program, op *program.Operator) string {
	names := make([]string, len(op.In))
	for k, v := range op.In {
		names[k] = p.Ops[v].Out.String()
		if name := p.Ops[v].Name; name != "" {
			names[k] = fmt.Sprintf("%q %s", name, names[k])
		}
	}
	return strings.Join(names, ", ")
}

// Bytes is the size of the evidence for these leaves of the operands of operator i, and of the state before a part.
func Bytes(p *program.Program, i int, need [][]int, state int) (int, error) {
	size := state
	for _, w := range wants(p.Ops[i].In, need) {
		cover, err := canon.CoverSize(p.Ops[w.Value].Out.Leaves(), w.Leaves)
		if err != nil {
			return 0, err
		}
		proof := canon.Height(len(p.Ops)) * (canon.Fanout - 1)
		size += len(w.Leaves)*tensor.LeafBytes + (cover+proof)*evidence.DigestBytes
	}
	return size, nil
}

// Parts is the number of parts in which the output of an operator is disputed. An Input other than the tokens is one
// question: a tensor of the state is compared by its root, a scalar has one leaf.
func Parts(p *program.Program, operator uint32, division func(i int) (recompute.Division, error)) uint64 {
	if int(operator) >= len(p.Ops) {
		return 1
	}
	op := &p.Ops[operator]
	leaves := uint64(op.Out.Leaves())
	switch {
	case op.Kind != program.Input:
		d, _ := division(int(operator))
		return leaves * uint64(d.Parts())
	case op.Name == "tokens":
		return leaves
	}
	return 1
}

// Want is what a part of an output needs of the output of an earlier operator.
type Want struct {
	Value  int32
	slots  []int // operands that it is
	Leaves []int // ascending
}

// wants lists what is needed, once for operands that are the same, in order of appearance.
func wants(in []int32, need [][]int) []Want {
	var out []Want
	place := map[int32]int{} // of a value in out
	for slot, leaves := range need {
		if len(leaves) == 0 {
			continue
		}
		i, known := place[in[slot]]
		if !known {
			i = len(out)
			place[in[slot]], out = i, append(out, Want{Value: in[slot]})
		}
		out[i].slots = append(out[i].slots, slot)
		out[i].Leaves = append(out[i].Leaves, leaves...)
	}
	for i := range out {
		slices.Sort(out[i].Leaves)
		out[i].Leaves = slices.Compact(out[i].Leaves)
	}
	return out
}

// Collect returns the operands of a part of a leaf of an output, asking for what is needed of them: first of the
// indices, if what is needed of the others depends on them.
func Collect(p *program.Program, i int, d recompute.Division, leaf, part int,
	ask func(Want) (*tensor.Partial, error)) ([]*tensor.Partial, error) {
	op := &p.Ops[i]
	shapes := Shapes(p, op)
	in := make([]*tensor.Partial, len(shapes))
	for k, s := range shapes {
		in[k] = tensor.NewPartial(s)
	}
	fill := func(indices *tensor.Partial) error {
		need, err := recompute.Need(op, shapes, d, leaf, part, indices)
		if err != nil {
			return err
		}
		for _, w := range wants(op.In, need) {
			part, err := ask(w)
			if err != nil {
				return err
			}
			for _, slot := range w.slots {
				in[slot] = part
			}
		}
		return nil
	}
	err := fill(nil)
	if k := op.Kind.IndexOperand(); err == nil && k >= 0 {
		err = fill(in[k])
	}
	return in, err
}

func Shapes(p *program.Program, op *program.Operator) []tensor.Shape {
	out := make([]tensor.Shape, len(op.In))
	for k, v := range op.In {
		out[k] = p.Ops[v].Out
	}
	return out
}

// Check reports the first operator of which not even the smallest part is small enough, or that the budget is spent.
func Check(p *program.Program, n *evidence.Budget) error {
	seen := map[string]bool{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == program.Input {
			continue
		}
		key := fmt.Sprint(op.Kind, op.Ints, op.Out, Shapes(p, op))
		if seen[key] {
			continue
		}
		if _, err := divide(p, i, n); err != nil {
			return err
		}
		seen[key] = true
	}
	return nil
}
