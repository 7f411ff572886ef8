package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/sequence"
	"github.com/starling-network/starling/compute/model/silence"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

func checkSize(c architecture.Config, batch, seqLen int) error {
	if batch < 1 || batch > 1<<16 {
		return fmt.Errorf("%w: batch %d must be in 1..65536", ErrStep, batch)
	}
	if seqLen < 1 || seqLen > c.Context() {
		return fmt.Errorf("%w: sequence length %d must be in 1..%d, the positions of the model", ErrStep, seqLen, c.Context())
	}
	return nil
}

// tokenBatch is the input of sequences of the given length.
func tokenBatch(batch, length int) architecture.Named {
	return architecture.Named{Name: "tokens", Shape: tensor.Make(tensor.Int32, batch, length)}
}

// Batch is what a step reads.
type Batch struct {
	Sequences, Length int

	// Micro is how many sequences a step computes at a time. Their gradients are added up, those of the first ones first;
	// 0: all at once.
	Micro int

	// Silent is from which token on a token stands for the one less Silent, and is read and not to be predicted; 0: there
	// are none.
	Silent int

	// Half has layers read and give bfloat16, rounded to the nearest with ties to even. Products accumulate in float32;
	// the output layer, norms, the residual stream, gradients and all that is trained stay float32.
	Half bool

	// Form is that of the products of layers and of their gradients, but for those of adapters and of the output layer;
	// its zero value: they are of float32. See record.Exact.
	Form exact.Form

	// Dropout is the share that is dropped in training of the embeddings, and of the output that each sublayer adds to
	// the residual stream (Vaswani et al. 2017, section 5.4).
	Dropout float64
}

// Language is the task of predicting each token of a sequence but the first from those before it. Batch: "tokens" int32
// [batch, seqLen+1]. The loss is the mean cross-entropy in nats.
func Language(c architecture.Config, batch, seqLen int) (Task, error) {
	return LanguageOf(c, Batch{Sequences: batch, Length: seqLen})
}

// LanguageOf is Language on a batch. Where tokens are silent the mean is over the others; of none it is 0.
func LanguageOf(c architecture.Config, b Batch) (Task, error) {
	t := taskOf(c, tokenBatch(b.Sequences, b.Length+1))
	t.micro, t.half, t.form, t.hidden = b.Micro, b.Half, b.Form, b.Dropout
	t.loss = func(w weights, in, whole []*graph.Node) []*graph.Node {
		seen, next := shift(silence.Heard(in[0], b.Silent))
		rows := record.CrossEntropy(decoder.Logits(c, w, seen), flat(next))
		if b.Silent == 0 {
			return []*graph.Node{graph.MulScalar(graph.ReduceAllSum(rows), 1/float64(b.Sequences*b.Length))}
		}
		spoken := func(tokens *graph.Node) *graph.Node {
			_, next := shift(tokens)
			return silence.Spoken(flat(next), b.Silent)
		}
		said := graph.ReduceAllSum(graph.Mul(rows, spoken(in[0])))
		count := graph.MaxScalar(graph.ReduceAllSum(spoken(whole[0])), 1)
		return []*graph.Node{graph.Div(said, count)}
	}
	if err := b.check(); err != nil {
		return Task{}, err
	}
	return t, checkSize(c, b.Sequences, b.Length)
}

// taskOf is a task without a loss, which trains the adapters of a model, or all of it if there are none.
func taskOf(c architecture.Config, batch ...architecture.Named) Task {
	l, adapted := c.LoRA()
	if !adapted {
		return Task{Batch: batch, Trained: c.Tensors()}
	}
	return Task{Batch: batch, Frozen: c.Frozen(), Trained: c.Adapters(), scale: c.Scale(), dropout: l.Dropout}
}

// check refuses parts of a batch that are not equal, and a dropout that is no share.
func (b Batch) check() error {
	if m := b.Micro; m < 0 || m > 0 && b.Sequences%m != 0 || !(b.Dropout >= 0 && b.Dropout < 1) {
		return fmt.Errorf("%w: %d sequences in parts of %d, dropout %v", ErrStep, b.Sequences, m, b.Dropout)
	}
	return nil
}

func dims(x *graph.Node) []int { return x.Shape().Dimensions }

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
func TrainStep(c architecture.Config, o optimizer.Optimizer, batch, seqLen int) (*program.Program, error) {
	t, err := Language(c, batch, seqLen)
	if err != nil {
		return nil, err
	}
	return t.TrainStep(o)
}

// Logits returns the program of the model itself. Inputs: "tokens" int32 [batch, seqLen] and the tensors "p/<name>",
// those of adapters last; output: "logits" [batch, seqLen, vocab].
func Logits(c architecture.Config, batch, seqLen int) (*program.Program, error) {
	if err := checkSize(c, batch, seqLen); err != nil {
		return nil, err
	}
	t := taskOf(c, tokenBatch(batch, seqLen))
	return t.outputs([]string{"logits"}, func(w weights, in []*graph.Node) []*graph.Node {
		return []*graph.Node{graph.Reshape(decoder.Logits(c, w, in[0]), batch, seqLen, c.VocabSize())}
	})
}

// Hidden returns the program of the model up to its output layer. Inputs are those of Logits; output: "hidden" [batch,
// seqLen, width], the input of the output layer.
func Hidden(c architecture.Config, batch, seqLen int) (*program.Program, error) {
	if err := checkSize(c, batch, seqLen); err != nil {
		return nil, err
	}
	t := taskOf(c, tokenBatch(batch, seqLen))
	return t.outputs([]string{"hidden"}, func(w weights, in []*graph.Node) []*graph.Node {
		x := decoder.Hidden(c, w, in[0], sequence.Whole{Tokens: in[0]})
		return []*graph.Node{graph.Reshape(x, batch, seqLen, -1)}
	})
}

// LayerInput returns the program of the input of a linear layer. Inputs are those of Logits; output: "input"
// [batch*seqLen, in]. The error wraps architecture.ErrAdapter if the model has no such layer.
func LayerInput(c architecture.Config, layer string, batch, seqLen int) (*program.Program, error) {
	if err := checkSize(c, batch, seqLen); err != nil {
		return nil, err
	}
	adapted, err := c.Adapt(architecture.LoRA{Rank: 1, Alpha: 1, Targets: []string{layer}})
	if err != nil {
		return nil, err
	}
	if list := adapted.Adapted(); len(list) != 1 || architecture.Module(list[0]) != layer {
		return nil, fmt.Errorf("%w: %q is not the whole name of a layer, such as %q", architecture.ErrAdapter, layer,
			architecture.Module(list[0]))
	}
	t := taskOf(c, tokenBatch(batch, seqLen))
	return t.outputs([]string{"input"}, func(w weights, in []*graph.Node) []*graph.Node {
		var input *graph.Node
		w.Seen = func(name string, x *graph.Node) {
			if name == layer {
				input = x
			}
		}
		decoder.Logits(c, w, in[0])
		return []*graph.Node{input}
	})
}
