package model

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/rotary"
	"github.com/starling-network/starling/compute/model/sequence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// KeysName and ValuesName are the inputs and outputs of Extend that hold what a layer remembers of a sequence.
func KeysName(layer, sequence int) string   { return fmt.Sprintf("keys/%d/%d", layer, sequence) }
func ValuesName(layer, sequence int) string { return fmt.Sprintf("values/%d/%d", layer, sequence) }

// AdapterName and ScaleName are the inputs of Extend that hold a tensor of the adapters of a sequence, and the factor
// of their product.
func AdapterName(sequence int, name string) string { return fmt.Sprintf("a/%d/%s", sequence, name) }
func ScaleName(sequence int) string                { return fmt.Sprintf("scale/%d", sequence) }

// Memory is the number of layers that remember, and the shape of the keys, and of the values, that a layer remembers of
// n tokens: float32 [n, kvHeads, headDim].
func Memory(c architecture.Config, n int) (layers int, s tensor.Shape) {
	return c.Layers, tensor.Make(tensor.Float32, n, c.KVHeads, c.HeadDim)
}

// Extend returns the program that continues n sequences by length tokens each, given the keys and values of those
// before: the work of a token does not grow with the work for others. A prompt is read with many tokens of one
// sequence at once, text is written with one token of each of many sequences.
//
// Inputs: "tokens" int32 [n, length]; "start" int32 [n], the number of tokens before them, at most past; "last" int32
// [n], the token of these whose logits are wanted; for each layer and sequence its Memory of past tokens, KeysName and
// ValuesName, finite everywhere, of which the first start count; the tensors "p/<name>"; and of a model with adapters,
// for each sequence its own Adapters, AdapterName, and the float32 scalar ScaleName. Outputs: "logits" [n, vocab]; for
// each layer and sequence the Memory of these tokens. Tokens after the last one that counts change nothing before them:
// a short piece may be filled up.
//
// The logits are those of Logits but for rounding: a score of the past and one among the tokens are summed apart. Those
// of a sequence have the same bits whatever the others are, whatever n is, and for every past that is long enough: what
// does not count adds zeros at the end of sums, which changes no bit of them.
//
// With every, the logits after all tokens are wanted: there is no input "last", and "logits" is [n * length, vocab].
func Extend(c architecture.Config, n, length, past int, every bool) (*program.Program, error) {
	if err := checkSize(c, n, length); err != nil {
		return nil, err
	}
	if past < 1 || past > c.Context() {
		return nil, fmt.Errorf("%w: memory of %d tokens must be in 1..%d, the positions of the model", ErrStep, past,
			c.Context())
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		tokens := parameters(g, "", []architecture.Named{tokenBatch(n, length)})[0]
		vector := shapes.Make(dtypes.Int32, n)
		s := continued{start: graph.Parameter(g, "start", vector), kept: &kept{}}
		var last *graph.Node
		if !every {
			last = graph.Parameter(g, "last", vector)
		}
		s.remembered(g, c, n, past)
		s.place(c, n, length)
		w := extended(c, g, n)
		x := decoder.Hidden(c, w, tokens, s)
		if !every {
			first := graph.MulScalar(graph.Iota(g, vector, 0), length)
			x = lookup(x, graph.Add(first, last))
		}
		return append([]*graph.Node{decoder.Output(c, w, x)}, s.kept.nodes...)
	})
	if err != nil {
		return nil, err
	}
	b.Output("logits", values[0])
	for i := range c.Layers {
		for j := range n {
			b.Output(KeysName(i, j), values[1+2*(i*n+j)])
			b.Output(ValuesName(i, j), values[2+2*(i*n+j)])
		}
	}
	return finish(b)
}

// extended makes a parameter of each tensor, and of the adapters of each of n sequences.
func extended(c architecture.Config, g *graph.Graph, n int) weights {
	w := weights{Nodes: make(map[string]*graph.Node)}
	list := c.Tensors()
	for i, node := range parameters(g, paramPrefix, list) {
		w.Nodes[list[i].Name] = node
	}
	adapters := c.Adapters()
	for i := range n {
		if len(adapters) == 0 {
			break
		}
		a := decoder.Own{Nodes: make(map[string]*graph.Node),
			Scale: graph.Parameter(g, ScaleName(i), shapes.Make(dtypes.Float32))}
		for _, n := range adapters {
			a.Nodes[n.Name] = graph.Parameter(g, AdapterName(i, n.Name), shapes.Make(dtypes.Float32, n.Shape.Dims...))
		}
		w.Each = append(w.Each, a)
	}
	return w
}

