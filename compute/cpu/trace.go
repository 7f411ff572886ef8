package cpu

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Eval computes an operator of a program of the given numerics, other than an Input, from the values of its operands
// with the portable kernels.
func Eval(numerics uint32, op *program.Operator, in []*tensor.Tensor) (*tensor.Tensor, error) {
	return alone(numerics, op, in, 1, kernel.Portable)
}

// alone computes an operator as a program of its own.
func alone(numerics uint32, op *program.Operator, in []*tensor.Tensor, threads int,
	path kernel.Path) (*tensor.Tensor, error) {
	x, err := compileAlone(numerics, op, in, threads, path)
	if err != nil {
		return nil, err
	}
	return x.runAlone(in)
}

// compileAlone compiles an operator as a program of its own, with an input for each operand.
func compileAlone(numerics uint32, op *program.Operator, in []*tensor.Tensor, threads int,
	path kernel.Path) (*Exec, error) {
	if op.Kind == program.Input {
		return nil, fmt.Errorf("%w: an Input has no value of its own", program.ErrInvalid)
	}
	p := &program.Program{Numerics: numerics, Outputs: []program.Output{{Name: "out", Value: int32(len(in))}}}
	single := *op
	single.In = make([]int32, len(in))
	for i, t := range in {
		p.Ops = append(p.Ops, program.Operator{Kind: program.Input, Name: strconv.Itoa(i), Out: t.Shape})
		single.In[i] = int32(i)
	}
	p.Ops = append(p.Ops, single)
	return compile(p, threads, path)
}

func (x *Exec) runAlone(in []*tensor.Tensor) (*tensor.Tensor, error) {
	named := make(map[string]*tensor.Tensor, len(in))
	for i, t := range in {
		named[strconv.Itoa(i)] = t
	}
	out, err := x.Run(named)
	return out["out"], err
}

// Trace computes every operator on its own, in order, and shows each value to visit, which may keep it but must not
// change it; values of Input operators are the caller's tensors. The bits are those of Run. An error of visit ends the
// trace and is returned as it is.
func (x *Exec) Trace(in map[string]*tensor.Tensor, visit func(op int, value *tensor.Tensor) error) error {
	all := make([]bool, len(x.shown.Ops))
	for i := range all {
		all[i] = true
	}
	return x.traced(in, all, visit)
}

// TraceOf is Trace of some operators alone: no operator is computed that they do not depend on.
func (x *Exec) TraceOf(in map[string]*tensor.Tensor, wanted []int,
	visit func(op int, value *tensor.Tensor) error) error {
	needed := x.needed(wanted)
	return x.traced(in, needed, func(op int, value *tensor.Tensor) error {
		if !slices.Contains(wanted, op) {
			return nil
		}
		return visit(op, value)
	})
}

// needed marks operators and all that they depend on.
func (x *Exec) needed(wanted []int) []bool {
	needed := make([]bool, len(x.shown.Ops))
	for _, op := range wanted {
		needed[op] = true
	}
	for i := len(needed) - 1; i >= 0; i-- {
		if needed[i] {
			for _, v := range x.shown.Ops[i].In {
				needed[v] = true
			}
		}
	}
	return needed
}

// traced is Trace of the operators that are marked, which depend on no others.
func (x *Exec) traced(in map[string]*tensor.Tensor, marked []bool,
	visit func(op int, value *tensor.Tensor) error) error {
	if err := x.checkInputs(in); err != nil {
		return err
	}
	last := make([]int, len(x.shown.Ops)) // the last operator that reads a value
	for i := range x.shown.Ops {
		if last[i] = i; marked[i] {
			for _, v := range x.shown.Ops[i].In {
				last[v] = i
			}
		}
	}
	values := make([]*tensor.Tensor, len(x.shown.Ops))
	for i := range x.shown.Ops {
		if !marked[i] {
			continue
		}
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
	single, known := x.kept.Take(i)
	if !known {
		single, err = compileAlone(x.p.Numerics, op, operands, len(x.workers), x.path)
	}
	if err == nil {
		values[i], err = single.runAlone(operands)
		x.kept.Put(i, single, len(single.block.Bytes))
	}
	if e := new(program.OpError); errors.As(err, &e) {
		e.Index = i
	}
	return err
}
