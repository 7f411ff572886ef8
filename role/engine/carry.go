package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/hold"
)

// maxStates is how many states that units hand on stay in memory.
const maxStates = 4

// BadCarriedState says that what was handed on to a unit is not what its rounds before lead to: an execution of them
// finds another state than was committed to in Round. Nobody need have the committed one.
type BadCarriedState struct{ Round, Unit uint32 }

// Error implements error.
func (w *BadCarriedState) Error() string {
	return fmt.Sprintf("engine: what unit %d hands on from round %d is not what was committed to", w.Unit, w.Round)
}

// Follow tells the engine how the run stands: what is handed on to units, and by which rounds.
func (e *Engine) Follow(s run.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stands = s
}

// lap returns the round that starts from a checkpoint.
func (e *Engine) lap(base terms.Checkpoint) (run.State, work.RoundState, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, ok := e.stands.At(base.Round)
	return e.stands, l, ok && l.Base == base
}

// From returns what is handed on to a unit of the round after a checkpoint, the zero value for nothing.
func (e *Engine) From(base terms.Checkpoint, unit uint32) (work.HandedState, error) {
	if base.Round == 0 || !e.task.Spec.Carries(base.Round-1) {
		return work.HandedState{}, nil
	}
	_, l, ok := e.lap(base)
	if !ok || l.Starts(unit).Root.IsZero() {
		return work.HandedState{}, fmt.Errorf(
			"engine: it is not known what is handed on to unit %d of round %d",
			unit,
			base.Round,
		)
	}
	return l.Starts(unit), nil
}

// Needs reports whether an execution of a unit to the end of a segment, or (0) of all of it, depends on what is handed
// on to the unit.
func (e *Engine) Needs(segment uint32) bool { return segment == 0 || e.task.Spec.Exchange.GoesOn() }

// origin is the root of what such an execution starts from beside its checkpoint.
func (e *Engine) origin(base terms.Checkpoint, unit, segment uint32) (canon.Digest, error) {
	if !e.Needs(segment) {
		return canon.Digest{}, nil
	}
	from, err := e.From(base, unit)
	return from.Root, err
}

// Origin returns the tensors that are handed on to a unit, which Start has brought to memory; nil for nothing.
func (e *Engine) Origin(base terms.Checkpoint, unit uint32) ([]*tensor.Tensor, error) {
	tensors, _, err := origin(e, base, unit)
	return tensors, err
}

// origin is Engine.Origin, and reports whether nobody else has these tensors.
func origin(e *Engine, base terms.Checkpoint, unit uint32) (tensors []*tensor.Tensor, own bool, err error) {
	from, err := e.From(base, unit)
	if err != nil || from.Root.IsZero() {
		return nil, false, err
	}
	if s := e.state(from.Root); s != nil {
		return s.Get()
	}
	return nil, false, fmt.Errorf("engine: what is handed on to unit %d of round %d is not held", unit, base.Round)
}

// state returns a state in memory.
func (e *Engine) state(root canon.Digest) *hold.Tensors {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.states, func(s handed) bool { return s.root == root })
	if i < 0 {
		return nil
	}
	used := e.states[i]
	e.states = append(slices.Delete(e.states, i, i+1), used)
	return used.Tensors
}

// handed is a state that a unit hands on.
type handed struct {
	root canon.Digest
	*hold.Tensors
}

func (e *Engine) keep(root canon.Digest, tensors []*tensor.Tensor) {
	s := handed{root, e.computing.Shared.State(root, tensors, e.aside)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.states = slices.DeleteFunc(e.states, func(o handed) bool { return o.root == s.root })
	e.states = append(e.states, s)
	e.states = slices.Delete(e.states, 0, max(0, len(e.states)-maxStates))
}

// Start sees to it that what is handed on to a unit of the round after a checkpoint is in memory: from the store, from
// the holders, or, if that is not nil and none of them has it, by executing the unit of the rounds before, as far back
// as need be: the first round of a group starts from nothing. If that leads to another state the error is a
// *BadCarriedState.
func (e *Engine) Start(ctx context.Context, base terms.Checkpoint, unit uint32, holders []string) error {
	from, err := e.From(base, unit)
	if err != nil || from.Root.IsZero() || e.state(from.Root) != nil {
		return err
	}
	tensors, err := e.fetchState(ctx, from, holders)
	if err == nil {
		e.keep(from.Root, tensors)
		return nil
	}
	if holders == nil || ctx.Err() != nil {
		return err
	}
	s, l, _ := e.lap(base)
	before, ok := s.Before(l)
	if !ok {
		return fmt.Errorf("engine: what is handed on to unit %d of round %d cannot be had, and the round before is "+
			"closed: %w", unit, base.Round, err)
	}
	if err := e.Start(ctx, before.Base, unit, holders); err != nil {
		return err
	}
	if err := e.Load(ctx, before.Base, holders); err != nil {
		return err
	}
	w, err := e.Train(ctx, before.Base, unit)
	switch {
	case err != nil:
		return err
	case w.Commit.HandedState.Root != from.Root:
		return &BadCarriedState{before.Round, unit}
	}
	return nil
}

// fetchState reads a state from its blobs, and verifies its root.
func (e *Engine) fetchState(ctx context.Context, name work.HandedState, holders []string) ([]*tensor.Tensor, error) {
	id, err := blob.Parse(name.CID)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return e.peers.Fetch(ctx, id, holders) }
	_, tensors, err := checkpoint.Load(ctx, get, e.peers.Each, id)
	if err != nil {
		return nil, err
	}
	x, step := e.task.Spec.Exchange, e.task.Step
	names, shapes := train.HandedOn(x, step), train.HandedShapes(x, step)
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

// shelf collects blobs.
type shelf struct {
	aside hold.Aside
	blobs []hold.Blob
}

func (s *shelf) Put(_ context.Context, data []byte) (blob.CID, error) {
	s.blobs = append(s.blobs, hold.PutBlob(s.aside, data))
	return blob.Of(data), nil
}

// handOn names a state that a unit hands on, and makes its blobs.
func (e *Engine) handOn(round, unit uint32, state []*tensor.Tensor) (work.HandedState, []hold.Blob, error) {
	names, tensors := train.HandedOn(e.task.Spec.Exchange, e.task.Step), map[string]*tensor.Tensor{}
	for i, n := range names {
		tensors[n] = state[i]
	}
	root := train.CarriedRoot(train.Roots(state))
	blobs := shelf{aside: e.aside}
	id, err := checkpoint.Save(context.Background(), &blobs,
		checkpoint.Manifest{Job: e.terms.Job, Round: round + 1, StateRoot: root}, names, tensors)
	if err != nil {
		return work.HandedState{}, nil, err
	}
	e.keep(root, state)
	return work.HandedState{Root: root, CID: id.String()}, blobs.blobs, nil
}
