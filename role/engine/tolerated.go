package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Tolerated is an engine that computes the units of its worker on another executor, as far as the run tolerates it. All
// else it does with the kernels: units that have to be exact (an attempt after a withheld one, or any unit of an exact
// run), audits of others, and the units that the executor fails at.
type Tolerated struct {
	*Engine
	On     train.Executor
	Failed func(unit uint32, err error) // called for every unit that the executor failed at, before the kernels compute it
}

// errDiverged is why a unit that diverged on an executor is computed again: that it diverges is settled by its exact
// states.
var errDiverged = errors.New("engine: the unit diverged on the executor")

// Train computes a unit of the current round.
func (t Tolerated) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*Work, error) {
	if s, l, ok := t.round(name); !ok || int(unit) >= len(l.Units) || !s.Tolerant(*l.Units[unit]) {
		return t.Engine.Train(ctx, name, unit)
	}
	w, err := t.trainOn(ctx, name, unit)
	if err == nil || ctx.Err() != nil || errors.Is(err, data.ErrBatch) {
		return w, err
	}
	t.Failed(unit, err)
	return t.Engine.Train(ctx, name, unit)
}

func (t Tolerated) trainOn(ctx context.Context, name terms.Checkpoint, unit uint32) (*Work, error) {
	base, err := t.Base(name)
	if err != nil {
		return nil, err
	}
	t.computing.Lock()
	defer t.computing.Unlock()
	r, err := t.task.RunOn(t.On, base, unit, func(uint32, float32) error { return ctx.Err() })
	switch {
	case err != nil:
		return nil, err
	case r.Diverged != nil:
		return nil, fmt.Errorf("%w: %w", errDiverged, r.Diverged)
	}
	return t.NewWork(name, unit, r)
}
