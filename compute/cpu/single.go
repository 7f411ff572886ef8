package cpu

import (
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/tensor"
)

// Steps computes single steps of a plan, on memory of the caller's: for a device that has no kernel for them. It is for
// one goroutine at a time.
type Steps struct{ x *Exec }

// StepsOf returns the steps of a plan, on up to the given number of threads.
func StepsOf(pl *lower.Plan, threads int) *Steps {
	x := &Exec{p: pl.Program, plan: pl, workers: make([]worker, max(threads, 1))}
	x.steps = bindAll(pl, elementary.Math{Version: pl.Program.Numerics})
	return &Steps{x}
}

// Run computes step i. memory has, by store, the bytes of all that the step reads and writes. Errors wrap
// program.ErrIndex.
func (s *Steps) Run(i int, memory [][]byte) error {
	st := s.x.steps[i]
	s.x.memory = memory
	for k := range s.x.workers {
		s.x.workers[k] = worker{tensor.Alloc(st.scratch), make([][]byte, st.registers), make([][]byte, maxLaneOperands)}
	}
	err := st.run(s.x)
	s.x.memory = nil
	clear(s.x.workers)
	return err
}
