package prepare

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
)

// ErrMemory is wrapped by why a job does not fit into the memory of this machine.
var ErrMemory = errors.New("the memory is too small")

// What is known of memory beside what lives at a step: the collector lets garbage double it, and an embedded network
// has a chain, hosts and stores. The quickstart, of which four workers and a verifier take 1.6 GB, is the measure.
const (
	Collected      = 2
	EmbeddedMemory = 256 << 20
)

const BytesOfWeight = 4

// beginningFits refuses a model of which the first checkpoint alone is larger than the memory that is free, before
// anything of it is made. It is arithmetic: a wrong digit costs an error, and not a machine that stands still.
func beginningFits(b *CompiledJob) error {
	available, _, ok := memory.Available()
	return b.BeginningIn(available, ok)
}

func (b *CompiledJob) BeginningIn(available uint64, known bool) error {
	state, err := outer.State(b.Exchange())
	if err != nil || !known {
		return nil // what is wrong with the exchange is said where it is checked
	}
	count := b.Model.Parameters()
	need := uint64(count) * BytesOfWeight
	if !b.adapted() { // else the outer optimizer moves the adapter alone
		need *= uint64(1 + state)
	}
	if need <= available {
		return nil
	}
	at, fix := "model.config", "use a smaller model, or a machine with more memory"
	if b.Job.Model.BaseModel != "" {
		at = "model.base_model"
	}
	return problem(b.Job, at, job.CodeTooLarge, "the model does not fit into the memory of this machine",
		fmt.Errorf("it has %d parameters, of which the first checkpoint takes %d MiB, and %d MiB are free", count, need>>20,
			available>>20), fix)
}

// LeastMemory is what a worker takes at least: the values of a step, and the checkpoint that the unit began from.
func (b *CompiledJob) LeastMemory(exec *cpu.Exec) uint64 {
	return uint64(exec.PeakBytes()) + uint64(b.ParameterBytes())
}

// TrainingFits refuses a job of which all workers at work take more than the memory that is free, before one begins.
func (b *CompiledJob) TrainingFits() error {
	available, _, ok := memory.Available()
	if !ok {
		return nil
	}
	exec, err := b.Spec.Compile(b.Step, 1)
	if err != nil {
		return err
	}
	if need := b.LeastMemory(exec) * uint64(b.Spec.Units); need > available {
		return fmt.Errorf("%w: %d workers at work take %d MiB at least, and %d MiB are free", ErrMemory, b.Spec.Units,
			need>>20, available>>20)
	}
	return nil
}
