// Package answered judges disputes about answers of hosted models: a provider has signed a receipt, which says that
// the checking program finds no wrong token, and an accuser says that it finds one. The execution of the program is the
// only step of a unit whose inputs both know; the dispute narrows it to a part of one operator, which is recomputed.
//
// Receipts are protocol/answer, the program is compute/model/check, and package witness is the side of a party.
package answered

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
)

// ErrCase is for an accusation that cannot be decided: its program is not the one of the receipt, or not one that
// checks answers.
var ErrCase = errors.New("answered: the accusation cannot be decided")

// MaxProgram is the largest size of a checking program, in bytes.
const MaxProgram = 1 << 20

// limits of a program bound what an accusation costs the chain.
var limits = program.Limits{MaxOps: referee.MaxOperators, MaxBytes: MaxProgram, MaxMemory: 1 << 50, MaxFlops: 1e19}

// Both packages mean the same tokens.
var _ = [1]int{}[answer.Window-given.Window]

// Case is an accusation: that the checking program of a receipt finds a wrong token, from one token of the answer on.
type Case struct {
	receipt answer.Receipt
	from    uint32
	step    *program.Program
	known   map[string]*tensor.Tensor // inputs that are no weights
	tiles   *referee.Referee
}

var _ dispute.Referee = (*Case)(nil)

// Open reads the program of a case from anybody, which has version 1 of the numerics, as package check makes it. The
// receipt has passed Check. The error wraps ErrCase or answer.ErrWindow.
func Open(r answer.Receipt, from uint32, code []byte) (*Case, error) {
	fail := func(err error) (*Case, error) { return nil, fmt.Errorf("%w: %w", ErrCase, err) }
	if _, err := r.Part(from); err != nil {
		return nil, err
	}
	p, err := admit.Decode(code, limits)
	if err != nil {
		return fail(err)
	}
	if d := p.Digest(); d != r.Program {
		return fail(fmt.Errorf("the program is %s, that of the receipt %s", d.Short(), r.Program.Short()))
	}
	if p.Numerics != kernel.Version1 {
		return fail(fmt.Errorf("version %d of the numerics", p.Numerics))
	}
	c := &Case{receipt: r, from: from, step: p, known: Answer(r, from).Inputs(r.Length()),
		tiles: referee.OfStage(&train.Spec{}, p)}
	if err := c.fits(); err != nil {
		return fail(err)
	}
	return c, nil
}

// Answer is the answer of a receipt as the checking program takes it, from a token on.
func Answer(r answer.Receipt, from uint32) given.Answer {
	return given.Answer{Prompt: r.Prompt, Answer: r.Answer, From: int(from), Stopped: r.Stopped,
		Drawing: given.NewDrawing(r.Temperature, r.TopP), Seed: r.Seed, First: r.First}
}

// fits reports inputs and outputs that are not those of a checking program.
func (c *Case) fits() error {
	weights := 0
	for name, shape := range c.step.InputShapes() {
		if known := c.known[name]; known != nil && known.Shape.Equal(shape) {
			continue
		}
		if !strings.HasPrefix(name, parts.Param) || c.known[name] != nil {
			return fmt.Errorf("the program reads %q of shape %v", name, shape)
		}
		weights++
	}
	outputs := c.step.Outputs
	if len(outputs) != 1 || outputs[0].Name != given.Wrong || weights == 0 || len(parts.Frozen(c.step)) != weights ||
		!c.step.Ops[outputs[0].Value].Out.Equal(given.Right(c.receipt.Length()).Shape) {
		return fmt.Errorf("the program reads %d weights and has %d outputs", weights, len(outputs))
	}
	return nil
}

// Decidable returns what it costs to check that all questions about the case can be answered, in the units of
// recompute.Fit, at most the given number. The error wraps evidence.ErrTooLarge: one of them cannot.
func (c *Case) Decidable(most uint64) (uint64, error) { return c.tiles.Decidable(most) }

// Config is the dispute of an accuser with the provider, in which a party has some blocks for a move.
func (c *Case) Config(name, accuser string, blocks int64) dispute.Config {
	d, right := c.receipt.Digest(), given.Right(c.receipt.Length())
	return dispute.Config{
		Job: name, Asserter: c.receipt.Provider, Challenger: accuser, Base: c.receipt.Weights,
		Segments: []canon.Digest{
			train.StateRoot(c.from, []canon.Digest{d}), // both know it
			train.StateRoot(1, []canon.Digest{right.Root()}),
		},
		Steps: []uint32{1}, Operators: uint32(len(c.step.Ops)), Parameters: 1, MoveBlocks: blocks, NoUpdate: true,
	}
}

// Parts implements dispute.Referee.
func (c *Case) Parts(x dispute.Claim) uint64 { return c.tiles.Parts(x) }

// Judge implements dispute.Referee. Errors wrap evidence.ErrPayload or evidence.ErrTooLarge.
func (c *Case) Judge(x dispute.Claim, payload []byte) (dispute.Ruling, error) {
	switch {
	case x.Kind == dispute.Binding:
		return c.binding(x, payload)
	case x.Kind != dispute.Tile || uint64(x.Index) >= uint64(len(c.step.Ops)):
		return dispute.Ruling{}, evidence.Wrong("nothing answers a question of kind %q about operator %d", x.Kind, x.Index)
	}
	op := &c.step.Ops[x.Index]
	if op.Kind != program.Input {
		return c.tiles.Judge(x, payload)
	}
	if known := c.known[op.Name]; known != nil {
		return ruling(known.Root(), x.Output), nil
	}
	return c.weights(op.Name, x, payload)
}

// ruling compares the computed result with the claimed one.
func ruling(right, claimed canon.Digest) dispute.Ruling {
	return dispute.Ruling{Right: right == claimed, Computed: right}
}

// binding compares the output of the program in the asserter's trace with the one that its receipt claims.
func (c *Case) binding(x dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Binding
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if len(p.Outputs) != len(c.step.Ops) || canon.NewTree(p.Outputs).Root() != x.Trace {
		return dispute.Ruling{}, evidence.Wrong("these are not the outputs of the trace %s", x.Trace.Short())
	}
	return ruling(train.StateRoot(1, []canon.Digest{p.Outputs[c.step.Outputs[0].Value]}), x.After), nil
}

// weights answers for an input that is a tensor of the model.
func (c *Case) weights(name string, x dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Frozen
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	names := parts.Frozen(c.step)
	if len(p.Frozen) != len(names) || train.FrozenRoot(p.Frozen) != c.receipt.Weights {
		return dispute.Ruling{}, evidence.Wrong("these are not the tensors of the model")
	}
	return ruling(p.Frozen[slices.Index(names, strings.TrimPrefix(name, parts.Param))], x.Output), nil
}

// Witness is a party's own execution of the program of a case, with weights by the names of a model, and their roots in
// the order of the program.
func (c *Case) Witness(threads int, weights map[string]*tensor.Tensor, roots []canon.Digest) (*witness.Run, error) {
	in := map[string]*tensor.Tensor{}
	for name, x := range weights {
		in[parts.Param+name] = x
	}
	for name, x := range c.known {
		in[name] = x
	}
	return witness.NewRun(c.step, threads, in, roots)
}
