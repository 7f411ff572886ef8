package engine

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// BadCarriedState says that the carried state of a unit does not follow from the rounds before: their execution finds
// another state than the one committed to in Round. The committed state may not exist anywhere.
type BadCarriedState struct{ Round, Unit uint32 }

// Error implements error.
func (w *BadCarriedState) Error() string {
	return fmt.Sprintf("engine: the state that unit %d carries from round %d is not the committed one", w.Unit, w.Round)
}

// Start brings the carried state of a unit of the round after a checkpoint to memory: from the store, from
// the holders, or, if that is not nil and none of them has it, by executing the unit of the rounds before, as far back
// as need be: the first round of a group starts from nothing. If that leads to another state the error is a
// *BadCarriedState.
func (e *Engine) Start(ctx context.Context, base terms.Checkpoint, unit uint32, holders []string) error {
	if e.task.Spec.Rollout != nil {
		return gather(ctx, e, base, unit, holders)
	}
	from, err := e.From(base, unit)
	if err != nil || from.Root.IsZero() {
		return err
	}
	if _, ok := e.states.held.Get(from.Root); ok {
		return nil
	}
	tensors, err := e.fetchState(ctx, from, holders)
	if err == nil {
		e.keep(from.Root, tensors)
		return nil
	}
	switch {
	case holders == nil || ctx.Err() != nil:
		return err
	case e.task.Spec.Led:
		return fmt.Errorf("%w: %w", bundle.ErrNoData, err)
	}
	s, l, _ := e.round(base)
	before, ok := s.Before(l)
	if !ok {
		return fmt.Errorf("engine: the carried state of unit %d of round %d cannot be had, and the round before is "+
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
