package lower

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Fresh returns a program with the same inputs, outputs and bits in which each operator that reads weights in few bits,
// or bfloat16, has them as float32 made for itself, so that this does not live from the forward pass to the backward
// pass. A program without any is returned as it is, and so is one that this would make far longer.
func Fresh(p *program.Program) *program.Program {
	weight, any := weights(p)
	if !any || !bounded(p, weight) {
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

// growth is how many times the operators of a program its fresh form may have. Those of models have less than three.
const growth = 8

// bounded reports whether the fresh form of a program has at most growth times its operators, and values of at most
// program.MaxSum bytes in sum. A stranger's program can double it with each operator.
func bounded(p *program.Program, weight []bool) bool {
	most := growth * len(p.Ops)
	ops, bytes := make([]int, len(p.Ops)), make([]int, len(p.Ops)) // of making a value once for a reader
	var allOps, allBytes int
	for i := range p.Ops {
		op := &p.Ops[i]
		n, b := 1, op.Out.Bytes()
		for _, v := range op.In {
			if n, b = n+ops[v], b+bytes[v]; n > most || b > program.MaxSum {
				return false
			}
		}
		if weight[i] {
			ops[i], bytes[i] = n, b
			continue
		}
		if allOps, allBytes = allOps+n, allBytes+b; allOps > most || allBytes > program.MaxSum {
			return false
		}
	}
	for _, o := range p.Outputs {
		allOps, allBytes = allOps+ops[o.Value], allBytes+bytes[o.Value]
		if allOps > most || allBytes > program.MaxSum {
			return false
		}
	}
	return true
}

// weights marks the operators that make numbers of codes, inputs of few bits, and of inputs and constants alone; and
// those that make float32 of bfloat16, that show elements of it, and that round an input to it.
func weights(p *program.Program) (weight []bool, any bool) {
	weight = make([]bool, len(p.Ops))
	coded, wide := make([]bool, len(p.Ops)), make([]bool, len(p.Ops))
	given := make([]bool, len(p.Ops)) // elements of an input or a constant
	for i := range p.Ops {
		op := &p.Ops[i]
		given[i] = op.Kind == program.Input || op.Kind == program.Constant || op.Kind.Views() && given[op.In[0]]
		if op.Kind == program.Input {
			coded[i] = op.Out.DType == tensor.Int8 || op.Out.DType == tensor.Uint8
			continue
		}
		of, convert := false, op.Kind == program.Convert
		for _, v := range op.In {
			of = of || coded[v]
		}
		for _, v := range op.In {
			of = of && (coded[v] || given[v])
		}
		coded[i] = of && !op.Kind.Multiplies()
		wide[i] = convert && op.Out.DType == tensor.Float32 && p.Ops[op.In[0]].Out.DType == tensor.BFloat16 ||
			op.Kind.Views() && wide[op.In[0]]
		weight[i] = coded[i] || wide[i] || convert && op.Out.DType == tensor.BFloat16 && given[op.In[0]]
		any = any || weight[i]
	}
	return weight, any
}
