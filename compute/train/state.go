package train

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// Prefixes of the names of tensors among the inputs of a step: see package parts.
const (
	Param  = parts.Param
	Anchor = parts.Anchor
)

// Names of the tensors of a step: see package parts.
var (
	Params     = parts.Params
	StateNames = parts.StateNames
	Moments    = parts.Moments
	Frozen     = parts.Frozen
)

// Outer is the prefix of the names of the k-th state tensors of the outer optimizer, from 0.
func Outer(k int) string { return fmt.Sprintf("u%d/", k) }

// Checkpoint is a model with the state of its outer optimizer, after Round rounds.
type Checkpoint struct {
	Round  uint32
	Names  []string           // of the parameters, in the order of the program's inputs
	Params []*tensor.Tensor   // in the order of Names
	Outer  [][]*tensor.Tensor // the state of the outer optimizer: as many lists as it has, each shaped like Params
}

// Genesis is the checkpoint before the first round: the given parameters, and zeros for an outer optimizer with so many
// tensors of state for each.
func Genesis(names []string, params map[string]*tensor.Tensor, state int) (*Checkpoint, error) {
	c := &Checkpoint{Names: names}
	for _, n := range names {
		p, ok := params[n]
		if !ok {
			return nil, fmt.Errorf("train: no parameter %q among those given", n)
		}
		c.Params = append(c.Params, p)
	}
	c.Outer = Zeros(c.Params, state)
	return c, nil
}

// Zeros are k lists of zeros, shaped like the parameters: the state of an outer optimizer that has not moved them yet.
func Zeros(params []*tensor.Tensor, k int) [][]*tensor.Tensor {
	lists := make([][]*tensor.Tensor, k)
	for i := range lists {
		for _, p := range params {
			lists[i] = append(lists[i], tensor.New(p.Shape))
		}
	}
	return lists
}

// Tensors returns all tensors in the order in which CheckpointRoot takes them.
func (c *Checkpoint) Tensors() []*tensor.Tensor {
	return slices.Concat(append([][]*tensor.Tensor{c.Params}, c.Outer...)...)
}

// Rest says that the tensors are not read for a while. The caller has kept them until then.
func (c *Checkpoint) Rest() {
	for _, t := range c.Tensors() {
		t.Rest()
	}
	runtime.KeepAlive(c)
}

// Root is the state root of a checkpoint.
func (c *Checkpoint) Root() canon.Digest {
	return CheckpointRoot(c.Round, Roots(c.Tensors()))
}

// CheckpointRoot is the state root of a checkpoint whose tensors have these roots: all parameters, then each list of
// the state of its outer optimizer.
func CheckpointRoot(round uint32, tensors []canon.Digest) canon.Digest {
	return stateRoot("starling/checkpoint/1", round, canon.NewTree(tensors).Root())
}

// StateRoot is the root of an inner state after some steps of a unit: of the tensors of StateNames, for AdamW all
// parameters, all first moments, all second moments. The place in the data and in every random stream is a function of
// (round, unit, step), so binding the step binds them.
func StateRoot(step uint32, tensors []canon.Digest) canon.Digest {
	return StateRootOf(step, canon.NewTree(tensors).Root())
}

// BeginRoot is the root of the inner state with which a unit of a replica begins when it has a carried state. It
// binds the roots of both sources: those of StateRoot for the checkpoint, and those of the carried tensors.
func BeginRoot(checkpoint, from []canon.Digest) canon.Digest {
	return StateRoot(0, slices.Concat(checkpoint, from))
}

// StateRootOf is StateRoot, given the root of the tree over the roots of the tensors.
func StateRootOf(step uint32, tree canon.Digest) canon.Digest {
	return stateRoot("starling/state/1", step, tree)
}

func stateRoot(domain string, counter uint32, tree canon.Digest) canon.Digest {
	return canon.Sum(domain, canon.MustMarshal(counter), tree[:])
}

// Roots returns the roots of tensors, in order.
func Roots(ts []*tensor.Tensor) []canon.Digest { return RootsBy(1, ts, nil) }

// RootsBy is Roots, computed by a number of threads. If done is not nil, a thread calls it with every tensor whose root
// it has computed.
func RootsBy(threads int, ts []*tensor.Tensor, done func(*tensor.Tensor)) []canon.Digest {
	out := make([]canon.Digest, len(ts))
	kernel.Parallel(threads, len(ts), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			out[i] = ts[i].Root()
			ts[i].Rest()
			if done != nil {
				done(ts[i])
			}
		}
	})
	return out
}

