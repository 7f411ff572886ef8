// Package reorder moves operators of a program, so that fewer of its values are kept at the same time. It changes no
// bit of a result, and takes no operator away.
package reorder

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/compute/program"
)

// Soon returns the program with some operators moved to where their last operand is made, so that their operands need
// not be kept until later. Results have the same bits. The program must have passed the checks of Finish.
func Soon(p *program.Program, values []program.Value) *program.Program {
	if len(values) == 0 {
		return p
	}
	moved := make([]bool, len(p.Ops))
	for _, v := range values {
		moved[v] = true
	}
	after := make([][]int, len(p.Ops)) // by operator: those that are moved there
	when := make([]int, len(p.Ops))    // the operator that stays at which each is computed
	for i := range p.Ops {
		when[i] = i
		if moved[i] = moved[i] && len(p.Ops[i].In) > 0; !moved[i] {
			continue
		}
		last := slices.MaxFunc(p.Ops[i].In, func(a, b int32) int {
			return cmp.Or(cmp.Compare(when[a], when[b]), cmp.Compare(a, b))
		})
		when[i], after[last] = when[last], append(after[last], i)
	}
	out := &program.Program{Numerics: p.Numerics, Ops: make([]program.Operator, 0, len(p.Ops))}
	to := make([]int32, len(p.Ops))
	var add func(i int)
	add = func(i int) {
		op := p.Ops[i]
		in := make([]int32, len(op.In))
		for k, v := range op.In {
			in[k] = to[v]
		}
		op.In, to[i] = in, int32(len(out.Ops))
		out.Ops = append(out.Ops, op)
		for _, later := range after[i] {
			add(later)
		}
	}
	for i := range p.Ops {
		if !moved[i] {
			add(i)
		}
	}
	for _, o := range p.Outputs {
		out.Outputs = append(out.Outputs, program.Output{Name: o.Name, Value: to[o.Value]})
	}
	return out
}
