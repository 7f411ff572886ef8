package program

import "github.com/starling-network/starling/compute/view"

// A loc says where the elements of a value are: in a store, read through a view that counts in elements. Operators that
// only move elements make locs, not copies.
type loc struct {
	store int
	view.View
}

// dense is the loc of all elements of a store, in order.
func dense(store int, dims []int) loc { return loc{store, view.Dense(dims)} }

// through is the same store, read through another view.
func (l loc) through(v view.View) loc { return loc{l.store, v} }

// moved is the view of the result of an operator that only moves elements, given that of its operand.
func moved(op *Operator, v view.View) view.View {
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
