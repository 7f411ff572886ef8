package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/hold"
)

// maxStates is the number of carried states that stay in memory.
const maxStates = 4

// heldAnswers is the number of answers that stay in memory: one for each step of some units that learn at once.
func heldAnswers(s *train.Spec) int { return max(256, 4*len(s.Apart().ReadsAll(0))) }

// states holds in memory the states that units carry, gets those that it does not hold from peers, and knows from the
// run which unit starts from which of them.
type states struct {
	task   *train.Task
	peers  Peers
	job    string
	shared *hold.Shared
	aside  hold.Aside // nil: all stays in memory
	held   hold.Recent[canon.Digest, *hold.Tensors]

	mu     sync.Mutex
	stands run.State // the run, as Follow was called last
}

// Follow gives the engine the state of the run: the carried states of units, and the rounds that made them.
func (x *states) Follow(s run.State) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stands = s
}

// round returns the round that starts from a checkpoint.
func (x *states) round(base terms.Checkpoint) (run.State, work.RoundState, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.stands.At(base.Round)
	return x.stands, l, ok && l.Base == base
}

// From returns the name of the carried state of a unit of the round after a checkpoint, the zero value for none.
func (x *states) From(base terms.Checkpoint, unit uint32) (work.HandedState, error) {
	s := x.task.Spec
	if !train.IsGiven(s) && (base.Round == 0 || !s.Carries(base.Round-1)) || s.Rollout != nil && unit >= s.Units {
		return work.HandedState{}, nil
	}
	_, l, ok := x.round(base)
	if !ok || l.Starts(unit).Root.IsZero() {
		return work.HandedState{}, fmt.Errorf("engine: the carried state of unit %d of round %d is not known", unit,
			base.Round)
	}
	return l.Starts(unit), nil
}

// Needs reports whether an execution of a unit to the end of a segment, or (0) of all of it, depends on the state
// carried to the unit.
func (x *states) Needs(segment uint32) bool {
	return segment == 0 || train.DependsOnCarry(x.task.Spec) || x.task.Spec.Pipeline != nil
}

// origin is the root of the carried state that such an execution starts from.
func (x *states) origin(base terms.Checkpoint, unit, segment uint32) (canon.Digest, error) {
	if !x.Needs(segment) {
		return canon.Digest{}, nil
	}
	if x.task.Spec.Pipeline != nil {
		return x.exchanged(base, unit), nil
	}
	from, err := x.From(base, unit)
	return from.Root, err
}

// exchanged binds what a stage of a replica has exchanged, by the commitment to its unit.
func (x *states) exchanged(base terms.Checkpoint, unit uint32) canon.Digest {
	if _, l, ok := x.round(base); ok && uint64(unit) < uint64(len(l.Units)) {
		return l.Units[unit].Commit.HandedState.Root
	}
	return canon.Digest{}
}

// Origin returns the carried state of a unit, which Start has brought to memory; nil for none.
func (x *states) Origin(base terms.Checkpoint, unit uint32) ([]*tensor.Tensor, error) {
	tensors, _, err := x.tensors(base, unit)
	return tensors, err
}

// tensors is Origin, and reports whether no other party of the process has these tensors.
func (x *states) tensors(base terms.Checkpoint, unit uint32) (tensors []*tensor.Tensor, own bool, err error) {
	return x.without(0, base, unit)
}

// without is tensors, with nil in place of the first n of a carried state.
func (x *states) without(n int, base terms.Checkpoint, unit uint32) (tensors []*tensor.Tensor, own bool, err error) {
	if x.task.Spec.Rollout != nil {
		tensors, err = x.answers(base, unit)
		return tensors, false, err
	}
	s, err := x.carried(base, unit)
	if s == nil || err != nil {
		return nil, false, err
	}
	return s.Without(n)
}

// residual is the first part of the carried state of a unit, with a tensor for each parameter; nil for none.
func (x *states) residual(base terms.Checkpoint, unit uint32) ([]*tensor.Tensor, error) {
	s, err := x.carried(base, unit)
	if s == nil || err != nil {
		return nil, err
	}
	return s.First(len(train.Params(x.task.Step)))
}

// carried is the carried state of a unit of the round after a checkpoint, which is held; nil for none.
func (x *states) carried(base terms.Checkpoint, unit uint32) (*hold.Tensors, error) {
	from, err := x.From(base, unit)
	if err != nil || from.Root.IsZero() {
		return nil, err
	}
	if s, ok := x.held.Get(from.Root); ok {
		return s, nil
	}
	return nil, fmt.Errorf("engine: the carried state of unit %d of round %d is not held", unit, base.Round)
}

// keep holds a state, and forgets the one that was not used for the longest time.
func (x *states) keep(root canon.Digest, tensors []*tensor.Tensor) {
	x.held.Put(root, x.shared.State(root, tensors, x.aside))
}

// passing are the rules and the step of the units that pass on a state.
func (x *states) passing() (train.Exchange, *program.Program) {
	of := x.task.Of(x.task.Spec.Units)
	return of.Spec.Exchange, of.Step
}

// fetchState reads a state from the blobs of its holders, and verifies its root.
func (x *states) fetchState(ctx context.Context, name work.HandedState, holders []string) ([]*tensor.Tensor, error) {
	return x.loadState(ctx, name,
		func(ctx context.Context, id blob.CID) ([]byte, error) { return x.peers.Fetch(ctx, id, holders) })
}

// loadState reads a state from its blobs, and verifies its root.
func (x *states) loadState(ctx context.Context, name work.HandedState, get checkpoint.Getter) ([]*tensor.Tensor,
	error) {
	id, err := blob.Parse(name.CID)
	if err != nil {
		return nil, err
	}
	_, tensors, err := checkpoint.Load(ctx, get, x.peers.Each, id)
	if err != nil {
		return nil, err
	}
	exchange, step := x.passing()
	names, shapes := bundle.Begun(x.task.Spec, exchange, step)
	state := make([]*tensor.Tensor, len(names))
	for i, n := range names {
		if state[i] = tensors[n]; state[i] == nil || !state[i].Shape.Equal(shapes[i]) {
			return nil, fmt.Errorf("engine: the blob %s has no tensor %q of shape %v", name.CID, n, shapes[i])
		}
	}
	if root := train.CarriedRoot(train.Roots(state)); root != name.Root {
		return nil, fmt.Errorf("engine: the blob %s is the state %s, wanted %s", name.CID, root.Short(), name.Root.Short())
	}
	return state, nil
}

// blobCollector collects blobs.
type blobCollector struct {
	aside hold.Aside
	blobs []hold.Blob
}

func (s *blobCollector) Put(_ context.Context, data []byte) (blob.CID, error) {
	s.blobs = append(s.blobs, hold.PutBlob(s.aside, data))
	return blob.Of(data), nil
}

// handOn names a state that a unit carries, and makes its blobs.
func (x *states) handOn(round, unit uint32, state []*tensor.Tensor) (work.HandedState, []hold.Blob, error) {
	names, tensors := train.CarriedNames(x.passing()), map[string]*tensor.Tensor{}
	for i, n := range names {
		tensors[n] = state[i]
	}
	root := train.CarriedRoot(train.Roots(state))
	blobs := blobCollector{aside: x.aside}
	id, err := checkpoint.Save(context.Background(), &blobs,
		checkpoint.Manifest{Job: x.job, Round: round + 1, StateRoot: root}, names, tensors)
	if err != nil {
		return work.HandedState{}, nil, err
	}
	x.keep(root, state)
	return work.HandedState{Root: root, CID: id.String()}, blobs.blobs, nil
}
