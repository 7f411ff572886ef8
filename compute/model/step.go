package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

func (c Config) check(batch, seqLen int) error {
	if batch < 1 || batch > 1<<16 {
		return fmt.Errorf("%w: batch %d must be in 1..65536", ErrStep, batch)
	}
	if seqLen < 1 || seqLen > c.positions {
		return fmt.Errorf("%w: sequence length %d must be in 1..%d, the positions of the model", ErrStep, seqLen, c.positions)
	}
	return nil
}

// tokenBatch is the input of sequences of the given length.
func tokenBatch(batch, length int) Named {
	return Named{Name: "tokens", Shape: tensor.Make(tensor.Int32, batch, length)}
}

// Language is the task of predicting each token of a sequence but the first from those before it. Batch: "tokens" int32
// [batch, seqLen+1]. The loss is the mean cross-entropy in nats.
func Language(c Config, batch, seqLen int) (Task, error) {
	t := c.task(tokenBatch(batch, seqLen+1))
	t.loss = func(w weights, in []*graph.Node) []*graph.Node {
		seen, next := shift(in[0])
		return []*graph.Node{crossEntropy(c.logits(w, seen), flat(next))}
	}
	return t, c.check(batch, seqLen)
}

// flat is x as one list.
func flat(x *graph.Node) *graph.Node { return graph.Reshape(x, x.Shape().Size()) }

// shift cuts tokens [batch, seqLen+1] into those seen and those to predict from them, both [batch, seqLen].
func shift(tokens *graph.Node) (seen, next *graph.Node) {
	last := dims(tokens)[1] - 1
	seen = graph.Slice(tokens, graph.AxisRange(), graph.AxisRange(0, last))
	next = graph.Slice(tokens, graph.AxisRange(), graph.AxisRange(1))
	return seen, next
}

// TrainStep is the step of the task Language.
func TrainStep(c Config, o AdamW, batch, seqLen int) (*program.Program, error) {
	t, err := Language(c, batch, seqLen)
	if err != nil {
		return nil, err
	}
	return t.TrainStep(o)
}

// Eval is the loss of the task Language.
func Eval(c Config, batch, seqLen int) (*program.Program, error) {
	t, err := Language(c, batch, seqLen)
	if err != nil {
		return nil, err
	}
	return t.Eval()
}

// Logits returns the program of the model itself. Inputs: "tokens" int32 [batch, seqLen] and the tensors "p/<name>",
// those of adapters last; output: "logits" [batch, seqLen, vocab].
func Logits(c Config, batch, seqLen int) (*program.Program, error) {
	if err := c.check(batch, seqLen); err != nil {
		return nil, err
	}
	t := c.task(tokenBatch(batch, seqLen))
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		tokens := parameters(g, "", t.Batch)[0]
		w, _ := t.inputs(g)
		return []*graph.Node{graph.Reshape(c.logits(w, tokens), batch, seqLen, c.vocab)}
	})
	if err != nil {
		return nil, err
	}
	b.Output("logits", values[0])
	return finish(b)
}
