// Package sealed is an inner state of a unit as the source from which a seal is opened, and the rule by which the roots
// of inner states are computed. Seals themselves are protocol/audit.
package sealed

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// RootFuncs computes the roots of inner states, for the openings of seals. The roots do not depend on the job.
type RootFuncs struct{}

// Tensor implements audit.RootFuncs.
func (RootFuncs) Tensor(shape []byte, tiles int, tree canon.Digest) (canon.Digest, error) {
	var s tensor.Shape
	if err := canon.Unmarshal(shape, &s); err != nil {
		return canon.Digest{}, err
	}
	if err := s.Check(tiles * tensor.LeafBytes); err != nil {
		return canon.Digest{}, err
	}
	if s.Leaves() != tiles {
		return canon.Digest{}, fmt.Errorf("referee: a tensor %v has %d tiles, not %d", s, s.Leaves(), tiles)
	}
	return tensor.RootOf(s, tree), nil
}

// State implements audit.RootFuncs.
func (RootFuncs) State(step uint32, tensors canon.Digest) canon.Digest {
	return train.StateRootOf(step, tensors)
}

// State is an inner state that is sealed, as a source of openings.
type State struct {
	step    uint32
	tensors []*tensor.Tensor
	trees   []*canon.Tree
}

// New takes the state after some inner steps, its tensors in the order of train.StateRoot.
func New(step uint32, tensors []*tensor.Tensor) *State {
	s := &State{step: step, tensors: tensors}
	for _, t := range tensors {
		s.trees = append(s.trees, t.Tree())
	}
	return s
}

// Trees are the trees of the tensors over their tiles.
func (s *State) Trees() []*canon.Tree { return s.trees }

// Roots implements audit.Source.
func (s *State) Roots() []canon.Digest {
	roots := make([]canon.Digest, len(s.tensors))
	for i, t := range s.tensors {
		roots[i] = tensor.RootOf(t.Shape, s.trees[i].Root())
	}
	return roots
}

// Shape implements audit.Source.
func (s *State) Shape(i int) []byte { return canon.MustMarshal(s.tensors[i].Shape) }

// Tile implements audit.Source.
func (s *State) Tile(i, j int) []byte { return s.tensors[i].Leaf(j) }

// Step implements audit.Source.
func (s *State) Step() uint32 { return s.step }
