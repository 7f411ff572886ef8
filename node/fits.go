package node

import (
	"fmt"

	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
)

// trainingFits refuses a job of which the units that are computed at a time take more than the memory that is free,
// before one begins. All stages of a model are computed at the same time.
func trainingFits(b *prepare.CompiledJob) error {
	available, _, ok := memory.Available()
	if !ok {
		return nil
	}
	exec, err := b.Spec.Compile(b.Step, 1)
	if err != nil {
		return err
	}
	units, _ := prepare.Turns(b)
	turns, frozen := uint64(b.Spec.Unsplit().Units), uint64(b.Size().Frozen())
	if b.Spec.Pipeline == nil {
		turns = min(turns, uint64(units))
	}
	need := frozen + (prepare.UnitMemory(b, exec)-frozen)*turns + uint64(b.Size().Parameters())
	if need > available {
		return fmt.Errorf("%w: %d workers at work take %d MiB at least, and %d MiB are free", prepare.ErrMemory, turns,
			need>>20, available>>20)
	}
	return nil
}
