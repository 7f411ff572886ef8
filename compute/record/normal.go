package record

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// uniform are numbers above 0 and below 1 of the shape of like, times the given number: element i is word i of the
// random stream of the key times 2^-32, plus 2^-33, and at most 1-2^-24; each operation is rounded to float32.
func uniform(like, key *graph.Node, site int, times float32) *graph.Node {
	at := valueOf(key)
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		dims := b.Shape(in[0]).Dims
		with := func(k program.Kind, x program.Value, y float32) program.Value {
			return e.keep(b.Apply(k, x, e.keep(b.Broadcast(b.Constant(tensor.Scalar(y)), dims, nil))))
		}
		own := e.keep(b.Apply(program.Add, at, b.Constant(key3(int64(site)))))
		words := e.keep(b.Convert(e.keep(b.Random(own, dims...)), tensor.Float32))
		u := with(program.Min, with(program.Add, with(program.Mul, words, 0x1p-32), 0x1p-33), 1-0x1p-24)
		return with(program.Mul, u, times), e.err
	}
	op.backward = func(*program.Builder, [3]program.Value, program.Value, program.Value) ([3]program.Value, error) {
		return [3]program.Value{}, errNoise
	}
	return apply(op, like)
}

// Whole are whole numbers from 0 up to below of the shape of like, each as likely as any other, as float32. The key,
// and a site in its stream, are as of Dropout.
func Whole(like, key *graph.Node, site, below int) *graph.Node {
	return graph.MinScalar(graph.Floor(uniform(like, key, site, float32(below))), float64(below-1))
}

// Normal is noise of the standard normal distribution of the shape of like, which is float32: the root of -2 log(u)
// times the cosine of 2 pi v (Box and Muller 1958), of numbers u and v in the streams of two sites, of which the second
// follows the first. The key, and a site in its stream, are as of Dropout.
func Normal(like, key *graph.Node, site int) *graph.Node {
	radius := graph.Sqrt(graph.MulScalar(graph.Log(uniform(like, key, site, 1)), -2))
	return graph.Mul(radius, graph.Cos(uniform(like, key, site+1, 2*math.Pi)))
}
