package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/sequence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
)

// A Classifier gives the scores of classes to examples, which are rows of tokens.
type Classifier interface {
	// Tensors lists the tensors that are trained, in canonical order.
	Tensors() []architecture.Named
	// Frozen lists the tensors that are read besides, such as a graph, and not trained.
	Frozen() []architecture.Named
	// Example is the number of tokens of an example.
	Example() int
	// Scores maps examples [n, Example()] of int32 to scores [n, classes].
	Scores(p Parameters, examples *graph.Node) *graph.Node
}

// Parameters are the tensors of a model, with those that it reads besides, as nodes of a program.
type Parameters struct{ w weights }

// At returns the tensor of a name.
func (p Parameters) At(name string) *graph.Node { return p.w.At(name) }

// Dropped is hidden values, less those that a step of training drops.
func (p Parameters) Dropped(x *graph.Node) *graph.Node { return p.w.Dropped(x) }

// Hidden is what the language model c, of which these are the tensors, has for each of tokens [n, length]: the input of
// its output layer [n*length, width].
func (p Parameters) Hidden(c architecture.Config, tokens *graph.Node) *graph.Node {
	return decoder.Hidden(c, p.w, tokens, sequence.Whole{Tokens: tokens})
}

// Classify is the task of naming the class of each example. A sequence of the batch is an example and its class: b has
// no length, as the classifier says how long they are. Batch: "tokens" int32 [b.Sequences, 1+Example()+1], of each
// row the class first; the last token belongs to the next row. b.Dropout is the share of the hidden values that is
// dropped. The loss is the mean cross-entropy in nats. Metric of Eval: "accuracy", the share of examples whose class
// has the highest score. A classifier with a method Language has scores of the hidden states of that model: its
// adapters are scaled, and b.Half and b.Form are of its layers. Others have neither.
func Classify(n Classifier, b Batch) (Task, error) {
	t, err := scored(n, b, 1+n.Example(), "accuracy")
	t.loss = func(w weights, in, whole []*graph.Node) []*graph.Node {
		rows := dims(in[0])[0]
		classes := graph.Reshape(graph.Slice(in[0], graph.AxisRange(), graph.AxisRange(0, 1)), rows)
		scores := n.Scores(Parameters{w}, graph.Slice(in[0], graph.AxisRange(), graph.AxisRange(1, n.Example()+1)))
		return []*graph.Node{mean(record.CrossEntropy(scores, classes), whole), mean(record.Hits(scores, classes), whole)}
	}
	return t, err
}

// Rank is the task of giving the preferred one of two texts the higher score (Bradley and Terry 1952, and Ouyang et al.
// 2022, equation 1). n has one class. A sequence of the batch is a pair: "tokens" int32 [b.Sequences, 2*Example()+1],
// of each row the preferred text first; the last token belongs to the next row. The margin of a pair is the difference
// of its scores, and the loss the mean of -log sigmoid(margin), ln 2 where the scores are equal. Metrics of Eval:
// "accuracy", the share of pairs with a margin above 0, and "margin", the mean of the margins. For the rest see
// Classify.
func Rank(n Classifier, b Batch) (Task, error) {
	t, err := scored(n, b, 2*n.Example(), "accuracy", "margin")
	t.loss = func(w weights, in, whole []*graph.Node) []*graph.Node {
		rows := dims(in[0])[0]
		texts := graph.Slice(in[0], graph.AxisRange(), graph.AxisRange(0, 2*n.Example()))
		scores := n.Scores(Parameters{w}, graph.Reshape(texts, 2*rows, n.Example()))
		return ranked(lead(graph.Reshape(scores, rows, 2)), whole)
	}
	return t, err
}

// scored is a task of a classifier, but for its loss, on rows of the given number of tokens.
func scored(n Classifier, b Batch, tokens int, metrics ...string) (Task, error) {
	var c architecture.Config
	reader, reads := n.(interface{ Language() architecture.Config })
	if reads {
		c = reader.Language()
	}
	if b.Sequences < 1 || b.Sequences > 1<<16 || b.Silent != 0 || !reads && (b.Half || b.Form != (exact.Form{})) {
		return Task{}, fmt.Errorf("%w: %d examples of classes, silent tokens, halves or integers", ErrStep, b.Sequences)
	}
	l, _ := c.LoRA()
	return Task{Batch: []architecture.Named{tokenBatch(b.Sequences, tokens+1)}, Frozen: n.Frozen(),
		Trained: n.Tensors(), Metrics: metrics, micro: b.Micro, hidden: b.Dropout, half: b.Half, form: b.Form,
		scale: c.Scale(), dropout: l.Dropout}, b.check()
}

// mean is the sum over the examples that are computed at a time, divided by the number of all.
func mean(x *graph.Node, whole []*graph.Node) *graph.Node {
	return graph.MulScalar(graph.ReduceAllSum(x), 1/float64(dims(whole[0])[0]))
}

// Scores returns the program of a classifier. Inputs: "tokens" int32 [rows, Example()] and the tensors "p/<name>";
// output: "scores" [rows, classes].
func Scores(n Classifier, rows int) (*program.Program, error) {
	t := Task{Batch: []architecture.Named{tokenBatch(rows, n.Example())}, Frozen: n.Frozen(), Trained: n.Tensors()}
	return t.outputs([]string{"scores"}, func(w weights, in []*graph.Node) []*graph.Node {
		return []*graph.Node{n.Scores(Parameters{w}, in[0])}
	})
}
