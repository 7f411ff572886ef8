package record

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// An image is [batch, rows, columns, channels] of small integers, whose sums are exact in any order.
type image struct {
	dims [4]int
	data []float32
}

func newImage(dims ...int) image {
	return image{[4]int(dims), make([]float32, dims[0]*dims[1]*dims[2]*dims[3])}
}

func randomImage(r *rand.Rand, dims ...int) image {
	m := newImage(dims...)
	for i := range m.data {
		m.data[i] = float32(r.IntN(9) - 4)
	}
	return m
}

// at returns an element, nil outside of the image.
func (m image) at(n, i, j, c int) *float32 {
	if i < 0 || j < 0 || i >= m.dims[1] || j >= m.dims[2] {
		return nil
	}
	return &m.data[((n*m.dims[1]+i)*m.dims[2]+j)*m.dims[3]+c]
}

func (m image) tensor() *tensor.Tensor { return tensor.FromF32(m.data, m.dims[:]...) }

// runGraph returns the values of the nodes that build makes, on the given inputs.
func runGraph(t *testing.T, in map[string]*tensor.Tensor, build func(g *graph.Graph) []*node) [][]float32 {
	t.Helper()
	b := program.NewBuilder()
	values, err := Record(b, build)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		b.Output(fmt.Sprint(i), v)
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if p = p.Simplify(); admit.Verify(p, program.DefaultLimits) != nil {
		t.Fatal(admit.Verify(p, program.DefaultLimits))
	}
	x, err := cpu.Compile(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	var list [][]float32
	for i := range values {
		list = append(list, out[fmt.Sprint(i)].F32())
	}
	return list
}

func checkData(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// A sliding is a window of size, stride and dilation over rows and columns, padded on all sides.
type sliding struct{ size, stride, dilation, padding int }

func (s sliding) count(d int) int { return (d+2*s.padding-(s.size-1)*s.dilation-1)/s.stride + 1 }

// each calls f for every position p of the window and every place q in it along one axis, with the element they meet.
func (s sliding) each(d int, f func(p, q, at int)) {
	for p := range s.count(d) {
		for q := range s.size {
			f(p, q, p*s.stride+q*s.dilation-s.padding)
		}
	}
}

func TestConvolution(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range []sliding{{1, 1, 1, 0}, {3, 1, 1, 1}, {3, 2, 1, 1}, {2, 1, 2, 0}, {3, 2, 1, 0}, {2, 2, 1, 0},
		{5, 1, 1, 2}, {3, 1, 2, 2}} {
		const n, rows, columns, channels, features = 2, 7, 9, 3, 2
		x, w := randomImage(r, n, rows, columns, channels), randomImage(r, s.size, s.size, channels, features)
		g := randomImage(r, n, s.count(rows), s.count(columns), features)
		y, dx, dw := newImage(g.dims[:]...), newImage(x.dims[:]...), newImage(w.dims[:]...)
		s.each(rows, func(i, a, row int) {
			s.each(columns, func(j, b, column int) {
				for k := range n * channels * features {
					k, c, o := k/channels/features, k/features%channels, k%features
					from, to := x.at(k, row, column, c), dx.at(k, row, column, c)
					if from == nil {
						continue
					}
					*y.at(k, i, j, o) += *from * *w.at(a, b, c, o)
					*to += *g.at(k, i, j, o) * *w.at(a, b, c, o)
					*dw.at(a, b, c, o) += *g.at(k, i, j, o) * *from
				}
			})
		})
		in := map[string]*tensor.Tensor{"x": x.tensor(), "w": w.tensor(), "g": g.tensor()}
		out := runGraph(t, in, func(gr *graph.Graph) []*node {
			xn, wn, gn := f32(gr, "x", x.dims[:]...), f32(gr, "w", w.dims[:]...), f32(gr, "g", g.dims[:]...)
			conv := graph.Convolve(xn, wn).Strides(s.stride).PaddingPerDim([][2]int{{s.padding, s.padding},
				{s.padding, s.padding}})
			if s.dilation > 1 {
				conv = conv.DilationPerAxis(s.dilation, s.dilation)
			}
			yn := conv.Done()
			return append([]*node{yn}, graph.Gradient(graph.ReduceAllSum(graph.Mul(yn, gn)), xn, wn)...)
		})
		checkData(t, fmt.Sprintf("%+v", s), out[0], y.data)
		if s.size%2 == 1 { // GoMLX shifts this gradient of kernels of even size: models have odd ones
			checkData(t, fmt.Sprintf("%+v gradient of the image", s), out[1], dx.data)
		}
		checkData(t, fmt.Sprintf("%+v gradient of the kernel", s), out[2], dw.data)
	}
}

func TestPooling(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for _, s := range []sliding{{2, 2, 1, 0}, {3, 2, 1, 1}, {3, 1, 1, 0}, {2, 3, 1, 0}} {
		const n, rows, columns, channels = 2, 6, 8, 3
		x := randomImage(r, n, rows, columns, channels) // few values: many ties
		g := randomImage(r, n, s.count(rows), s.count(columns), channels)
		most, sum := newImage(g.dims[:]...), newImage(g.dims[:]...)
		dMost, dSum := newImage(x.dims[:]...), newImage(x.dims[:]...)
		chosen := make([]*float32, len(g.data))
		for k := range n * channels {
			k, c := k/channels, k%channels
			s.each(rows, func(i, _, row int) {
				s.each(columns, func(j, _, column int) {
					from := x.at(k, row, column, c)
					if from == nil {
						return
					}
					*sum.at(k, i, j, c) += *from
					*dSum.at(k, row, column, c) += *g.at(k, i, j, c)
					best := &chosen[((k*g.dims[1]+i)*g.dims[2]+j)*channels+c]
					if *best == nil || *from > *most.at(k, i, j, c) {
						*best, *most.at(k, i, j, c) = dMost.at(k, row, column, c), *from
					}
				})
			})
		}
		for i, to := range chosen {
			*to += g.data[i]
		}
		in := map[string]*tensor.Tensor{"x": x.tensor(), "g": g.tensor()}
		out := runGraph(t, in, func(gr *graph.Graph) []*node {
			xn, gn := f32(gr, "x", x.dims[:]...), f32(gr, "g", g.dims[:]...)
			var list []*node
			for _, pool := range []*graph.PoolBuilder{graph.MaxPool(xn), graph.SumPool(xn)} {
				pool = pool.Window(s.size).Strides(s.stride)
				if s.padding > 0 {
					pool = pool.PaddingPerDim([][2]int{{s.padding, s.padding}, {s.padding, s.padding}})
				}
				yn := pool.Done()
				list = append(list, yn, graph.Gradient(graph.ReduceAllSum(graph.Mul(yn, gn)), xn)[0])
			}
			return list
		})
		for i, want := range []image{most, dMost, sum, dSum} {
			checkData(t, fmt.Sprintf("%+v, result %d", s, i), out[i], want.data)
		}
	}
}

// TestNeighbours sums the rows of the sources of edges into the rows of their targets, and back: messages in a graph.
func TestNeighbours(t *testing.T) {
	from, to := tensor.FromI32([]int32{0, 1, 2, 2, 0}, 5, 1), tensor.FromI32([]int32{1, 0, 1, 1, 3}, 5, 1)
	in := map[string]*tensor.Tensor{"x": tensor.FromF32([]float32{1, 2, 10, 20, 100, 200, 1000, 2000}, 4, 2),
		"from": from, "to": to,
		"g": tensor.FromF32([]float32{1, 1, 2, 3, 5, 5, 7, 7}, 4, 2)}
	out := runGraph(t, in, func(g *graph.Graph) []*node {
		x := f32(g, "x", 4, 2)
		messages := graph.Gather(x, input(g, "from", dtypes.Int32, 5, 1))
		y := graph.ScatterSum(graph.ZerosLike(x), input(g, "to", dtypes.Int32, 5, 1), messages, false, false)
		return append([]*node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, f32(g, "g", 4, 2))), x)...)
	})
	checkData(t, "messages", out[0], []float32{10, 20, 201, 402, 0, 0, 1, 2})
	checkData(t, "gradient", out[1], []float32{9, 10, 1, 1, 4, 6, 0, 0})
}

