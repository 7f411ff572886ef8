package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Names of inputs and outputs of programs: weights, the two moments of each, and what it was when its unit began, are prefixed with
// these.
const (
	paramPrefix  = "p/"
	firstPrefix  = "m/"
	secondPrefix = "v/"
	beginPrefix  = "b/"
)

// ErrStep is wrapped by errors about a batch, a sequence length, an optimizer or a loss that no step can have.
var ErrStep = errors.New("model: invalid step")

// A Task is a loss of a model on a batch, and what of the model is trained to lower it. Tasks are made by functions such
// as Language and Classify.
//
// Programs of a task take the batch under its own names, such as "tokens", or "x" and "y", then all tensors under
// "p/<name>": first the frozen ones, then the trained ones.
type Task struct {
	Batch   []Named  // inputs of one batch
	Frozen  []Named  // tensors that are read
	Trained []Named  // tensors that are read and updated
	Metrics []string // outputs besides the loss: float32 scalars

	scale   float64 // of what adapters add
	dropout []dropout
	// loss returns the loss, then the metrics. Masks are those of dropout, none outside of training.
	loss func(w weights, batch, masks []*graph.Node) []*graph.Node
}

// dropout zeroes a share rate of the elements of a value of the given dimensions.
type dropout struct {
	rate float64
	dims []int
}

// blocks is the number of blocks of random words that a mask takes.
func (d dropout) blocks() int64 { return int64(tensor.Make(tensor.Uint32, d.dims...).Elements()+3) / 4 }

// drop keeps the elements of x where mask i is true, scaled so that their mean stays (Srivastava et al. 2014, section 10).
// Outside of training there are no masks, and x stays as it is.
func drop(x *graph.Node, masks []*graph.Node, i int, rate float64) *graph.Node {
	if i >= len(masks) {
		return x
	}
	return graph.Where(masks[i], graph.MulScalar(x, 1/(1-rate)), graph.ScalarZero(x.Graph(), dtypes.Float32))
}

// RandomBlocks is the number of blocks of random words that a training step reads from its index on; 0 is no dropout.
func (t Task) RandomBlocks() int64 {
	var n int64
	for _, d := range t.dropout {
		n += d.blocks()
	}
	return n
}

// TrainStep returns the program of one step of AdamW on one batch: forward, backward, clip, update.
//
// Inputs: the batch; for a task with dropout "random" int64 [3], the seed, stream and index of its random words, of
// which the next step takes those RandomBlocks further on; the float32 scalars "lr", "c1" = 1/(1-beta1^t) and
// "c2" = 1/(1-beta2^t) for step t counted from 1; each tensor as "p/<name>", frozen ones first; for each trained tensor
// "m/<name>", then for each "v/<name>", and with a proximal term "b/<name>". Outputs: all trained p/, then m/ and v/ after the step; "grad_norm", the norm of
// all gradients before clipping to min(1, MaxGradNorm/(grad_norm+1e-6)); "loss" before the step; the metrics.
func (t Task) TrainStep(o AdamW) (*program.Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	u := update{b: b, o: o}
	given, err := t.masks(b)
	if err != nil {
		return nil, err
	}
	n := len(t.Trained)
	values, err := record.RecordWith(b, given, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		masks := make([]*graph.Node, len(t.dropout))
		for i, d := range t.dropout {
			masks[i] = graph.Parameter(g, maskName(i), shapes.Make(dtypes.Bool, d.dims...))
		}
		var nodes []*graph.Node
		for _, name := range []string{"lr", "c1", "c2"} {
			nodes = append(nodes, graph.Parameter(g, name, shapes.Make(dtypes.Float32)))
		}
		w, params := t.inputs(g)
		loss := t.loss(w, batch, masks)
		nodes = append(append(nodes, params...), graph.Gradient(loss[0], params...)...)
		return append(nodes, loss...)
	})
	if err != nil {
		return nil, err
	}
	u.lr, u.c1, u.c2 = values[0], values[1], values[2]
	u.apply(t.Trained, values[3:3+n], values[3+n:3+2*n])
	t.output(b, values[3+2*n:])
	if u.err != nil {
		return nil, u.err
	}
	return finish(b)
}

// Eval returns the program of the loss without dropout. Inputs: the batch and the tensors as "p/<name>"; outputs: "loss"
// (without dropout the same bits as TrainStep's) and the metrics.
func (t Task) Eval() (*program.Program, error) {
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		w, _ := t.inputs(g)
		return t.loss(w, batch, nil)
	})
	if err != nil {
		return nil, err
	}
	t.output(b, values)
	return finish(b)
}

func (t Task) output(b *program.Builder, values []program.Value) {
	for i, name := range append([]string{"loss"}, t.Metrics...) {
		b.Output(name, values[i])
	}
}

func maskName(i int) string { return fmt.Sprint("mask", i) }

// masks makes the masks of dropout, by the names of the parameters they are given for: true where a random word is at
// least rate*2^32. The masks of a step take consecutive blocks.
func (t Task) masks(b *program.Builder) (given map[string]program.Value, err error) {
	if len(t.dropout) == 0 {
		return nil, nil
	}
	u := update{b: b}
	key := b.Input("random", tensor.Make(tensor.Int64, 3))
	given = map[string]program.Value{}
	var from int64
	for i, d := range t.dropout {
		at := u.keep(b.Binary(program.Add, key, b.Constant(tensor.FromI64([]int64{0, 0, from}, 3))))
		words := u.keep(b.Random(at, d.dims...))
		least := tensor.New(tensor.Make(tensor.Uint32))
		tensor.As[uint32](least.Bytes())[0] = uint32(math.Round(float64(d.rate * (1 << 32))))
		bound := u.keep(b.Broadcast(b.Constant(least), d.dims, nil))
		given[maskName(i)] = u.keep(b.Compare(program.GreaterEqual, words, bound))
		from += d.blocks()
	}
	return given, u.err
}

// inputs makes a parameter "p/<name>" for each tensor of the task, and lists those of the trained ones.
func (t Task) inputs(g *graph.Graph) (w weights, trained []*graph.Node) {
	w.nodes, w.scale = make(map[string]*graph.Node), t.scale
	for i, node := range parameters(g, paramPrefix, t.Frozen) {
		w.nodes[t.Frozen[i].Name] = node
	}
	trained = parameters(g, paramPrefix, t.Trained)
	for i, node := range trained {
		w.nodes[t.Trained[i].Name] = node
	}
	return w, trained
}

// parameters makes a parameter for each tensor.
func parameters(g *graph.Graph, prefix string, list []Named) []*graph.Node {
	nodes := make([]*graph.Node, len(list))
	for i, n := range list {
		d := dtypes.Float32
		if n.Shape.DType == tensor.Int32 {
			d = dtypes.Int32
		}
		nodes[i] = graph.Parameter(g, prefix+n.Name, shapes.Make(d, n.Shape.Dims...))
	}
	return nodes
}

func finish(b *program.Builder) (*program.Program, error) {
	p, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return p.Simplify(), nil
}
