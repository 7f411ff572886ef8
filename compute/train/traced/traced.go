// Package traced makes the tree over the outputs of all operators of a step, as a dispute descends it. It executes
// nothing: its caller shows it the values.
package traced

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Leaves are the roots of the outputs of operators, one for each.
type Leaves struct {
	ops    []program.Operator
	known  map[string]canon.Digest // roots of inputs, by name
	leaves []canon.Digest
	hashed []*canon.Digest // roots of the trees over bytes
}

// New returns the leaves of a program. The inputs whose roots are known are not hashed, nor are values that have the
// bytes of an earlier one.
func New(p *program.Program, known map[string]canon.Digest) *Leaves {
	return &Leaves{p.Ops, known, make([]canon.Digest, len(p.Ops)), make([]*canon.Digest, len(p.Ops))}
}

// Add takes the output of an operator, whose operands were added before.
func (l *Leaves) Add(op int, value *tensor.Tensor) {
	root, known := l.known[l.ops[op].Name]
	switch {
	case l.ops[op].Kind == program.Input && known:
		l.leaves[op] = root
	case sameBytes(&l.ops[op]) && l.hashed[l.ops[op].In[0]] != nil:
		l.hashed[op] = l.hashed[l.ops[op].In[0]]
		l.leaves[op] = tensor.RootOf(value.Shape, *l.hashed[op])
	default:
		tree := value.Tree().Root()
		l.hashed[op], l.leaves[op] = &tree, tensor.RootOf(value.Shape, tree)
	}
}

// sameBytes reports whether the output of an operator has the bytes of its operand.
func sameBytes(op *program.Operator) bool {
	return op.Kind == program.Identity || op.Kind == program.Reshape
}

// Tree is the tree over all outputs.
func (l *Leaves) Tree() *canon.Tree { return canon.NewTree(l.leaves) }
