// Package forward cuts a program that has no gradients, such as one that continues texts, into parts that follow each
// other. Each part holds some of the layers of a model. No operator is changed, and each part computes operators of the
// program that was cut, so the parts together have its bits.
//
// It knows no model: its caller says which inputs belong to which part. Programs of training steps are cut by package
// stages. It computes nothing.
package forward

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrCut is wrapped by every reason why a program cannot be cut as asked.
var ErrCut = errors.New("forward: the program cannot be cut")

// Hidden is the name of the value that a part gets from the part before it, and of that which it gives to the next.
const Hidden = "hidden"

// Inputs that are of no part.
const (
	Anywhere = -1 // each part computes for itself the values that follow from such inputs alone
	Ends     = -2 // a weight outside of the layers, which the first part or the last one reads
)

// cut is a program whose operators have parts.
type cut struct {
	p      *program.Program
	parts  int
	at     []int  // by value: its part, or Anywhere
	weight []bool // by value: it follows from weights outside of the layers, and constants, alone
	fixed  []bool // by value: it follows from constants alone
	cross  []int  // by part: the value that it gives to the next; -1: none yet
	needs  []map[int32]bool
}

// Cut cuts a program into parts, of which one value goes from each to the next. of is the part of an input, Anywhere or
// Ends. A program of a part has the inputs and outputs of the program that was cut which are of that part, and Hidden.
func Cut(p *program.Program, parts int, of func(input string) int) ([]*program.Program, error) {
	c := &cut{p: p, parts: parts, at: make([]int, len(p.Ops)), weight: make([]bool, len(p.Ops)),
		fixed: make([]bool, len(p.Ops)),
		cross: slices.Repeat([]int{-1}, parts)}
	for range parts {
		c.needs = append(c.needs, map[int32]bool{})
	}
	for i := range p.Ops {
		if err := c.place(i, of); err != nil {
			return nil, err
		}
	}
	made := make([][]program.Output, parts)
	for _, o := range p.Outputs {
		part := max(c.at[o.Value], 0)
		made[part] = append(made[part], o)
	}
	list := make([]*program.Program, parts)
	for part := parts - 1; part >= 0; part-- { // a value that is given is needed by the part that makes it
		if err := c.collect(part, made[part]); err != nil {
			return nil, err
		}
	}
	for part := range list {
		list[part] = c.program(part, made[part])
	}
	return list, nil
}

// place gives operator i a part: the last one of its operands.
func (c *cut) place(i int, of func(string) int) error {
	op := &c.p.Ops[i]
	if op.Kind == program.Input {
		c.at[i] = of(op.Name)
		c.weight[i] = c.at[i] == Ends
		if c.at[i] >= c.parts || c.at[i] < Ends {
			return fmt.Errorf("%w: input %q is of part %d of %d", ErrCut, op.Name, c.at[i], c.parts)
		}
		return nil
	}
	at, ends, others := Anywhere, false, false
	for _, v := range op.In {
		if c.weight[v] {
			ends = true
			continue
		}
		at, others = max(at, c.at[v]), others || !c.fixed[v]
	}
	c.fixed[i] = !ends && !others
	switch {
	case ends && !others:
		at, c.weight[i] = Ends, true
	case ends && at <= 0:
		at = 0
	case ends:
		at = c.parts - 1
	}
	c.at[i] = at
	return nil
}

// collect finds the values that a part computes, and the one that it gets from the part before it.
func (c *cut) collect(part int, made []program.Output) error {
	var wanted []int32
	for _, o := range made {
		wanted = append(wanted, o.Value)
	}
	if v := c.cross[part]; v >= 0 {
		wanted = append(wanted, int32(v))
	}
	read := map[int32]bool{}
	for _, v := range wanted {
		c.need(part, v, read)
	}
	if part == 0 {
		return nil
	}
	given, err := c.narrow(part-1, read)
	if err != nil {
		return err
	}
	c.cross[part-1] = int(given)
	c.needs[part] = map[int32]bool{given: true} // what follows from it alone is computed again
	for _, v := range wanted {
		c.need(part, v, nil)
	}
	return nil
}

// need has a part compute a value and all that it is computed from. Values of other parts are added to read; nil: they
// are computed again.
func (c *cut) need(part int, v int32, read map[int32]bool) {
	if c.needs[part][v] {
		return
	}
	if read != nil && c.at[v] >= 0 && c.at[v] != part {
		read[v] = true
		return
	}
	c.needs[part][v] = true
	for _, operand := range c.p.Ops[v].In {
		c.need(part, operand, read)
	}
}

// narrow is the last value of a part from which all values that the next part reads follow without a weight: of the
// normalised state and of the state, it is the state.
func (c *cut) narrow(part int, read map[int32]bool) (int32, error) {
	for len(read) > 0 {
		last := slices.Max(slices.Collect(maps.Keys(read)))
		op := &c.p.Ops[last]
		if c.at[last] != part || op.Kind == program.Input {
			return 0, fmt.Errorf("%w: part %d reads operator %d (%s) of part %d", ErrCut, part+1, last, op.Kind, c.at[last])
		}
		if len(read) == 1 && op.Out.DType == tensor.Float32 {
			return last, nil
		}
		delete(read, last)
		for _, v := range op.In {
			if c.weight[v] {
				return 0, fmt.Errorf("%w: part %d reads operator %d (%s) besides others", ErrCut, part+1, last, op.Kind)
			}
			if c.at[v] >= 0 {
				read[v] = true
			}
		}
	}
	return 0, fmt.Errorf("%w: part %d reads nothing of the part before it", ErrCut, part+1)
}

// program makes the program of a part.
func (c *cut) program(part int, made []program.Output) *program.Program {
	out, to := &program.Program{Numerics: c.p.Numerics}, map[int32]int32{}
	for i := range c.p.Ops {
		v, op := int32(i), c.p.Ops[i]
		switch {
		case part > 0 && c.cross[part-1] == i: // given
			op = program.Operator{Kind: program.Input, Out: op.Out, Name: Hidden}
		case !c.needs[part][v]:
			continue
		default:
			in := make([]int32, len(op.In))
			for k, o := range op.In {
				in[k] = to[o]
			}
			op.In = in
		}
		to[v] = int32(len(out.Ops))
		out.Ops = append(out.Ops, op)
	}
	for _, o := range made {
		out.Outputs = append(out.Outputs, program.Output{Name: o.Name, Value: to[o.Value]})
	}
	if v := c.cross[part]; v >= 0 {
		out.Outputs = append(out.Outputs, program.Output{Name: Hidden, Value: to[int32(v)]})
	}
	return out
}
