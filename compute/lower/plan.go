// Package lower turns a program into a plan: steps on stores of memory. Operators that only move elements become views,
// elementwise operators are fused into groups, operators of attention that share work become one step, and stores that
// are not alive at the same time share memory.
//
// A plan is data. It holds no functions and no memory, so that all that computes it, the processor (compute/cpu) or a
// device, reads the same steps. The plan of a program is the same in every process. The package computes nothing, and
// knows neither kernels nor threads.
package lower

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// Plan is a program as steps on stores, to be computed one after the other.
type Plan struct {
	Program *program.Program
	Stores  []Store
	Steps   []Step
	Arena   int // bytes
}

// Class says where the memory of a store comes from.
type Class uint8

// The classes of stores.
const (
	InArena   Class = iota // of the plan, shared with stores that are not alive at the same time
	InInput                // of the caller's input
	InOutput               // of the caller's output
	InProgram              // a constant
)

// Store is memory that holds the elements of one value, and of its views.
type Store struct {
	Bytes  int
	Class  Class
	Index  int  // InInput, InProgram: the operator; InOutput: the output
	Made   int  // the step that writes it, -1 before all steps
	Last   int  // the last step that reads it, -1 if none does
	Offset int  // InArena: bytes from the begin of the arena
	Used   bool // it has memory; false for values that only the group that makes them reads
}

// Location says where the elements of a value are: in a store, read through a view that counts in elements.
type Location struct {
	Store int
	Type  tensor.DType
	view.View
}

// Range returns the bytes of the store that a contiguous location takes.
func (l Location) Range() (lo, hi int) {
	lo = l.Offset * l.Type.Size()
	return lo, lo + view.Elements(l.Dims)*l.Type.Size()
}

// dense is the location of all elements of a store, in order.
func dense(store int, s tensor.Shape) Location { return Location{store, s.DType, view.Dense(s.Dims)} }

// through is the same store, read through another view.
func (l Location) through(v view.View) Location {
	l.View = v
	return l
}

// Step is what is computed at once: a group, an attention, or one operator.
type Step struct {
	Group     *Group     // nil if it is none
	Attention *Attention // nil if it is none

	// Of one operator. Its operands are contiguous, but for those of a product, whose free and contracted axes are lines
	// and whose batch axes have no negative strides. Its result is dense.
	Kind program.Kind
	Op   int     // in the program
	Ints []int64 // attributes, as they are for the dimensions of In
	In   []Location
	Out  Location

	reads  []int // stores
	writes []int // stores
	over   []int // stores that the result of an operator may be written over
}

// MayShare reports whether the input that operator v is and output i may be the same memory.
func (pl *Plan) MayShare(v, i int) bool {
	read, written := -1, -1
	for s := range pl.Stores {
		switch st := &pl.Stores[s]; {
		case st.Class == InInput && st.Index == v:
			read = s
		case st.Class == InOutput && st.Index == i:
			written = s
		}
	}
	if read < 0 || written < 0 || pl.Stores[read].Bytes != pl.Stores[written].Bytes {
		return false
	}
	last, made := pl.Stores[read].Last, pl.Stores[written].Made
	return last < made || last == made && pl.Steps[made].overwritesOne(pl.Stores, read, written)
}

// Bytes is the memory of the plan: arena, inputs, outputs and constants.
func (pl *Plan) Bytes() int64 {
	sum := int64(pl.Arena)
	for _, s := range pl.Stores {
		if s.Class != InArena {
			sum += int64(s.Bytes)
		}
	}
	return sum
}

// Reads lists the stores that the step reads, ascending.
func (st *Step) Reads() []int { return st.reads }

// Writes lists the stores that the step writes.
func (st *Step) Writes() []int { return st.writes }
