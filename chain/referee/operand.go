package referee

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// tiles is the number of leaves in which the output of an operator is disputed. An Input other than the tokens is one
// question: a tensor of the state is compared by its root, a scalar has one leaf.
func tiles(p *program.Program, operator uint32) uint32 {
	if int(operator) >= len(p.Ops) {
		return 1
	}
	op := &p.Ops[operator]
	if op.Kind == program.Input && op.Name != "tokens" {
		return 1
	}
	return uint32(op.Out.Leaves())
}

// want is what a range of an output needs of the output of an earlier operator.
type want struct {
	value  int32
	slots  []int // operands that it is
	leaves []int // ascending
}

// wants lists what is needed, once for operands that are the same, in order of appearance.
func wants(in []int32, need [][]int) []want {
	var out []want
	for slot, leaves := range need {
		if len(leaves) == 0 {
			continue
		}
		i := slices.IndexFunc(out, func(w want) bool { return w.value == in[slot] })
		if i < 0 {
			i = len(out)
			out = append(out, want{value: in[slot]})
		}
		w := &out[i]
		w.slots = append(w.slots, slot)
		w.leaves = append(w.leaves, leaves...)
		slices.Sort(w.leaves)
		w.leaves = slices.Compact(w.leaves)
	}
	return out
}

// collect returns the operands of elements lo up to hi of an output, asking for what is needed of them: first of the
// indices, if what is needed of the others depends on them.
func collect(p *program.Program, i, lo, hi int, ask func(want) (*tensor.Partial, error)) ([]*tensor.Partial, error) {
	op := &p.Ops[i]
	shapes := operandShapes(p, op)
	in := make([]*tensor.Partial, len(shapes))
	for k, s := range shapes {
		in[k] = tensor.NewPartial(s)
	}
	fill := func(indices *tensor.Partial) error {
		need, err := program.Need(op, shapes, lo, hi, indices)
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

func operandShapes(p *program.Program, op *program.Operator) []tensor.Shape {
	out := make([]tensor.Shape, len(op.In))
	for k, v := range op.In {
		out[k] = p.Ops[v].Out
	}
	return out
}

// maxWork bounds the elements of operands that go into a tile, and with them the time of a referee.
const maxWork = 1 << 24

// affordable reports, as an error that wraps ErrTooLarge, why no tile of an operator is recomputed.
func affordable(p *program.Program, i int) error {
	op := &p.Ops[i]
	_, n := op.Out.LeafRange(0)
	if work := program.RangeWork(op, operandShapes(p, op), n); work > maxWork {
		return fmt.Errorf("%w: a tile of operator %d (%s to %v) takes %d elements, at most %d are read", ErrTooLarge, i, op.Kind, op.Out, work, maxWork)
	}
	return nil
}

// fits reports whether every tile of an operator can be recomputed. Apart from indices, what a tile needs hardly depends
// on which it is.
func fits(p *program.Program, i int) error {
	op := &p.Ops[i]
	if op.Kind == program.Input {
		return nil
	}
	if err := affordable(p, i); err != nil {
		return err
	}
	last := op.Out.Leaves() - 1
	for _, tile := range []int{0, last / 2, last} {
		n, err := tileBytes(p, i, tile)
		if err != nil {
			return err
		}
		if n > maxValues {
			return fmt.Errorf("%w: a tile of operator %d (%s to %v) needs %d bytes, at most %d are taken", ErrTooLarge, i, op.Kind, op.Out, n, maxValues)
		}
	}
	return nil
}

// tileBytes is the size of what a tile needs, at most, without proofs.
func tileBytes(p *program.Program, i, tile int) (n int, err error) {
	op := &p.Ops[i]
	lo, hi := op.Out.LeafRange(tile)
	shapes := operandShapes(p, op)
	need, err := program.Need(op, shapes, lo, hi, nil)
	if err != nil {
		return 0, err
	}
	for _, w := range wants(op.In, need) {
		n += len(w.leaves) * tensor.LeafBytes
	}
	switch op.Kind { // whatever the indices are
	case program.TakeRows:
		row := shapes[0].Bytes() / shapes[0].Dims[0]
		rows := (hi-lo)*op.Out.DType.Size()/row + 2
		n += min(shapes[0].Bytes(), (hi-lo)*op.Out.DType.Size()+2*rows*tensor.LeafBytes)
	case program.AddRows:
		n += tensor.LeafBytes + shapes[2].Bytes()
	}
	return n, nil
}

// show brings the leaves of a value that are wanted, with what shows that they are in its tree.
func show(value *tensor.Tensor, w want) (o operand, part *tensor.Partial, err error) {
	part = tensor.NewPartial(value.Shape)
	for _, l := range w.leaves {
		leaf := value.Leaf(l)
		part.Set(l, leaf)
		o.Bytes = append(o.Bytes, leaf...)
	}
	o.Cover, err = value.Tree().Cover(w.leaves)
	return o, part, err
}
