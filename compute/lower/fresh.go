package lower

import "github.com/starling-network/starling/compute/program"

// Fresh returns a program with the same inputs, outputs and bits in which each operator that reads weights in few bits
// has them as numbers made for itself, so that these do not live from the forward pass to the backward pass. A program
// without such weights is returned as it is.
func Fresh(p *program.Program) *program.Program {
	weight, any := weights(p)
	if !any {
		return p
	}
	out := &program.Program{Numerics: p.Numerics}
	to := make([]int32, len(p.Ops))
	add := func(i int32, in []int32) int32 {
		op := p.Ops[i]
		op.In = in
		out.Ops = append(out.Ops, op)
		return int32(len(out.Ops) - 1)
	}
	var value func(v int32) int32
	value = func(v int32) int32 {
		if !weight[v] {
			return to[v]
		}
		in := make([]int32, len(p.Ops[v].In))
		for k, o := range p.Ops[v].In {
			in[k] = value(o)
		}
		return add(v, in)
	}
	for i := range p.Ops {
		if weight[i] {
			continue
		}
		in := make([]int32, len(p.Ops[i].In))
		for k, v := range p.Ops[i].In {
			in[k] = value(v)
		}
		to[i] = add(int32(i), in)
	}
	for _, o := range p.Outputs {
		out.Outputs = append(out.Outputs, program.Output{Name: o.Name, Value: value(o.Value)})
	}
	return out
}

// weights marks the operators that make numbers of codes which are inputs, and those that show their elements.
func weights(p *program.Program) (weight []bool, any bool) {
	weight = make([]bool, len(p.Ops))
	given := make([]bool, len(p.Ops)) // elements of an input
	for i := range p.Ops {
		op := &p.Ops[i]
		shows := op.Kind == program.Identity || op.Kind == program.Reshape || op.Kind.Moves()
		given[i] = op.Kind == program.Input || shows && given[op.In[0]]
		weight[i] = op.Kind == program.Dequantize && given[op.In[0]] && given[op.In[1]] || shows && weight[op.In[0]]
		any = any || weight[i]
	}
	return weight, any
}