func TestGivenValues(t *testing.T) {
	b := program.NewBuilder()
	key := b.Input("key", tensor.Make(tensor.Int64, 3))
	words, err := b.Random(key, 4)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]program.Value{"words": words}
	build := func(dims ...int) error {
		_, err := RecordWith(b, given, func(g *graph.Graph) []*node {
			return one(graph.ConvertDType(input(g, "words", dtypes.Uint32, dims...), dtypes.Float32))
		})
		return err
	}
	if err := build(4); err != nil {
		t.Fatal(err)
	}
	if err := build(5); err == nil {
		t.Error("a value of 4 elements was given for a parameter of 5")
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if in := p.Inputs(); len(in) != 1 || in[0].Name != "key" {
		t.Errorf("inputs are %v, want the key alone", in)
	}
}

func TestUnsupportedWindows(t *testing.T) {
	for name, build := range map[string]func(g *graph.Graph) *node{
		"ConvGeneral": func(g *graph.Graph) *node {
			return graph.Convolve(f32(g, "x", 1, 4, 4, 4), f32(g, "w", 2, 2, 2, 2)).ChannelGroupCount(2).Done()
		},
		"SelectAndScatterMin": func(g *graph.Graph) *node {
			x := f32(g, "x", 1, 4, 4, 1)
			return graph.Gradient(graph.ReduceAllSum(graph.MinPool(x).Window(2).Done()), x)[0]
		},
	} {
		_, err := Record(program.NewBuilder(), func(g *graph.Graph) []*node { return one(build(g)) })
		var bad *UnsupportedError
		if !errors.As(err, &bad) || bad.Operator != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
