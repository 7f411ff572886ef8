// Package model makes the programs that train, evaluate and continue the models that compute/model/architecture
// describes. A Task is a model, a batch and a loss, and gives the programs that train and evaluate it.
//
// It runs nothing and reads no files. GoMLX differentiates the models, and nothing of it is left in the programs.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/apart"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/ways"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/reorder"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// paramPrefix is the prefix of the names of weights, as inputs and outputs of programs.
const paramPrefix = optimizer.Param

// Dice is the input of a step that draws: a key of the random streams that say what is dropped, as record.Dropout takes
// it, and which tokens answers have, as record.Gumbel does.
const Dice = "dice"

// ErrStep is wrapped by errors about a batch, a sequence length, an optimizer or a loss that no step can have.
var ErrStep = errors.New("model: invalid step")

// weights are the tensors of a model as nodes of a graph.
type weights = decoder.Weights

// A Task is a loss of a model on a batch, and what of the model is trained to lower it. Tasks are made by functions
// such as Language.
//
// Programs of a task take the batch under its own names, such as "tokens", or "x" and "y", then all tensors under
// "p/<name>": first the frozen ones, then the trained ones.
type Task struct {
	Batch   []architecture.Named // inputs of one batch
	Frozen  []architecture.Named // tensors that are read
	Trained []architecture.Named // tensors that are read and updated
	Metrics []string             // outputs of Eval besides the loss: float32 scalars

	scale   float64    // of the outputs of adapters
	dropout float64    // the dropped share of the inputs of adapters
	hidden  float64    // and of the additions to the residual stream
	half    bool       // layers read and give bfloat16
	form    exact.Form // of the products of layers
	micro   int        // rows of the batch that a step computes at a time; 0: all
	ways    []ways.Way // of the microbatches of a step; nil: all pass all layers
	draws   bool       // a step draws answers: it has Dice
	// prepare makes of a batch what the loss of a step reads, with as many rows; nil: the loss reads the batch.
	prepare func(w weights, batch []*graph.Node) []*graph.Node
	// loss returns the loss of a part of the batch, then the metrics: their shares of the values of the whole.
	loss func(w weights, part, whole []*graph.Node) []*graph.Node
	// apart is the answers that a step learns from, which prepare does not make; nil: it prepares its batch.
	apart *apart.Answers[weights]
	// drawn is what Drawn has; nil: no answers are drawn
	drawn func(w weights, batch []*graph.Node) []*graph.Node
	// measure is what Eval has in place of loss, if it is another
	measure func(w weights, batch []*graph.Node) []*graph.Node
}

// TrainStep returns the program of one step of an optimizer on one batch: forward, backward, clip, update.
//
// Inputs: the batch; with dropout, or where answers are drawn, the int64 [3] Dice; the float32 scalars "lr", "c1" =
// 1/(1-beta1^t) and "c2" = 1/(1-beta2^t) for step t counted from 1; each tensor as "p/<name>", frozen ones first; what
// the optimizer remembers of each trained tensor, of AdamW "m/<name>" for each, then for each "v/<name>"; with a
// proximal term "b/<name>". Outputs: all trained p/, then what is remembered of them after the step; "grad_norm", the
// norm of all gradients before clipping to min(1, MaxGradNorm/(grad_norm+1e-6)); "loss" before the step.
func (t Task) TrainStep(o optimizer.Optimizer) (*program.Program, error) { return t.LateStep(o, nil) }

// Leaving is the task whose steps compute microbatches with some of the layers alone: left has those that each leaves
// out. The gradient of a layer is that of the microbatches that pass it. Eval computes all layers.
func (t Task) Leaving(c architecture.Config, left [][]int) (_ Task, err error) {
	if t.ways, err = ways.Of(c, t.Trained, left, t.Batch[0].Shape.Dims[0], t.micro); err != nil {
		err = fmt.Errorf("%w: %w", ErrStep, err)
	}
	return t, err
}

// Late is how a stage that does not wait for the others trains a tensor: from gradients of its weights before the last
// Steps updates, which are clipped by the norm of those of the stage.
type Late struct{ Steps, Stage int }

// LateStep is TrainStep for stages that do not wait for each other: late says how each trained tensor is trained, by
// name; nil: all at once. The forward and the backward read tensors that are k steps late as "h/k/<name>". The step
// outputs "h/1/<name>" up to that, each the value of the one before.
func (t Task) LateStep(o optimizer.Optimizer, late map[string]Late) (*program.Program, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStep, err)
	}
	b := program.NewBuilder()
	n, added := len(t.Trained), 0
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		var nodes []*graph.Node
		for _, name := range []string{"lr", "c1", "c2"} {
			nodes = append(nodes, graph.Parameter(g, name, shapes.Make(dtypes.Float32)))
		}
		w, params := t.inputs(g)
		read := t.earlier(g, w, params, late)
		if t.draws || t.dropout+t.hidden > 0 {
			w.Dice = &record.Dice{Key: graph.Parameter(g, Dice, shapes.Make(dtypes.Int64, 3))}
		}
		var passed []*graph.Node
		switch {
		case t.apart != nil:
			batch, passed = t.apart.Record(w, batch, func(prefix string, list []architecture.Named) []*graph.Node {
				return parameters(g, prefix, list)
			})
		case t.prepare != nil:
			batch = t.prepare(w, batch)
		}
		sums, partial := t.gradients(w, read, batch)
		added = len(partial)
		return slices.Concat(nodes, params, sums, passed, partial)
	})
	if err != nil {
		return nil, err
	}
	last := len(values) - added
	values, early := values[:last], values[last:]
	if t.apart != nil {
		t.apart.Name(b, values[4+2*n:])
	}
	trained := make([]optimizer.Tensor, n)
	for i, named := range t.Trained {
		trained[i] = optimizer.Tensor{Name: named.Name, Shape: named.Shape, Stage: late[named.Name].Stage}
		keepEarlier(b, trained[i], values[3+i], late[named.Name].Steps)
	}
	if err := optimizer.Append(b, o, trained, values[3:3+n], values[3+n:3+2*n], values[0], values[1],
		values[2]); err != nil {
		return nil, err
	}
	b.Output("loss", values[3+2*n])
	p, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return reorder.Soon(p, early).Simplify(), nil
}

