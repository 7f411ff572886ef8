package record

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Dropout sets elements of x to zero and divides the others by the remaining share, 1-rate. Element i is dropped if
// word i of the random stream of the key is below rate*2^32, rounded to the nearest. The key is an int64 [3] of seed,
// stream and index; site is added to the stream of the key.
func Dropout(x, key *graph.Node, site int, rate float64) *graph.Node {
	at := valueOf(key)
	var mask program.Value
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		dims := b.Shape(in[0]).Dims
		all := func(t *tensor.Tensor) program.Value { return e.keep(b.Broadcast(b.Constant(t), dims, nil)) }
		own := e.keep(b.Apply(program.Add, at, b.Constant(key3(int64(site)))))
		words := e.keep(b.Random(own, dims...))
		low := tensor.New(tensor.Make(tensor.Uint32))
		tensor.As[uint32](low.Bytes())[0] = uint32(min(math.RoundToEven(float64(rate*(1<<32))), math.MaxUint32))
		dropped := e.keep(b.Apply(program.Less, words, all(low)))
		mask = e.keep(b.Apply(program.Where, dropped, all(tensor.Scalar(0)), all(tensor.Scalar(float32(1/(1-rate))))))
		return e.keep(b.Apply(program.Mul, in[0], mask)), e.err
	}
	op.backward = func(b *program.Builder, in [3]program.Value, _, adjoint program.Value) ([3]program.Value, error) {
		d, err := b.Apply(program.Mul, adjoint, mask)
		return [3]program.Value{d, in[1], in[2]}, err
	}
	return apply(op, x)
}

// Dice draw what is dropped. Every place where something is has a random stream of its own.
type Dice struct {
	Key   *graph.Node
	sites int // so far
}

// Drop is x less a share that is dropped of it; x itself without dice, or where nothing is dropped.
func (d *Dice) Drop(x *graph.Node, rate float64) *graph.Node {
	if d == nil || rate == 0 {
		return x
	}
	d.sites++
	return Dropout(x, d.Key, d.sites, rate)
}

// key3 is a key that adds to the stream alone.
func key3(stream int64) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Int64, 3))
	tensor.As[int64](t.Bytes())[1] = stream
	return t
}
