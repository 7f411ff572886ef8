package memory

import (
	"context"
	"os"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/role/hold"
)

// UnitReport is the memory of the first unit of a job in a process of its own.
type UnitReport struct {
	Needs uint64 `json:"needs_bytes"` // weights, gradients, moments, and the other values of a step, as planned
	State uint64 `json:"state_bytes"` // weights, and the state of the optimizer
	Start uint64 `json:"start_bytes"` // memory.Start of this process
	Peak  uint64 `json:"peak_bytes"`  // of this process
}

// Unit computes the first unit of a job in this process.
func Unit(ctx context.Context, j *job.Job) (*UnitReport, error) {
	defer memory.Pace(0)()
	start := memory.Start()
	b, err := prepare.New(j)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	exec, err := b.Spec.Compile(b.Step, kernel.Cores)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "starling-unit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b.Genesis = hold.Lay(memory.Aside{Dir: dir}, b.Genesis) // as a worker holds it
	task := prepare.TaskOf(b, exec)
	if err := task.Divide(); err != nil {
		return nil, err
	}
	if prepare.Large(b) {
		defer memory.Bare()()
	}
	from := parts.NoAnswers(task.Step)
	if _, err := task.Run(b.Genesis, 0, from, func(uint32, float32) error { return ctx.Err() }); err != nil {
		return nil, err
	}
	return &UnitReport{Needs: prepare.UnitMemory(b, exec), State: uint64(b.Size().State()), Start: start,
		Peak: memory.Peak()}, nil
}
