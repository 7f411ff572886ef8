package prepare

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
)

// ErrMemory is wrapped by why a job does not fit into the memory of this machine.
var ErrMemory = errors.New("the memory is too small")

// What processes take beside what lives of a job in them: a process of the chain and of hosts, and what the collector
// leaves (memory.Pace), in parts of what it looks after.
const (
	processMemory = 300 << 20
	garbageShare  = 8
)

// held is how many different checkpoints the parties of a process hold: the one that a round starts from, the one it
// leads to, and, of who audits, one before.
const held = 3

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

// UnitMemory is what a unit is computed in: weights, moments and gradients, and all other values of a step.
func UnitMemory(b *CompiledJob, exec *cpu.Exec) uint64 {
	need := exec.PeakBytes()
	for _, o := range b.Step.Outputs {
		if exec.Shares(o.Name, o.Name) {
			need -= int64(b.Step.Ops[o.Value].Out.Bytes())
		}
	}
	return uint64(need)
}

// Memory is what so many parties of a process take of which no more than so many compute a unit at a time: the units,
// each with its update; the updates of a round, which one party at a time decodes; the checkpoints that they hold, and
// what they share.
func Memory(b *CompiledJob, exec *cpu.Exec, parties int) uint64 {
	params, turns := uint64(b.ParameterBytes()), uint64(min(parties, kernel.Cores))
	state, _ := outer.State(b.Exchange()) // what is wrong with the exchange is said where it is checked
	need := turns*(UnitMemory(b, exec)+params) + uint64(b.Spec.Units)*params + held*params*uint64(1+state)
	return processMemory + need + need/garbageShare
}

// TrainingFits refuses a job of which the units that are computed at a time take more than the memory that is free,
// before one begins.
func (b *CompiledJob) TrainingFits() error {
	available, _, ok := memory.Available()
	if !ok {
		return nil
	}
	exec, err := b.Spec.Compile(b.Step, 1)
	if err != nil {
		return err
	}
	turns := min(uint64(b.Spec.Units), uint64(kernel.Cores))
	if need := UnitMemory(b, exec)*turns + uint64(b.ParameterBytes()); need > available {
		return fmt.Errorf("%w: %d workers at work take %d MiB at least, and %d MiB are free", ErrMemory, turns, need>>20,
			available>>20)
	}
	return nil
}
