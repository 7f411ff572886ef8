package cpu

import (
	"errors"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrStopped is returned by a run that was stopped. Its inputs are as they were before the run.
var ErrStopped = errors.New("cpu: the run was stopped")

// StopWhen makes runs stop in which stop returns true: with ErrStopped, and only while no input is written over, so
// that the run can be made again. Later it runs to its end. stop is called before each step of the plan; nil: runs
// are not stopped.
func (x *Exec) StopWhen(stop func() bool) { x.stop = stop }

// intact is the number of steps of the plan before the first that writes over an input of the caller.
func (x *Exec) intact(in, out map[string]*tensor.Tensor) int {
	given := make(map[*tensor.Tensor]bool, len(in))
	for _, t := range in {
		given[t] = true
	}
	steps := len(x.steps)
	for _, s := range x.plan.Stores {
		if s.Class == lower.InOutput && given[out[x.p.Outputs[s.Index].Name]] {
			steps = min(steps, s.Made)
		}
	}
	return steps
}
