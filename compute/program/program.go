// Package program is what a worker is asked to compute: a static list of operators with fixed shapes, its canonical
// bytes and digest, and the rule of every kind of operator.
//
// The list is the specification: the result of a program is the result of its operators one after the other, each as
// its Kind says. The package computes nothing: compute/admit accepts the program of a stranger, compute/lower plans
// one, compute/cpu runs it, and compute/recompute computes a part of one operator. All yield the same bits on every
// machine and at any number of threads.
//
// It is not a language: no control flow, no names inside, no randomness, no dynamic shapes, and no derivatives.
// Programs are authored with compute/model, over compute/record.
package program

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// Errors of programs, to be tested with errors.Is.
var (
	ErrInvalid = errors.New("program: invalid")          // breaks a rule of its kind or of the list
	ErrLimit   = errors.New("program: beyond the limit") // too long, too large or too costly for the caller's limits
	ErrInput   = errors.New("program: wrong input")      // a run was given a missing, unknown or misshapen tensor
	ErrIndex   = errors.New("program: index out of range")
)

// OpError is an error of one operator of a program.
type OpError struct {
	Index int // position in Program.Ops
	Kind  Kind
	Err   error
}

// Error names the operator and what is wrong with it.
func (e *OpError) Error() string { return fmt.Sprintf("operator %d (%s): %v", e.Index, e.Kind, e.Err) }

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// IndexError is the error of an operator that was given an index outside of the rows of its table.
func IndexError(op int, k Kind, index int64, rows int) error {
	return &OpError{Index: op, Kind: k, Err: fmt.Errorf("%w: %d of %d rows", ErrIndex, index, rows)}
}

// Operator makes one value from the values of earlier operators.
type Operator struct {
	Kind Kind         `cbor:"1,keyasint"`
	In   []int32      `cbor:"2,keyasint,omitempty"` // operands: indexes of earlier operators
	Out  tensor.Shape `cbor:"3,keyasint"`           // shape of the value
	Ints []int64      `cbor:"4,keyasint,omitempty"` // attributes, as the kind says
	Data []byte       `cbor:"5,keyasint,omitempty"` // bytes of a Constant, or the rule of a Grade
	Name string       `cbor:"6,keyasint,omitempty"` // name of an Input
}

// Output names a value as a result of the program.
type Output struct {
	Name  string `cbor:"1,keyasint"`
	Value int32  `cbor:"2,keyasint"`
}

// Program is a list of operators in topological order. Operator i makes value i.
type Program struct {
	Numerics uint32     `cbor:"1,keyasint"` // the version whose bits it asks for, as kernel.Version1
	Ops      []Operator `cbor:"2,keyasint"`
	Outputs  []Output   `cbor:"3,keyasint"`
}

// In returns the program in a version of the numerics. It shares the operators.
func (p *Program) In(numerics uint32) *Program { return &Program{numerics, p.Ops, p.Outputs} }

// InputInfo describes an Input operator.
type InputInfo struct {
	Name  string
	Shape tensor.Shape
	Value int32
}

// Inputs lists the inputs in operator order.
func (p *Program) Inputs() []InputInfo {
	var in []InputInfo
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Kind == Input {
			in = append(in, InputInfo{Name: op.Name, Shape: op.Out, Value: int32(i)})
		}
	}
	return in
}

// InputShapes returns the shapes of the inputs by name.
func (p *Program) InputShapes() map[string]tensor.Shape {
	shapes := make(map[string]tensor.Shape)
	for _, in := range p.Inputs() {
		shapes[in.Name] = in.Shape
	}
	return shapes
}

// Encode returns the canonical bytes.
func (p *Program) Encode() []byte { return canon.MustMarshal(p) }

// Digest identifies the program: the digest of its canonical bytes.
func (p *Program) Digest() canon.Digest { return canon.Hash("starling/program/1", p) }

// shapes returns the shapes of the operands of op.
func (p *Program) shapes(op *Operator) []tensor.Shape {
	in := make([]tensor.Shape, len(op.In))
	for i, v := range op.In {
		in[i] = p.Ops[v].Out
	}
	return in
}

// Live marks the operators that an output needs.
func (p *Program) Live() []bool {
	live := make([]bool, len(p.Ops))
	for _, o := range p.Outputs {
		live[o.Value] = true
	}
	for i := len(p.Ops) - 1; i >= 0; i-- {
		if live[i] {
			for _, v := range p.Ops[i].In {
				live[v] = true
			}
		}
	}
	return live
}
