package program

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// Simplify returns a program with the same inputs, outputs and bits, without what is not needed: values computed twice,
// values that no output depends on, and operators that change nothing. Inputs stay, even unused ones. The program must
// have passed the checks of Finish or Verify.
func (p *Program) Simplify() *Program {
	s := simplifier{out: &Program{Numerics: p.Numerics}, to: make([]int32, len(p.Ops)), seen: map[canon.Digest]int32{}}
	for i := range p.Ops {
		s.to[i] = s.add(&p.Ops[i])
	}
	for _, o := range p.Outputs {
		s.out.Outputs = append(s.out.Outputs, Output{Name: o.Name, Value: s.to[o.Value]})
	}
	return s.out.prune(true)
}

// Only returns the part of a program that some of its outputs need, with the inputs that they need and the same bits.
// The program must have passed the checks of Finish or Verify.
func (p *Program) Only(outputs ...string) *Program {
	part := &Program{Numerics: p.Numerics, Ops: p.Ops}
	for _, o := range p.Outputs {
		if slices.Contains(outputs, o.Name) {
			part.Outputs = append(part.Outputs, o)
		}
	}
	return part.prune(false)
}

type simplifier struct {
	out  *Program
	to   []int32 // by value of the old program: value of the new one
	seen map[canon.Digest]int32
}

// add returns the value in the new program of an operator of the old one.
func (s *simplifier) add(op *Operator) int32 {
	c := *op
	c.In = make([]int32, len(op.In))
	for i, v := range op.In {
		c.In[i] = s.to[v]
	}
	if v := s.operand(&c); v >= 0 {
		return v
	}
	key := canon.Hash("starling/operator", c)
	if v, ok := s.seen[key]; ok && c.Kind != Input {
		return v
	}
	s.out.Ops = append(s.out.Ops, c)
	v := int32(len(s.out.Ops) - 1)
	s.seen[key] = v
	return v
}

// operand returns an operand with the value of the operator, -1 if there is none. It may shorten chains of movement.
func (s *simplifier) operand(op *Operator) int32 {
	for (op.Kind == Reshape || op.Kind == Transpose) && s.out.Ops[op.In[0]].Kind == op.Kind {
		inner := &s.out.Ops[op.In[0]]
		if op.Kind == Transpose {
			perm := make([]int64, len(op.Ints))
			for i, a := range op.Ints {
				perm[i] = inner.Ints[a]
			}
			op.Ints = perm
		}
		op.In[0] = inner.In[0]
	}
	if len(op.In) == 0 {
		return -1
	}
	x := s.out.Ops[op.In[0]].Out
	same := x.Equal(op.Out)
	switch op.Kind {
	case Identity:
	case Reshape, Convert, Slice, Concat:
		if !same || len(op.In) > 1 {
			return -1
		}
	case Transpose, Broadcast:
		if !same || !slices.IsSorted(op.Ints) {
			return -1
		}
	case Reverse:
		if slices.ContainsFunc(op.Ints, func(a int64) bool { return x.Dims[a] > 1 }) {
			return -1
		}
	case ReduceSum, ReduceMax, ReduceMin:
		// Summing one element turns -0 into +0; the extremum of one element is that element.
		if op.Kind == ReduceSum && x.DType == tensor.Float32 || !same {
			return -1
		}
	default:
		return -1
	}
	return op.In[0]
}

// prune drops the operators that no output needs, of inputs only if not all are kept.
func (p *Program) prune(allInputs bool) *Program {
	live := p.Live()
	out := &Program{Numerics: p.Numerics}
	to := make([]int32, len(p.Ops))
	for i, op := range p.Ops {
		if !live[i] && !(allInputs && op.Kind == Input) {
			continue
		}
		in := make([]int32, len(op.In))
		for k, v := range op.In {
			in[k] = to[v]
		}
		op.In = in
		to[i] = int32(len(out.Ops))
		out.Ops = append(out.Ops, op)
	}
	for _, o := range p.Outputs {
		out.Outputs = append(out.Outputs, Output{Name: o.Name, Value: to[o.Value]})
	}
	return out
}
