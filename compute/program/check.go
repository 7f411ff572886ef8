package program

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
)

// Limits bound what a stranger's program may cost.
type Limits struct {
	MaxOps    int    // operators, and likewise outputs
	MaxBytes  int64  // bytes of the encoding
	MaxMemory int64  // bytes that a Run or Trace holds at its peak, inputs and outputs included
	MaxFlops  uint64 // Flops of one run, where an element moved counts as one
}

// DefaultLimits keep a program from harm. Whether a machine has the memory and the time for a step is decided apart.
var DefaultLimits = Limits{MaxOps: 1 << 16, MaxBytes: 64 << 20, MaxMemory: 1 << 50, MaxFlops: 1e19}

// Unlimited are the limits of a program of our own making.
var Unlimited = Limits{MaxOps: math.MaxInt32, MaxBytes: math.MaxInt64, MaxMemory: math.MaxInt64,
	MaxFlops: math.MaxUint64}

// MaxSum bounds the bytes of all values of a program in sum, so that no sum that planning takes overflows.
const MaxSum = math.MaxInt64 / 8

// Most bytes of the name of an input or output, and operands of a Concat.
const maxName, maxOperands = 256, 4096

// Check reports why the list breaks a rule: ErrInvalid (often in an *OpError) or ErrLimit, for lists and values
// larger than the limits. It derives every shape again. Package compute/admit checks the cost of a program.
func (p *Program) Check(l Limits) error {
	if err := kernel.Knows(p.Numerics); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(p.Ops) > l.MaxOps || len(p.Outputs) > l.MaxOps {
		return fmt.Errorf("%w: %d operators and %d outputs, at most %d are allowed", ErrLimit, len(p.Ops), len(p.Outputs),
			l.MaxOps)
	}
	maxBytes := int(min(l.MaxMemory, math.MaxInt))
	names := map[string]bool{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if err := p.checkOp(i, maxBytes); err != nil {
			return &OpError{Index: i, Kind: op.Kind, Err: err}
		}
		if op.Kind == Input {
			if names[op.Name] {
				return &OpError{Index: i, Kind: op.Kind, Err: invalid("a second input named %q", op.Name)}
			}
			names[op.Name] = true
		}
	}
	return p.checkOutputs()
}

func (p *Program) checkOp(i, maxBytes int) error {
	op := &p.Ops[i]
	if len(op.In) > maxOperands {
		return invalid("%d operands, at most %d are supported", len(op.In), maxOperands)
	}
	for _, v := range op.In {
		if v < 0 || int(v) >= i {
			return invalid("operand %d is not an earlier operator", v)
		}
	}
	out, err := infer(op, p.shapes(op), maxBytes)
	if err != nil {
		return err
	}
	if !out.Equal(op.Out) {
		return invalid("result is %s, declared as %s", out, op.Out)
	}
	return nil
}

func (p *Program) checkOutputs() error {
	names := map[string]bool{}
	for _, o := range p.Outputs {
		switch {
		case o.Name == "" || len(o.Name) > maxName:
			return invalid("the name of an output has %d bytes, must have 1 to %d", len(o.Name), maxName)
		case names[o.Name]:
			return invalid("a second output named %q", o.Name)
		case o.Value < 0 || int(o.Value) >= len(p.Ops):
			return invalid("output %q is value %d of %d", o.Name, o.Value, len(p.Ops))
		}
		names[o.Name] = true
	}
	return nil
}
