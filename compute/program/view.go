package program

import "github.com/starling-network/starling/compute/view"

// Moved is the view of the result of an operator that Moves elements, given the view of its operand.
func (op *Operator) Moved(v view.View) view.View {
	dims, rank := op.Out.Dims, len(v.Dims)
	switch op.Kind {
	case Transpose:
		return v.Axes(op.Ints)
	case Broadcast:
		return v.Broadcast(dims, op.Ints)
	case Slice:
		return v.Slice(dims, op.Ints[:rank], op.Ints[2*rank:])
	case Reverse:
		return v.Reverse(op.Ints)
	}
	return v.Windows(dims, op.Ints[rank:2*rank], op.Ints[2*rank:])
}
