package cpu

import (
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
)

// PeakBytes is the memory that a Run holds: intermediate values, inputs, outputs and constants. Matrix products pack
// pieces of their operands in some further buffers, of at most a few megabytes a thread.
func (x *Exec) PeakBytes() int64 { return peakBytes(x.plan, x.steps, len(x.workers)) }

func peakBytes(pl *lower.Plan, steps []boundStep, threads int) int64 {
	scratch, _ := needs(steps)
	return pl.Bytes() + int64(scratch)*int64(threads)
}

// Memory is the peak memory of a program, in bytes: the larger one of a Run with the given threads and of a Trace. The
// program has passed program.Check.
func Memory(p *program.Program, threads int) int64 {
	pl := lower.Program(lower.Fresh(p))
	return max(lower.TracePeak(p), peakBytes(pl, bindAll(pl, elementary.Math{Version: p.Numerics}), max(threads, 1)))
}
