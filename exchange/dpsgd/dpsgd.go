// Package dpsgd takes the steps of a unit so that the result says little about one example (Abadi et al. 2016,
// algorithm 1): a step draws examples, clips the gradient of each, adds them on a grid of integers, and adds noise
// there. An optimizer that sees the noisy gradients alone discloses no more than they do. The package decides no amount
// of noise, and states no epsilon: package renyi does.
package dpsgd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/discrete"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/prg"
)

// ErrTerms is wrapped by terms out of range, and by a step that does not take one example.
var ErrTerms = errors.New("private steps")

// Terms are how much of one example a step shows.
type Terms struct {
	Clip  float64 // largest Euclidean norm of the gradient of an example
	Noise float64 // standard deviation of the noise in a sum of gradients, in Clip
	Lot   float64 // examples of a step, on average
}

// Rate is the probability that an example is in a step, of a number of them.
func (t Terms) Rate(examples int) float64 { return min(1, t.Lot/float64(examples)) }

// Examples are the rows of tokens that a unit is computed from. Each row is a participant whom the noise protects.
type Examples interface {
	Len() int
	// Row writes the tokens of an example.
	Row(i int, into []int32)
}

// Trainer is a train.Executor that draws the examples of its steps by itself: of those that it is given, it reads none.
type Trainer struct {
	Terms
	examples         Examples
	scale            uint64 // of the noise on the grid
	below            uint64 // of draws, which are of 64 bits; 0: all
	seed             prg.Key
	draws            *prg.Stream
	step             uint64
	gradient, update *cpu.Exec
	names            []string // of the state
	reads            []string // inputs of gradient
	trained          []optimizer.Tensor
	in, grads        map[string]*tensor.Tensor
	list             []*tensor.Tensor // of grads, in the order of trained
	sum              []int64          // of the gradients of a step, on the grid
	noise            []uint32
}

var _ train.Executor = (*Trainer)(nil)

// New makes the trainer of a unit from its step on one example and from its optimizer. The seed is secret, and of this
// unit alone.
func New(step *program.Program, o optimizer.Optimizer, t Terms, examples Examples, seed prg.Key,
	threads int) (*Trainer, error) {
	x := &Trainer{Terms: t, examples: examples, scale: uint64(math.Ceil(t.Noise * fixedpoint.Unit)), seed: seed,
		draws: prg.New(prg.Derive(seed[:], "starling/dpsgd/draws")), names: train.StateNames(step),
		in: map[string]*tensor.Tensor{}, grads: map[string]*tensor.Tensor{}}
	shapes := step.InputShapes()
	if !(t.Clip > 0) || math.IsInf(t.Clip, 0) || !(t.Noise >= 0) || x.scale > discrete.MaxScale || !(t.Lot > 0) ||
		examples.Len() < 1 || len(shapes["tokens"].Dims) != 2 || shapes["tokens"].Dims[0] != 1 {
		return nil, fmt.Errorf("%w: %+v of %d examples, with a step on tokens %v", ErrTerms, t, examples.Len(),
			shapes["tokens"])
	}
	if q := t.Rate(examples.Len()); q < 1 {
		x.below = max(1, uint64(math.Ldexp(q, 64))) // rounded down
	}
	gradients, err := parts.Gradients(step)
	if err != nil {
		return nil, err
	}
	for _, in := range gradients.Inputs() {
		x.reads = append(x.reads, in.Name)
	}
	for _, n := range train.Params(step) {
		shape := shapes[train.Param+n]
		x.trained = append(x.trained, optimizer.Tensor{Name: n, Shape: shape})
		g := tensor.New(shape)
		x.grads[optimizer.Gradient+n], x.list = g, append(x.list, g)
	}
	update, err := optimizer.Alone(o, x.trained)
	if err != nil {
		return nil, err
	}
	elements := 0
	for _, g := range x.list {
		elements += len(g.F32())
	}
	x.sum, x.noise = make([]int64, elements), make([]uint32, elements)
	x.grads["loss"] = tensor.Scalar(0)
	x.in["tokens"] = tensor.New(shapes["tokens"])
	if x.gradient, err = cpu.Compile(gradients, threads); err != nil {
		return nil, err
	}
	x.update, err = cpu.Compile(update.In(step.Numerics), threads)
	return x, err
}

// Begin implements train.Executor.
func (x *Trainer) Begin(state []*tensor.Tensor) error {
	for i, n := range x.names {
		x.in[n] = state[i].Clone()
	}
	return nil
}

// State implements train.Executor.
func (x *Trainer) State(into []*tensor.Tensor) error {
	for i, n := range x.names {
		copy(into[i].Bytes(), x.in[n].Bytes())
	}
	return nil
}

// Step implements train.Executor. The loss is the mean over the examples that are drawn, which no one but their owner
// may see.
func (x *Trainer) Step(_ []int32, dice *tensor.Tensor, lr, c1, c2 float32) (loss float32, err error) {
	sum, loss, err := x.drawn(dice)
	if err != nil {
		return 0, err
	}
	clear(x.noise)
	if x.scale > 0 {
		key := prg.Derive(x.seed[:], "starling/dpsgd/noise", binary.LittleEndian.AppendUint64(nil, x.step))
		if err := discrete.Add(x.noise, x.scale, key); err != nil {
			return 0, err
		}
	}
	x.step++
	in := map[string]*tensor.Tensor{"lr": tensor.Scalar(lr), "c1": tensor.Scalar(c1), "c2": tensor.Scalar(c2)}
	unit, at := x.Clip/(fixedpoint.Unit*x.Lot), 0
	for i, g := range x.list { // they hold the gradient of the last example, which is no longer needed
		for k := range g.F32() {
			g.F32()[k] = float32(float64(sum[at]+int64(int32(x.noise[at]))) * unit)
			at++
		}
		in[optimizer.Gradient+x.trained[i].Name] = g
	}
	out := map[string]*tensor.Tensor{"grad_norm": tensor.Scalar(0)}
	for _, n := range x.names {
		in[n] = x.in[n]
		if out[n] = in[n]; !x.update.Shares(n, n) {
			out[n] = tensor.New(in[n].Shape)
		}
	}
	if err := x.update.RunInto(in, out); err != nil {
		return 0, err
	}
	for _, n := range x.names {
		x.in[n] = out[n]
	}
	return loss, nil
}

// drawn is the sum of the clipped gradients of the examples of a step, on the grid, and their mean loss. An example
// whose gradient is not finite counts as one without a gradient.
func (x *Trainer) drawn(dice *tensor.Tensor) (sum []int64, loss float32, err error) {
	sum = x.sum
	clear(sum)
	in := map[string]*tensor.Tensor{}
	for _, name := range x.reads {
		if in[name] = x.in[name]; name == "dice" {
			in[name] = dice
		}
	}
	n, total := 0, float64(0)
	for i := range x.examples.Len() {
		if x.below > 0 && x.draws.Uint64() >= x.below {
			continue
		}
		tokens := x.in["tokens"].I32()
		x.examples.Row(i, tokens[:len(tokens)-1]) // the last one belongs to the next row
		if err := x.gradient.RunInto(in, x.grads); err != nil {
			return nil, 0, err
		}
		n, total = n+1, total+float64(x.grads["loss"].F32()[0])
		values, err := fixedpoint.Encode(x.list, x.Clip, 1)
		if errors.Is(err, fixedpoint.ErrUpdate) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		for k := range sum {
			sum[k] += int64(int32(values[k]))
		}
	}
	return sum, float32(total / float64(max(1, n))), nil
}
