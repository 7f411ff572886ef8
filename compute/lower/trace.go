package lower

import (
	"math"

	"github.com/starling-network/starling/compute/program"
)

// TracePeak is the memory of a Trace in bytes: the largest sum of the values that are alive at once, plus the copies
// of an operator's operands that it may make to read them, or the copy of its result whose bits are made canonical.
// Inputs and constants stay.
func TracePeak(p *program.Program) int64 {
	last := make([]int, len(p.Ops))
	for i := range p.Ops {
		last[i] = i
		for _, v := range p.Ops[i].In {
			last[v] = i
		}
	}
	dies := make([][]int, len(p.Ops))
	for v, i := range last {
		dies[i] = append(dies[i], v)
	}
	size := func(v int) int64 { return int64(p.Ops[v].Out.Bytes()) }
	var now, peak int64
	for i := range p.Ops {
		var operands int64
		for _, v := range p.Ops[i].In {
			operands = saturatingAdd(operands, size(int(v)))
		}
		now = saturatingAdd(now, size(i))
		peak = max(peak, saturatingAdd(now, max(operands, size(i))))
		for _, v := range dies[i] {
			if k := p.Ops[v].Kind; k != program.Input && k != program.Constant {
				now -= size(v)
			}
		}
	}
	return peak
}

func saturatingAdd(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}
