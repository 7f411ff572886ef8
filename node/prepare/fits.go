package prepare

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/role/bundle"
)

// ErrMemory is wrapped by why a job does not fit into the memory of this machine.
var ErrMemory = errors.New("the memory is too small")

// processMemory is that of the chain and the hosts.
const processMemory = 300 << 20

// large is from how many bytes of weights on a job is Large.
const large = 32 << 20

// Large reports whether the weights of a job, trained and frozen, are so large that its units are computed one at a
// time in a process, on all processors, and that its process is memory.Tight.
func Large(b *CompiledJob) bool { return b.Size().Parameters()+b.Size().Frozen() >= large }

// Turns are how many units of a job are computed at a time in one process, and how many threads each has.
func Turns(b *CompiledJob) (units, threads int) {
	if Large(b) {
		return 1, kernel.Cores
	}
	return kernel.Cores, 1
}

// HeldCheckpoints is how many different checkpoints the parties of a process hold: the one that a round starts from,
// the one it leads to, and, of a verifier, the one before.
const HeldCheckpoints = 3

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
	return b.Job.Refuse(at, problem.TooLarge, "the model does not fit into the memory of this machine",
		fmt.Errorf("it has %d parameters, of which the first checkpoint takes %d MiB, and %d MiB are free", count, need>>20,
			available>>20), fix)
}

// UnitMemory is the memory of a unit: weights, moments and gradients, and all other values of a step.
func UnitMemory(b *CompiledJob, exec *cpu.Exec) uint64 {
	return uint64(pass.StepBytes(exec, b.Step))
}

// evalMemory is what a checkpoint that is held is evaluated in.
func evalMemory(b *CompiledJob) (uint64, error) {
	if b.Corpus.Val.Len() == 0 {
		return 0, nil
	}
	_, threads := Turns(b)
	exec, err := cpu.Compile(b.Eval, threads)
	if err != nil {
		return 0, err
	}
	return uint64(max(0, exec.PeakBytes()-b.Size().Frozen()-b.Size().Parameters())), nil
}

// Memory is the number of bytes that parties of a process take, of which at most Turns compute a unit at a time: the
// units, each with its update; the states that last units have reached, and checkpoints, of which large ones lie in
// files; the updates of a round, which one party at a time decodes; an evaluation; the data that each has read; and the
// parts that they share, frozen tensors apart. One party of stages, which are computed at a time, takes StageMemory.
func Memory(b *CompiledJob, exec *cpu.Exec, parties int) (uint64, error) {
	if b.Spec.Pipeline != nil && parties == 1 {
		stage, err := bundle.Planned(b.Spec, b.Step, b.Manifest).StageMemory(1, false)
		return uint64(stage), err
	}
	units, _ := Turns(b)
	params, frozen, turns := uint64(b.Size().Parameters()), uint64(b.Size().Frozen()), uint64(min(parties, units))
	state, _ := outer.State(b.Exchange()) // what is wrong with the exchange is said where it is checked
	need := turns*(UnitMemory(b, exec)-frozen+params) + uint64(b.Spec.Units)*params
	if b.Spec.Pipeline != nil {
		m, err := bundle.StagesMemory(b.Spec, b.Step, 1)
		if err != nil {
			return 0, err
		}
		need = uint64(m.Together(int64(b.Spec.Unsplit().Units)))
	}
	checkpoints := HeldCheckpoints * params * uint64(1+state)
	if params*uint64(1+state) >= memory.LeastRoom {
		checkpoints = params // the pages of the one that is read; the rest of them lie in files
	}
	eval, err := evalMemory(b)
	if err != nil {
		return 0, err
	}
	need += checkpoints + eval + uint64(parties)*uint64(bundle.DataMemory(b.Spec, b.Manifest))
	switch state := uint64(b.Size().State()); {
	case b.Spec.Pipeline == nil && state < memory.LeastAside:
		need += uint64(parties) * state // the end of its last unit
	case Large(b) && parties > units: // the end of a unit is moved out of memory while the next one is computed
		need += state
	}
	garbage := need / memory.GarbageShare
	if Large(b) {
		garbage = min(garbage, memory.TightGarbage) // it is memory.Tight
	}
	return processMemory + frozen + need + garbage, nil
}
