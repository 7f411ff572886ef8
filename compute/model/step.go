package model

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// Names of inputs and outputs of programs: weights and the two moments of each are prefixed with these.
const (
	paramPrefix  = "p/"
	firstPrefix  = "m/"
	secondPrefix = "v/"
)

// ErrStep is wrapped by errors about a batch, a sequence length or an optimizer that no step can have.
var ErrStep = errors.New("model: invalid step")

// AdamW holds the constants of the optimizer (Loshchilov and Hutter 2019). Weight decay applies to tensors of two or
// more dimensions, with DecayAll to every tensor. MaxGradNorm bounds the norm of all gradients together; 0 is no bound.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay, MaxGradNorm float64
	DecayAll                                    bool
}

func (o AdamW) check() error {
	if !(o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1) {
		return fmt.Errorf("%w: betas %g and %g must be at least 0 and below 1", ErrStep, o.Beta1, o.Beta2)
	}
	if !(o.Eps > 0 && o.Eps < 1) {
		return fmt.Errorf("%w: eps %g must be above 0 and below 1", ErrStep, o.Eps)
	}
	if !(o.WeightDecay >= 0 && o.WeightDecay <= 1 && o.MaxGradNorm >= 0 && o.MaxGradNorm <= 1e9) {
		return fmt.Errorf("%w: weight decay %g must be in 0..1, max grad norm %g in 0..1e9", ErrStep, o.WeightDecay,
			o.MaxGradNorm)
	}
	return nil
}

func (c Config) check(batch, seqLen int) error {
	if batch < 1 || batch > 1<<16 {
		return fmt.Errorf("%w: batch %d must be in 1..65536", ErrStep, batch)
	}
	if seqLen < 1 || seqLen > c.positions {
		return fmt.Errorf("%w: sequence length %d must be in 1..%d, the positions of the model", ErrStep, seqLen, c.positions)
	}
	return nil
}

func tokenInput(g *graph.Graph, batch, length int) *graph.Node {
	return graph.Parameter(g, "tokens", shapes.Make(dtypes.Int32, batch, length))
}

// loss is the mean cross-entropy of predicting each of tokens [batch, seqLen+1] but the first from those before it.
func (c Config) loss(w weights, tokens *graph.Node) *graph.Node {
	batch, last := dims(tokens)[0], dims(tokens)[1]-1
	seen := graph.Slice(tokens, graph.AxisRange(), graph.AxisRange(0, last))
	next := graph.Slice(tokens, graph.AxisRange(), graph.AxisRange(1))
	return crossEntropy(c.family.logits(c, w, seen), graph.Reshape(next, batch*last))
}

// TrainStep returns the program of one step of AdamW on one batch: forward, backward, clip, update.
//
// Inputs: "tokens" int32 [batch, seqLen+1]; the float32 scalars "lr", "c1" = 1/(1-beta1^t) and "c2" = 1/(1-beta2^t) for
// step t counted from 1; for each tensor of Tensors "p/<name>", then for each "m/<name>", then for each "v/<name>".
// Outputs: all p/, m/ and v/ after the step; "loss", the mean cross-entropy in nats before it; "grad_norm", the norm of
// all gradients before clipping to min(1, MaxGradNorm/(grad_norm+1e-6)).
func TrainStep(c Config, o AdamW, batch, seqLen int) (*program.Program, error) {
	if err := errors.Join(c.check(batch, seqLen), o.check()); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		tokens := tokenInput(g, batch, seqLen+1)
		nodes := make([]*graph.Node, 0, 4)
		for _, name := range []string{"lr", "c1", "c2"} {
			nodes = append(nodes, graph.Parameter(g, name, shapes.Make(dtypes.Float32)))
		}
		w, params := c.inputs(g)
		loss := c.loss(w, tokens)
		nodes = append(append(nodes, loss), params...)
		return append(nodes, graph.Gradient(loss, params...)...)
	})
	if err != nil {
		return nil, err
	}
	named := c.Tensors()
	u := update{b: b, o: o, lr: values[0], c1: values[1], c2: values[2]}
	u.apply(named, values[4:4+len(named)], values[4+len(named):])
	b.Output("loss", values[3])
	return u.finish()
}

// update appends the optimizer to a program. The first error sticks; what is appended after it is never seen.
type update struct {
	b          *program.Builder
	o          AdamW
	lr, c1, c2 program.Value
	err        error
}

