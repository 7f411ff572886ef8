package record

import (
	"errors"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// errNoise is returned where a gradient goes through noise.
var errNoise = errors.New("record: noise has no gradient")

// Gumbel is noise of the standard Gumbel distribution of the shape of like, which is float32. Element i is
// -log(-log(u)), where u is word i of the random stream of the key times 2^-32, plus 2^-33, and at most 1-2^-24; each
// operation is rounded to float32. The key, and a site in its stream, are as of Dropout.
func Gumbel(like, key *graph.Node, site int) *graph.Node {
	at := valueOf(key)
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		dims := b.Shape(in[0]).Dims
		with := func(k program.Kind, x program.Value, y float32) program.Value {
			return e.keep(b.Apply(k, x, e.keep(b.Broadcast(b.Constant(tensor.Scalar(y)), dims, nil))))
		}
		minusLog := func(x program.Value) program.Value {
			return e.keep(b.Apply(program.Neg, e.keep(b.Apply(program.Log, x))))
		}
		own := e.keep(b.Apply(program.Add, at, b.Constant(key3(int64(site)))))
		words := e.keep(b.Convert(e.keep(b.Random(own, dims...)), tensor.Float32))
		u := with(program.Min, with(program.Add, with(program.Mul, words, 0x1p-32), 0x1p-33), 1-0x1p-24)
		return minusLog(minusLog(u)), e.err
	}
	op.backward = func(*program.Builder, [3]program.Value, program.Value, program.Value) ([3]program.Value, error) {
		return [3]program.Value{}, errNoise
	}
	return apply(op, like)
}