// continued is n sequences, of which the tokens [n, length] stand at the given positions, from start on each.
type continued struct {
	start     *graph.Node   // int32 [n]
	positions *graph.Node   // int32 [n, length]
	past      []*graph.Node // of each layer, of each sequence: keys and values [past, kvHeads, headDim]
	kept      *kept
}

// kept is the keys and values of the tokens themselves, as the layers make them, in the order of past: [length,
// kvHeads, headDim].
type kept struct{ nodes []*graph.Node }

// remembered makes the inputs of the past.
func (s *continued) remembered(g *graph.Graph, c architecture.Config, n, past int) {
	layers, memory := Memory(c, past)
	var before []architecture.Named
	for i := range layers {
		for j := range n {
			before = append(before, architecture.Named{Name: KeysName(i, j), Shape: memory},
				architecture.Named{Name: ValuesName(i, j), Shape: memory})
		}
	}
	s.past = parameters(g, "", before)
}

// place computes the positions; those of tokens that fill up may lie beyond the last one, which they take then.
func (s *continued) place(c architecture.Config, n, length int) {
	g := s.start.Graph()
	counted := graph.Add(graph.Iota(g, shapes.Make(dtypes.Int32, n, length), 1),
		graph.ExpandAndBroadcast(s.start, []int{n, length}, []int{1}))
	s.positions = graph.MinScalar(counted, c.Context()-1)
}

func (s continued) Places(table *graph.Node) *graph.Node { return lookup(table, s.positions) }

func (s continued) Rope(of rotary.Rotary) attention.Rope { return attention.NewRope(s.positions, of) }

func (s continued) Layer(i int) sequence.Attender {
	n := s.Batch()
	return remembering{s, s.past[2*n*i:][:2*n]}
}

func (s continued) Batch() int { return dims(s.start)[0] }

// remembering is the attention of a layer to the keys and values of the past, and to those of the tokens.
type remembering struct {
	continued
	memory []*graph.Node // keys and values of each sequence
}

// Attend lets each sequence see its own past.
func (s remembering) Attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	mixed := make([]*graph.Node, s.Batch())
	for i := range mixed {
		one := func(x *graph.Node) *graph.Node { return graph.Slice(x, graph.AxisRange(i, i+1)) }
		mixed[i] = s.attendOne(i, one(q), one(k), one(v), look)
	}
	if len(mixed) == 1 {
		return mixed[0]
	}
	return graph.Concatenate(mixed, 0)
}

// attendOne normalises once, over the scores of the past and of the tokens.
func (s remembering) attendOne(i int, q, k, v *graph.Node, look attention.View) *graph.Node {
	shape := dims(q) // [1, length, kvHeads, group, headDim]
	length, kvHeads, group, headDim := shape[1], shape[2], shape[3], shape[4]
	k, v = graph.Reshape(k, length, kvHeads, headDim), graph.Reshape(v, length, kvHeads, headDim)
	s.kept.nodes = append(s.kept.nodes, k, v)
	q = look.Scaled(graph.Reshape(q, length, kvHeads, group, headDim))

	score := func(keys, mask *graph.Node) *graph.Node { // [kvHeads, length, group, keys]
		x := graph.DotGeneral(q, []int{3}, []int{1}, keys, []int{2}, []int{1})
		x = attention.Capped(x, look.Limit)
		return graph.Add(x, graph.BroadcastToDims(mask, dims(x)...))
	}
	start := graph.Reshape(graph.Slice(s.start, graph.AxisRange(i, i+1)))
	before := score(s.memory[2*i], attention.PastMask(start, length, dims(s.memory[2*i])[0], look.Window))
	among := score(k, graph.Reshape(attention.CausalMask(q.Graph(), length, look.Window), 1, length, 1, length))
	most := graph.Max(graph.ReduceMax(before, -1), graph.ReduceMax(among, -1))
	before, among = graph.Exp(graph.Sub(before, across(most, before))), graph.Exp(graph.Sub(among, across(most, among)))
	sum := graph.Add(graph.ReduceSum(before, -1), graph.ReduceSum(among, -1))

	mix := func(shares, values *graph.Node) *graph.Node { // [kvHeads, length, group, headDim]
		return graph.DotGeneral(shares, []int{3}, []int{0}, values, []int{0}, []int{1})
	}
	mixed := graph.Add(mix(before, s.memory[2*i+1]), mix(among, v))
	mixed = graph.Mul(mixed, across(graph.Reciprocal(sum), mixed))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 1, 0, 2, 3), length, -1)
}

// across repeats x [..., n] along a new last axis to the shape of like [..., n, m].
func across(x, like *graph.Node) *graph.Node {
	return graph.ExpandAndBroadcast(x, dims(like), []int{-1})
}

// lookup returns the rows of table [rows, width] for indices of any shape.
func lookup(table, indices *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(indices, -1))
}