func (u *update) keep(v program.Value, err error) program.Value {
	if u.err == nil {
		u.err = err
	}
	return v
}

func (u *update) scalar(x float64) program.Value { return u.b.Constant(tensor.Scalar(float32(x))) }

// apply declares the moments, clips the gradients, and outputs the updated weights and moments and the gradient norm.
func (u *update) apply(named []Named, params, grads []program.Value) {
	b, n := u.b, len(named)
	moments := make([]program.Value, 2*n)
	for i, t := range named {
		moments[i] = b.Input(firstPrefix+t.Name, t.Shape)
	}
	for i, t := range named {
		moments[n+i] = b.Input(secondPrefix+t.Name, t.Shape)
	}
	norm := u.norm(grads)
	scale := u.clip(norm)
	for i, t := range named {
		m := u.keep(b.AdamM(moments[i], grads[i], scale, float32(u.o.Beta1)))
		v := u.keep(b.AdamV(moments[n+i], grads[i], scale, float32(u.o.Beta2)))
		decay := 0.0
		if u.o.DecayAll || len(t.Shape.Dims) >= 2 {
			decay = u.o.WeightDecay
		}
		p := u.keep(b.AdamP(params[i], m, v, u.lr, u.c1, u.c2, float32(u.o.Eps), float32(decay)))
		params[i], moments[i], moments[n+i] = p, m, v
	}
	for i, t := range named {
		b.Output(paramPrefix+t.Name, params[i])
	}
	for i, t := range named {
		b.Output(firstPrefix+t.Name, moments[i])
	}
	for i, t := range named {
		b.Output(secondPrefix+t.Name, moments[n+i])
	}
	b.Output("grad_norm", norm)
}

// norm is the Euclidean norm of all gradients together.
func (u *update) norm(grads []program.Value) program.Value {
	total := u.keep(u.b.SumSquares(grads[0]))
	for _, g := range grads[1:] {
		total = u.keep(u.b.Binary(program.Add, total, u.keep(u.b.SumSquares(g))))
	}
	return u.keep(u.b.Unary(program.Sqrt, total))
}

// clip is the factor min(1, max/(norm+1e-6)) for the gradients, as PyTorch's clip_grad_norm_ has it.
func (u *update) clip(norm program.Value) program.Value {
	one := u.scalar(1)
	if u.o.MaxGradNorm == 0 {
		return one
	}
	floor := u.keep(u.b.Binary(program.Add, norm, u.scalar(1e-6)))
	ratio := u.keep(u.b.Binary(program.Div, u.scalar(u.o.MaxGradNorm), floor))
	return u.keep(u.b.Binary(program.Min, one, ratio))
}

func (u *update) finish() (*program.Program, error) {
	if u.err != nil {
		return nil, u.err
	}
	return finish(u.b)
}

func finish(b *program.Builder) (*program.Program, error) {
	p, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return p.Simplify(), nil
}

// Eval returns the program of the loss alone. Inputs: "tokens" int32 [batch, seqLen+1] and the weights "p/<name>";
// output: "loss", the same bits as TrainStep's.
func Eval(c Config, batch, seqLen int) (*program.Program, error) {
	return c.forward("loss", batch, seqLen, func(g *graph.Graph) *graph.Node {
		tokens := tokenInput(g, batch, seqLen+1)
		w, _ := c.inputs(g)
		return c.loss(w, tokens)
	})
}

// Logits returns the program of the model itself. Inputs: "tokens" int32 [batch, seqLen] and the weights "p/<name>";
// output: "logits" [batch, seqLen, vocab].
func Logits(c Config, batch, seqLen int) (*program.Program, error) {
	return c.forward("logits", batch, seqLen, func(g *graph.Graph) *graph.Node {
		tokens := tokenInput(g, batch, seqLen)
		w, _ := c.inputs(g)
		return graph.Reshape(c.family.logits(c, w, tokens), batch, seqLen, c.vocab)
	})
}

// forward records a program with one output.
func (c Config) forward(output string, batch, seqLen int, build func(g *graph.Graph) *graph.Node) (*program.Program, error) {
	if err := c.check(batch, seqLen); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node { return []*graph.Node{build(g)} })
	if err != nil {
		return nil, err
	}
	b.Output(output, values[0])
	return finish(b)
}