// CarriedRoot is the root of the state that a unit passes on, of tensors with these roots, in the order of
// CarriedNames.
func CarriedRoot(tensors []canon.Digest) canon.Digest { return canon.NewTree(tensors).Root() }

// FrozenRoot binds the tensors with these roots, which a job reads and does not train. That of none is zero.
func FrozenRoot(tensors []canon.Digest) canon.Digest {
	if len(tensors) == 0 {
		return canon.Digest{}
	}
	return canon.NewTree(tensors).Root()
}

// CarriedNames returns the names of the tensors that a unit passes on, in order: parts left out have the names of their
// parameters, moments the names in the unit's state.
func CarriedNames(x Exchange, p *program.Program) (names []string) {
	if x.CarriesResidual() {
		names = Params(p)
	}
	if x.Moments {
		names = append(names, Moments(p)...)
	}
	if drawn := parts.HandedOn(p); len(drawn) > 0 {
		return drawn
	}
	return names
}

// HandedShapes are the shapes of those tensors.
func HandedShapes(x Exchange, p *program.Program) (list []tensor.Shape) {
	shapes := p.InputShapes()
	for _, n := range CarriedNames(x, p) {
		shape, moment := shapes[n]
		if !moment {
			shape = shapes[Param+n]
		}
		list = append(list, shape)
	}
	return list
}

// CheckProgram reports why a program is not a training step of the specification: its digest, its version of the
// numerics, and the names and shapes of its inputs and outputs.
func CheckProgram(s *Spec, p *program.Program) error {
	if d := p.Digest(); d != s.Program || p.Numerics != s.Numerics {
		return fmt.Errorf("%w: names program %s in numerics %d, given %s in %d", ErrSpec, s.Program.Short(), s.Numerics,
			d.Short(), p.Numerics)
	}
	if err := parts.Check(p, s.Rollout != nil, s.Pipeline != nil, len(s.Apart().ReadsAll(0))); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if err := checkCut(s, p); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	shapes, read := p.InputShapes(), 4
	tokens := tensor.Shape{DType: tensor.Int32, Dims: []int{int(s.Batch), int(s.Length) + 1}}
	if s.Led {
		read = 0 // all that it reads is given
	} else if !shapes["tokens"].Equal(tokens) {
		return fmt.Errorf("%w: the program's tokens are %v, not %v", ErrSpec, shapes["tokens"], tokens)
	}
	scalar := tensor.Shape{DType: tensor.Float32}
	for _, name := range []string{"lr", "c1", "c2"} {
		if got, ok := shapes[name]; !s.Led && (!ok || !got.Equal(scalar)) {
			return fmt.Errorf("%w: the program has no scalar input %q", ErrSpec, name)
		}
	}
	names, frozen := Params(p), Frozen(p)
	anchors := 0
	if dice, ok := shapes["dice"]; ok {
		if !dice.Equal(tensor.Make(tensor.Int64, 3)) {
			return fmt.Errorf("%w: the program's dice are %v", ErrSpec, dice)
		}
		delete(shapes, "dice")
	}
	if parts.Anchored(p) {
		anchors = len(names)
	}
	if state := StateNames(p); len(names) == 0 || len(shapes) != read+len(state)+anchors+len(frozen) {
		return fmt.Errorf("%w: the program has %d inputs for %d parameters", ErrSpec, len(shapes), len(names))
	}
	if (len(frozen) == 0) != s.Frozen.IsZero() {
		return fmt.Errorf("%w: the program reads %d frozen tensors, and their root is %s", ErrSpec, len(frozen),
			s.Frozen.Short())
	}
	if err := parts.CheckOutputs(p); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return nil
}

// Below is the difference by which a unit begins below the parameters of a checkpoint: the carried state, or the
// place of its replica in the checkpoint; nil for none, as where units are no replicas.
func Below(x Exchange, base *Checkpoint, unit uint32, from []*tensor.Tensor) []*tensor.Tensor {
	switch at := PairState * int(unit); {
	case x.Pairs > 0 && at < len(base.Outer):
		return base.Outer[at]
	case x.WorkersDiffer():
		return from
	}
	return nil
}