// earlier makes a model read the tensors that are late, and lists what it reads of the trained ones.
func (t Task) earlier(g *graph.Graph, w weights, params []*graph.Node, late map[string]Late) []*graph.Node {
	read := slices.Clone(params)
	for i, named := range t.Trained {
		if k := late[named.Name].Steps; k > 0 {
			read[i] = graph.Parameter(g, optimizer.EarlierName(k, named.Name), params[i].Shape())
			w.Nodes[named.Name] = read[i]
		}
	}
	return read
}

// keepEarlier outputs the values of a tensor before the last updates, up to a number of them.
func keepEarlier(b *program.Builder, t optimizer.Tensor, now program.Value, steps int) {
	for k := 1; k <= steps; k++ {
		b.Output(optimizer.EarlierName(k, t.Name), now)
		if k < steps {
			now = b.Input(optimizer.EarlierName(k, t.Name), t.Shape)
		}
	}
}

// gradients returns the gradients and the loss, and what they are the sums of: the sums up to each
// part of the batch but the first.
func (t Task) gradients(w weights, params, batch []*graph.Node) (sums, partial []*graph.Node) {
	rows := dims(batch[0])[0]
	size := cmp.Or(t.micro, rows)
	for from := 0; from < rows; from += size {
		part := batch
		if size < rows {
			part = make([]*graph.Node, len(batch))
			for i, x := range batch {
				part[i] = graph.Slice(x, graph.AxisRange(from, from+size))
			}
		}
		way := ways.At(t.ways, from/size)
		w.Left = way.Left
		loss := t.loss(w, part, batch)[:1]
		sums, partial = ways.Add(sums, append(way.Gradients(loss[0], params), loss...), partial)
	}
	return sums, partial
}

// Eval returns the program of the loss. Inputs: the batch and the tensors as "p/<name>"; outputs: "loss", the same bits
// as TrainStep's unless the task says otherwise, and the metrics.
func (t Task) Eval() (*program.Program, error) {
	return t.outputs(append([]string{"loss"}, t.Metrics...), func(w weights, batch []*graph.Node) []*graph.Node {
		if t.measure != nil {
			return t.measure(w, batch)
		}
		return t.loss(w, batch, batch)
	})
}

// Outputs of Drawn.
const (
	DrawnAnswers    = "answers"    // int32 [answers, tokens]
	DrawnRewards    = "reward"     // float32 [answers]
	DrawnCounted    = "counted"    // float32 [answers, tokens]: 1 for tokens that count, else 0
	DrawnDivergence = "divergence" // float32 [answers*tokens]: of tokens that count, from the reference model
)

// Drawn returns the program that draws the answers to a batch as a step does, to the bit, and rewards them; nil if a
// step draws none. Inputs: the batch, Dice, and the tensors as "p/<name>".
func (t Task) Drawn() (*program.Program, error) {
	if t.drawn == nil {
		return nil, nil
	}
	names := []string{DrawnAnswers, DrawnRewards, DrawnCounted, DrawnDivergence}
	return t.outputs(names, func(w weights, batch []*graph.Node) []*graph.Node {
		w.Dice = &record.Dice{Key: graph.Parameter(batch[0].Graph(), Dice, shapes.Make(dtypes.Int64, 3))}
		return t.drawn(w, batch)
	})
}

// outputs returns the program that computes values of a batch.
func (t Task) outputs(names []string, of func(w weights, batch []*graph.Node) []*graph.Node) (*program.Program, error) {
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		batch := parameters(g, "", t.Batch)
		w, _ := t.inputs(g)
		return of(w, batch)
	})
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		b.Output(names[i], v)
	}
	return finish(b)
}

// inputs makes a parameter "p/<name>" for each tensor of the task, and lists those of the trained ones.
func (t Task) inputs(g *graph.Graph) (w weights, trained []*graph.Node) {
	w.Nodes, w.Scale, w.Half, w.Form = make(map[string]*graph.Node), t.scale, t.half, t.form
	w.Dropout, w.Hidden = t.dropout, t.hidden
	frozen := parameters(g, paramPrefix, t.Frozen)
	for i, node := range frozen {
		if blocks.Coded(t.Frozen[i].Shape) { // its scales follow
			node = record.Dequantise(node, frozen[i+1], blocks.NormalFloat)
		}
		w.Nodes[t.Frozen[i].Name] = node
	}
	trained = parameters(g, paramPrefix, t.Trained)
	for i, node := range trained {
		w.Nodes[t.Trained[i].Name] = node
	}
	return w, trained
}

// parameters makes a parameter for each tensor.
func parameters(g *graph.Graph, prefix string, list []architecture.Named) []*graph.Node {
	nodes := make([]*graph.Node, len(list))
	for i, n := range list {
		d := map[tensor.DType]dtypes.DType{tensor.Float32: dtypes.Float32, tensor.Int32: dtypes.Int32,
			tensor.Int8: dtypes.Int8, tensor.Uint8: dtypes.Uint8}[n.Shape.DType]
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
