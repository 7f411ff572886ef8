package train

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Trace executes the next step operator by operator without advancing, and returns the tree over the roots of all
// operators' outputs. Frozen tensors are not hashed again, nor are values that have the bytes of an earlier one.
func (s *Session) Trace(visit func(op int, value *tensor.Tensor)) (*canon.Tree, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, err
	}
	ops, frozen := s.task.Step.Ops, map[string]canon.Digest{}
	if names := Frozen(s.task.Step); len(names) > 0 {
		for i, root := range s.task.RootsOfFrozen() {
			frozen[Param+names[i]] = root
		}
	}
	leaves, hashed := make([]canon.Digest, len(ops)), make([]*canon.Digest, len(ops)) // roots of the trees over bytes
	err = s.task.Exec.Trace(in, func(op int, value *tensor.Tensor) error {
		root, known := frozen[ops[op].Name]
		switch {
		case ops[op].Kind == program.Input && known:
			leaves[op] = root
		case sameBytes(&ops[op]) && hashed[ops[op].In[0]] != nil:
			hashed[op] = hashed[ops[op].In[0]]
			leaves[op] = tensor.RootOf(value.Shape, *hashed[op])
		default:
			tree := value.Tree().Root()
			hashed[op], leaves[op] = &tree, tensor.RootOf(value.Shape, tree)
		}
		if visit != nil {
			visit(op, value)
		}
		return nil
	})
	if err != nil {
		return nil, s.failed("trace", err)
	}
	return canon.NewTree(leaves), nil
}

// sameBytes reports whether the output of an operator has the bytes of its operand.
func sameBytes(op *program.Operator) bool {
	return op.Kind == program.Identity || op.Kind == program.Reshape
}

// Values executes what some operators of the next step depend on, without advancing, and shows their outputs. It hashes
// nothing.
func (s *Session) Values(wanted []int, visit func(op int, value *tensor.Tensor)) error {
	in, err := s.Inputs()
	if err != nil {
		return err
	}
	err = s.task.Exec.TraceOf(in, wanted, func(op int, value *tensor.Tensor) error {
		visit(op, value)
		return nil
	})
	if err != nil {
		return s.failed("trace", err)
	}
	return nil
}
