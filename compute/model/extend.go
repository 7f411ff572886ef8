package model

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// KeysName and ValuesName are the inputs and outputs of Extend that hold what a layer remembers.
func KeysName(layer int) string   { return fmt.Sprintf("keys/%d", layer) }
func ValuesName(layer int) string { return fmt.Sprintf("values/%d", layer) }

// Memory is the number of layers that remember, and the shape of the keys, and of the values, that a layer remembers of
// n tokens: float32 [n, kvHeads, headDim].
func (c Config) Memory(n int) (layers int, s tensor.Shape) {
	return c.layers, tensor.Make(tensor.Float32, n, c.kvHeads, c.headDim)
}

// Extend returns the program that continues one sequence by length tokens, given the keys and values of those before:
// the work of a token does not grow with what was computed for others. A prompt is read with many tokens at once, text
// is written with a length of 1.
//
// Inputs: "tokens" int32 [1, length]; "start" int32, the number of tokens before them, at most past; "last" int32, the
// token of these whose logits are wanted; for each layer its Memory of past tokens, KeysName and ValuesName, finite
// everywhere, of which the first start count; the tensors "p/<name>". Outputs: "logits" [vocab]; for each layer the
// Memory of these tokens. Tokens after the last one that counts change nothing before them: a short piece may be filled up.
//
// The logits are those of Logits but for rounding: a score of the past and one among the tokens are summed apart.
func Extend(c Config, length, past int) (*program.Program, error) {
	if err := c.check(1, length); err != nil {
		return nil, err
	}
	if past < 1 || past > c.positions {
		return nil, fmt.Errorf("%w: memory of %d tokens must be in 1..%d, the positions of the model", ErrStep, past, c.positions)
	}
	t := c.task(tokenBatch(1, length))
	b := program.NewBuilder()
	layers, memory := c.Memory(past)
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		tokens := parameters(g, "", t.Batch)[0]
		scalar := shapes.Make(dtypes.Int32)
		s := continued{start: graph.Parameter(g, "start", scalar), kept: &kept{}}
		last := graph.Parameter(g, "last", scalar)
		var before []Named
		for i := range layers {
			before = append(before, Named{Name: KeysName(i), Shape: memory}, Named{Name: ValuesName(i), Shape: memory})
		}
		s.past = parameters(g, "", before)
		counted := graph.Add(graph.Iota(g, shapes.Make(dtypes.Int32, length), 0), graph.BroadcastToDims(s.start, length))
		s.positions = graph.MinScalar(counted, c.positions-1) // of tokens that fill up
		w, _ := t.inputs(g)
		x := c.family.hidden(c, w, tokens, s)
		x = lookup(x, graph.Reshape(last, 1))
		return append([]*graph.Node{flat(c.family.output(c, w, x))}, s.kept.nodes...)
	})
	if err != nil {
		return nil, err
	}
	b.Output("logits", values[0])
	for i := range layers {
		b.Output(KeysName(i), values[1+2*i])
		b.Output(ValuesName(i), values[2+2*i])
	}
	return finish(b)
}

// continued is one sequence, of which the tokens [1, length] stand at the given positions from start on.
type continued struct {
	start     *graph.Node   // int32
	positions *graph.Node   // int32 [length]
	past      []*graph.Node // keys and values of each layer, [past, kvHeads, headDim], of which the first start count
	kept      *kept
}

// kept is the keys and values of the tokens themselves, as the layers make them: [length, kvHeads, headDim].
type kept struct{ nodes []*graph.Node }

func (s continued) places(table *graph.Node) *graph.Node {
	return graph.InsertAxes(lookup(table, s.positions), 0)
}

// rope computes what newRope has in tables, with the same bits.
func (s continued) rope(theta float64, headDim int) rope {
	length, half := dims(s.positions)[0], headDim/2
	grid := func(x *graph.Node, axis int) *graph.Node {
		return graph.ExpandAndBroadcast(x, []int{length, half}, []int{axis})
	}
	frequencies := graph.Const(s.start.Graph(), ropeFrequencies(theta, headDim))
	angles := graph.Mul(grid(graph.ConvertDType(s.positions, dtypes.Float32), 1), grid(frequencies, 0))
	table := func(x *graph.Node) *graph.Node { return graph.Reshape(x, 1, length, 1, 1, half) }
	r := rope{cos: table(graph.Cos(angles)), sin: table(graph.Sin(angles))}
	r.minusSin = graph.Neg(r.sin)
	return r
}

func (s continued) layer(i int) attention { return remembering{s, s.past[2*i], s.past[2*i+1]} }

// remembering is the attention of a layer to the keys and values of the past, and to those of the tokens.
type remembering struct {
	continued
	keys, values *graph.Node
}

func (remembering) batch() int { return 1 }

// attend normalises once, over the scores of the past and of the tokens.
func (s remembering) attend(q, k, v *graph.Node) *graph.Node {
	shape := dims(q) // [1, length, kvHeads, group, headDim]
	length, kvHeads, group, headDim := shape[1], shape[2], shape[3], shape[4]
	k, v = graph.Reshape(k, length, kvHeads, headDim), graph.Reshape(v, length, kvHeads, headDim)
	s.kept.nodes = append(s.kept.nodes, k, v)
	q = scaled(graph.Reshape(q, length, kvHeads, group, headDim), headDim)

	score := func(keys, mask *graph.Node) *graph.Node { // [kvHeads, length, group, keys]
		x := graph.DotGeneral(q, []int{3}, []int{1}, keys, []int{2}, []int{1})
		return graph.Add(x, graph.BroadcastToDims(mask, dims(x)...))
	}
	before := score(s.keys, s.unseen())
	among := score(k, graph.Reshape(causalMask(q.Graph(), length), 1, length, 1, length))
	most := graph.Max(graph.ReduceMax(before, -1), graph.ReduceMax(among, -1))
	before, among = graph.Exp(graph.Sub(before, across(most, before))), graph.Exp(graph.Sub(among, across(most, among)))
	sum := graph.Add(graph.ReduceSum(before, -1), graph.ReduceSum(among, -1))

	mix := func(shares, values *graph.Node) *graph.Node { // [kvHeads, length, group, headDim]
		return graph.DotGeneral(shares, []int{3}, []int{0}, values, []int{0}, []int{1})
	}
	mixed := graph.Add(mix(before, s.values), mix(among, v))
	mixed = graph.Mul(mixed, across(graph.Reciprocal(sum), mixed))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 1, 0, 2, 3), length, -1)
}

// unseen is 0 for the tokens of the past that count and masked for the others: [1, 1, 1, past].
func (s remembering) unseen() *graph.Node {
	g, past := s.start.Graph(), dims(s.keys)[0]
	counts := graph.LessThan(graph.Iota(g, shapes.Make(dtypes.Int32, past), 0), graph.BroadcastToDims(s.start, past))
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, past))
	return graph.Reshape(graph.Where(counts, zero, graph.AddScalar(zero, masked)), 1, 1, 1, past)
}
