package train

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/traced"
)

// Trace executes the next step operator by operator without advancing, and returns the tree over the roots of all
// operators' outputs. Frozen tensors are not hashed again, nor are values that have the bytes of an earlier one.
func (s *Session) Trace(visit func(op int, value *tensor.Tensor)) (*canon.Tree, error) {
	in, err := s.Inputs()
	if err != nil {
		return nil, err
	}
	frozen := map[string]canon.Digest{}
	if names := Frozen(s.task.Step); len(names) > 0 {
		for i, root := range s.task.RootsOfFrozen() {
			frozen[Param+names[i]] = root
		}
	}
	leaves := traced.New(s.task.Step, frozen)
	err = s.task.Exec.Trace(in, func(op int, value *tensor.Tensor) error {
		leaves.Add(op, value)
		if visit != nil {
			visit(op, value)
		}
		return nil
	})
	if err != nil {
		return nil, s.failed("trace", err)
	}
	return leaves.Tree(), nil
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
