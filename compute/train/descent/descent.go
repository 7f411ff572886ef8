// Package descent takes the inner steps of a unit in two programs: one computes the gradient, and one lets the
// optimizer move some of the parameters. A caller can change gradients between the two, and choose which parameters are
// trained. The step of a job does both at once, and package train executes that.
package descent

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
)

// Descent is a train.Executor. Between its methods it holds the state of a unit.
type Descent struct {
	// Grads are the gradients of the parameters that are trained, in their order. Gradient writes them, Move reads them,
	// and a caller may change them in between.
	Grads []*tensor.Tensor
	// Steer is added to Grads in each Step, of the same shapes; nil: nothing is.
	Steer []*tensor.Tensor
	// Tokens are the examples of the next gradient: int32 [batch, length + 1].
	Tokens *tensor.Tensor

	gradient, update *cpu.Exec
	names            []string // of the whole state
	moved            []string // of the state that update writes
	anchors          []string // of all parameters, if the step has a proximal term
	reads            []string // of the inputs of gradient
	in, out          map[string]*tensor.Tensor
	trained          []string // of the parameters that update moves
}

var _ train.Executor = (*Descent)(nil)

// New divides the step of a job. o is its optimizer, trains says whether a parameter is trained (nil: all are), and
// frozen are the tensors of train.Frozen(step).
func New(step *program.Program, o optimizer.Optimizer, trains func(name string) bool, frozen []*tensor.Tensor,
	threads int) (*Descent, error) {
	gradients, err := parts.Gradients(step)
	if err != nil {
		return nil, err
	}
	shapes := step.InputShapes()
	d := &Descent{Tokens: tensor.New(shapes["tokens"]), names: train.StateNames(step),
		in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{"loss": tensor.Scalar(0)}}
	d.in["tokens"] = d.Tokens
	for i, n := range train.Frozen(step) {
		d.in[train.Param+n] = frozen[i]
	}
	for _, in := range gradients.Inputs() {
		d.reads = append(d.reads, in.Name)
	}
	var list []optimizer.Tensor
	for _, n := range train.Params(step) {
		g := tensor.New(shapes[train.Param+n])
		d.out[optimizer.Gradient+n] = g
		if trains == nil || trains(n) {
			list, d.trained = append(list, optimizer.Tensor{Name: n, Shape: g.Shape}), append(d.trained, n)
			d.Grads = append(d.Grads, g)
		}
	}
	update, err := optimizer.Alone(o, list)
	if err != nil {
		return nil, err
	}
	for _, out := range update.Outputs {
		if out.Name != "grad_norm" {
			d.moved = append(d.moved, out.Name)
		}
	}
	if parts.Anchored(step) {
		d.anchors = train.Params(step)
	}
	if d.gradient, err = cpu.Compile(gradients, threads); err != nil {
		return nil, err
	}
	d.update, err = cpu.Compile(update.In(step.Numerics), threads)
	return d, err
}

// Begin implements train.Executor.
func (d *Descent) Begin(state []*tensor.Tensor) error {
	for i, n := range d.names {
		d.in[n] = state[i].Clone()
	}
	for _, n := range d.anchors {
		d.in[train.Anchor+n] = d.in[train.Param+n].Clone()
	}
	return nil
}

// State implements train.Executor.
func (d *Descent) State(into []*tensor.Tensor) error {
	for i, n := range d.names {
		copy(into[i].Bytes(), d.in[n].Bytes())
	}
	return nil
}

// Step implements train.Executor.
func (d *Descent) Step(tokens []int32, dice *tensor.Tensor, lr, c1, c2 float32) (loss float32, err error) {
	copy(d.Tokens.I32(), tokens)
	if loss, err = d.Gradient(dice); err != nil {
		return 0, err
	}
	for i, s := range d.Steer {
		g := d.Grads[i].F32()
		for k, x := range s.F32() {
			g[k] += x
		}
	}
	return loss, d.Move(lr, c1, c2)
}

// Gradient returns the loss on Tokens, and writes Grads.
func (d *Descent) Gradient(dice *tensor.Tensor) (loss float32, err error) {
	in := make(map[string]*tensor.Tensor, len(d.reads))
	for _, n := range d.reads {
		if in[n] = d.in[n]; n == "dice" {
			in[n] = dice
		}
	}
	err = d.gradient.RunInto(in, d.out)
	return parts.Value(d.out["loss"]), err
}

// Move lets the optimizer move the trained parameters by Grads. lr, c1 and c2 are those of train.Spec.Scalars.
func (d *Descent) Move(lr, c1, c2 float32) error {
	in := map[string]*tensor.Tensor{"lr": tensor.Scalar(lr), "c1": tensor.Scalar(c1), "c2": tensor.Scalar(c2)}
	out := map[string]*tensor.Tensor{"grad_norm": tensor.Scalar(0)}
	for i, n := range d.trained {
		in[optimizer.Gradient+n] = d.Grads[i]
	}
	if len(d.anchors) > 0 { // Grads have the proximal term already, and these anchors make it 0 in update
		for _, n := range d.trained {
			in[train.Anchor+n] = d.in[train.Param+n].Clone()
		}
	}
	for _, n := range d.moved {
		in[n] = d.in[n]
		if out[n] = in[n]; !d.update.Shares(n, n) {
			out[n] = tensor.New(in[n].Shape)
		}
	}
	if err := d.update.RunInto(in, out); err != nil {
		return err
	}
	for _, n := range d.moved {
		d.in[n] = out[n]
	}
	return nil
}
