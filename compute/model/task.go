package model

import (
	"errors"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Names of inputs and outputs of programs: weights, the two moments of each, and what it was when its unit began, are
// prefixed with these.
const (
	paramPrefix  = "p/"
	firstPrefix  = "m/"
	secondPrefix = "v/"
	beginPrefix  = "b/"
)

// ErrStep is wrapped by errors about a batch, a sequence length, an optimizer or a loss that no step can have.
var ErrStep = errors.New("model: invalid step")

// A Task is a loss of a model on a batch, and what of the model is trained to lower it. Tasks are made by functions
// such as Language.
//
// Programs of a task take the batch under its own names, such as "tokens", or "x" and "y", then all tensors under
// "p/<name>": first the frozen ones, then the trained ones.
type Task struct {
	Batch   []Named  // inputs of one batch
	Frozen  []Named  // tensors that are read
	Trained []Named  // tensors that are read and updated
	Metrics []string // outputs besides the loss: float32 scalars

	scale float64 // of what adapters add
	// loss returns the loss, then the metrics.
	loss func(w weights, batch []*graph.Node) []*graph.Node
}

// TrainStep returns the program of one step of AdamW on one batch: forward, backward, clip, update.
//
// Inputs: the batch; the float32 scalars "lr", "c1" = 1/(1-beta1^t) and
// "c2" = 1/(1-beta2^t) for step t counted from 1; each tensor as "p/<name>", frozen ones first; for each trained tensor
// "m/<name>", then for each "v/<name>", and with a proximal term "b/<name>". Outputs: all trained p/, then m/ and v/
// after the step; "grad_norm", the norm of all gradients before clipping to min(1, MaxGradNorm/(grad_norm+1e-6));
// "loss" before the step; the metrics.
func (t Task) TrainStep(o AdamW) (*program.Program, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	u := update{b: b, o: o}
	n := len(t.Trained)
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		var nodes []*graph.Node
		for _, name := range []string{"lr", "c1", "c2"} {
			nodes = append(nodes, graph.Parameter(g, name, shapes.Make(dtypes.Float32)))
		}
		w, params := t.inputs(g)
		loss := t.loss(w, batch)
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

// Eval returns the program of the loss. Inputs: the batch and the tensors as "p/<name>"; outputs: "loss", the same bits
// as TrainStep's, and the metrics.
func (t Task) Eval() (*program.Program, error) {
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		w, _ := t.inputs(g)
		return t.loss(w, batch)
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
