package cpu

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Eval computes an operator, other than an Input, from the values of its operands with the portable kernels.
func Eval(op *program.Operator, in []*tensor.Tensor) (*tensor.Tensor, error) {
	return alone(op, in, 1, kernel.Portable)
}

// alone computes an operator as a program of its own, with an input for each operand.
func alone(op *program.Operator, in []*tensor.Tensor, threads int, path kernel.Path) (*tensor.Tensor, error) {
	if op.Kind == program.Input {
		return nil, fmt.Errorf("%w: an Input has no value of its own", program.ErrInvalid)
	}
	p := &program.Program{Numerics: kernel.Version, Outputs: []program.Output{{Name: "out", Value: int32(len(in))}}}
	named := make(map[string]*tensor.Tensor, len(in))
	single := *op
	single.In = make([]int32, len(in))
	for i, t := range in {
		name := strconv.Itoa(i)
		p.Ops = append(p.Ops, program.Operator{Kind: program.Input, Name: name, Out: t.Shape})
		named[name] = t
		single.In[i] = int32(i)
	}
	p.Ops = append(p.Ops, single)
	x, err := compile(p, threads, path)
	if err != nil {
		return nil, err
	}
	out, err := x.Run(named)
	return out["out"], err
}

// Trace computes every operator on its own, in order, and shows each value to visit, which may keep it but must not
// change it; values of Input operators are the caller's tensors. The bits are those of Run. An error of visit ends the
// trace and is returned as it is.
func (x *Exec) Trace(in map[string]*tensor.Tensor, visit func(op int, value *tensor.Tensor) error) error {
	if err := x.checkInputs(in); err != nil {
		return err
	}
	last := make([]int, len(x.shown.Ops)) // the last operator that reads a value
	for i := range x.shown.Ops {
		last[i] = i
		for _, v := range x.shown.Ops[i].In {
			last[v] = i
		}
	}
	values := make([]*tensor.Tensor, len(x.shown.Ops))
	for i := range x.shown.Ops {
		op := &x.shown.Ops[i]
		if op.Kind == program.Input {
			values[i] = in[op.Name]
		} else if err := x.traceOp(i, values); err != nil {
			return err
		}
		if err := visit(i, values[i]); err != nil {
			return err
		}
		for _, v := range append([]int32{int32(i)}, op.In...) {
			if last[v] == i {
				values[v] = nil
			}
		}
	}
	return nil
}

func (x *Exec) traceOp(i int, values []*tensor.Tensor) (err error) {
	op := &x.shown.Ops[i]
	operands := make([]*tensor.Tensor, len(op.In))
	for k, v := range op.In {
		operands[k] = values[v]
	}
	values[i], err = alone(op, operands, len(x.workers), x.path)
	if e := new(program.OpError); errors.As(err, &e) {
		e.Index = i
	}
	return err
}
