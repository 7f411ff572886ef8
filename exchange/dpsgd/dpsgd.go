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

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
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
	*descent.Descent
	examples Examples
	scale    uint64 // of the noise on the grid
	below    uint64 // of draws, which are of 64 bits; 0: all
	seed     prg.Key
	draws    *prg.Stream
	step     uint64
	sum      []int64 // of the gradients of a step, on the grid
	noise    []uint32
}

var _ train.Executor = (*Trainer)(nil)

// New makes the trainer of a unit from its steps on one example. The seed is secret, and of this unit alone.
func New(steps *descent.Descent, t Terms, examples Examples, seed prg.Key) (*Trainer, error) {
	x := &Trainer{Terms: t, Descent: steps, examples: examples, scale: uint64(math.Ceil(t.Noise * fixedpoint.Unit)),
		seed: seed, draws: prg.New(prg.Derive(seed[:], "starling/dpsgd/draws"))}
	shape := steps.Tokens.Shape
	if !(t.Clip > 0) || math.IsInf(t.Clip, 0) || !(t.Noise >= 0) || x.scale > discrete.MaxScale || !(t.Lot > 0) ||
		examples.Len() < 1 || len(shape.Dims) != 2 || shape.Dims[0] != 1 {
		return nil, fmt.Errorf("%w: %+v of %d examples, with a step on tokens %v", ErrTerms, t, examples.Len(), shape)
	}
	if q := t.Rate(examples.Len()); q < 1 {
		x.below = max(1, uint64(math.Ldexp(q, 64))) // rounded down
	}
	elements := 0
	for _, g := range x.Grads {
		elements += len(g.F32())
	}
	x.sum, x.noise = make([]int64, elements), make([]uint32, elements)
	return x, nil
}

// Step implements train.Executor. The loss is the mean over the examples that are drawn, which no one but their owner
// may see.
func (x *Trainer) Step(_ []int32, dice *tensor.Tensor, lr, c1, c2 float32) (loss float32, err error) {
	if loss, err = x.drawn(dice); err != nil {
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
	unit, at := x.Clip/(fixedpoint.Unit*x.Lot), 0
	for _, g := range x.Grads { // in place of that of the last example
		for k := range g.F32() {
			g.F32()[k] = float32(float64(x.sum[at]+int64(int32(x.noise[at]))) * unit)
			at++
		}
	}
	return loss, x.Move(lr, c1, c2)
}

// drawn sums up the clipped gradients of the examples of a step, on the grid, and returns their mean loss. An example
// whose gradient is not finite counts as one without a gradient.
func (x *Trainer) drawn(dice *tensor.Tensor) (loss float32, err error) {
	clear(x.sum)
	n, total := 0, float64(0)
	for i := range x.examples.Len() {
		if x.below > 0 && x.draws.Uint64() >= x.below {
			continue
		}
		tokens := x.Tokens.I32()
		x.examples.Row(i, tokens[:len(tokens)-1]) // the last one belongs to the next row
		one, err := x.Gradient(dice)
		if err != nil {
			return 0, err
		}
		n, total = n+1, total+float64(one)
		values, err := fixedpoint.Encode(x.Grads, x.Clip, 1)
		if errors.Is(err, fixedpoint.ErrUpdate) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for k := range x.sum {
			x.sum[k] += int64(int32(values[k]))
		}
	}
	return float32(total / float64(max(1, n))), nil
}
