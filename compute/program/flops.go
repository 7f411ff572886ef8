package program

import "math/bits"

// Work bounds the time of one run: the larger of the operations and the elements moved, over all operators. It
// saturates.
func (p *Program) Work() uint64 {
	var sum uint64
	for i := range p.Ops {
		op := &p.Ops[i]
		n := uint64(op.Out.Elements())
		for _, v := range op.In {
			n = max(n, uint64(p.Ops[v].Out.Elements()))
		}
		sum = saturatingSum(sum, max(n, p.flops(op)))
	}
	return sum
}

func saturatingSum(x, y uint64) uint64 {
	n, carry := bits.Add64(x, y, 0)
	if carry != 0 {
		return 1<<64 - 1
	}
	return n
}

// Flops is the number of floating-point operations of one run, an upper bound for integers: 2 for each multiply-add of
// a product, or of attention where a query sees the key, 10 for each element of an Adam operator or an activation, 4
// for each logit of a CrossEntropy or its gradient, 2 for each element of Quantize or Dequantize, the bound of its cost
// for each reward, 1 for each element of other elementwise operators and reductions, none for movement. It saturates.
// The program must have passed Verify.
func (p *Program) Flops() uint64 {
	var sum uint64
	for i := range p.Ops {
		sum = saturatingSum(sum, p.flops(&p.Ops[i]))
	}
	return sum
}

func (p *Program) flops(op *Operator) uint64 {
	n := uint64(op.Out.Elements())
	switch {
	case op.Kind.Multiplies():
		lhs := p.Ops[op.In[0]].Out
		for _, axis := range op.Ints[2 : 2+op.Ints[0]] {
			n = saturatingMul(n, uint64(lhs.Dims[axis]))
		}
		return saturatingMul(n, 2)
	case op.Kind.Attention():
		return p.attentionFlops(op)
	case op.Kind == CrossEntropy || op.Kind == CrossEntropyGrad:
		return saturatingMul(uint64(p.Ops[op.In[0]].Out.Elements()), 4)
	case op.Kind >= Gelu && op.Kind <= SiluGrad:
		return saturatingMul(n, 10)
	case op.Kind == Quantize || op.Kind == Dequantize:
		return saturatingMul(n, 2)
	case op.Kind == Grade:
		return saturatingMul(n, uint64(op.Ints[0]))
	case op.Kind >= AdamM && op.Kind <= AdamP:
		return saturatingMul(n, 10)
	case op.Kind >= ReduceSum && op.Kind <= FirstMax:
		return uint64(p.Ops[op.In[0]].Out.Elements())
	case op.Kind >= Neg && op.Kind <= Where || op.Kind == Random:
		return n
	}
	return 0
}

func saturatingMul(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	if hi != 0 {
		return 1<<64 - 1
	}
	return lo
}
