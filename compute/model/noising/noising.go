// Package noising adds noise to examples in graphs: how much of an example is kept and how much noise is added follows
// from a time. It knows no network and no weights.
package noising

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
)

// Middle is half of the largest value of an example: values are seen from -1 to 1.
const Middle = 127.5

// Sites in the stream of a step, after those of dropout: of the times, and of the noise, which takes two.
const (
	timesSite = 1 << 20
	noiseSite = 1<<20 + 1
)

// Schedule has for each time, from 0, the factor of the example and that of the noise.
type Schedule struct{ Kept, Added []float32 }

// Noisy is examples with noise.
type Noisy struct {
	X     *graph.Node // float32 [n, values]
	Times *graph.Node // float32 [n], whole numbers
	Noise *graph.Node // float32 [n, values]
}

// At is x [n, values] of int32 from 0 to 255 with noise of a key at times [n].
func (s Schedule) At(x, key, times *graph.Node) Noisy {
	g, dims := x.Graph(), x.Shape().Dimensions
	clean := graph.MulScalar(graph.AddScalar(graph.ConvertDType(x, dtypes.Float32), -Middle), 1/Middle)
	at := graph.InsertAxes(graph.ConvertDType(times, dtypes.Int32), -1)
	factor := func(table []float32) *graph.Node {
		rows := graph.Reshape(graph.Const(g, table), len(table), 1)
		return graph.ExpandAndBroadcast(graph.Reshape(graph.Gather(rows, at), dims[0]), dims, []int{1})
	}
	noise := record.Normal(clean, key, noiseSite)
	return Noisy{graph.Add(graph.Mul(clean, factor(s.Kept)), graph.Mul(noise, factor(s.Added))), times, noise}
}

// Drawn is x with noise at times that are drawn by the key.
func (s Schedule) Drawn(x, key *graph.Node) Noisy {
	list := graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, x.Shape().Dimensions[0]))
	return s.At(x, key, record.Whole(list, key, timesSite, len(s.Kept)))
}

// Even is x with noise that is always the same, at times that are spread evenly over all.
func (s Schedule) Even(x *graph.Node) Noisy {
	count := x.Shape().Dimensions[0]
	spread := graph.AddScalar(graph.Iota(x.Graph(), shapes.Make(dtypes.Float32, count), 0), 0.5)
	times := graph.Floor(graph.MulScalar(spread, float64(len(s.Kept))/float64(count)))
	return s.At(x, graph.Const(x.Graph(), []int64{0, 0, 0}), times)
}
