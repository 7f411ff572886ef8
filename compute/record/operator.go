package record

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
)

// operator is an operator of programs that GoMLX does not know, with its gradient. GoMLX leaves the meaning of one
// operator, and of its gradient, to the backend: attention, of three operands. The recorder takes what to record from
// the options, so that this is the way for every operator.
type operator struct {
	forward func(b *program.Builder, in [3]program.Value) (program.Value, error)
	// backward returns the adjoints of the operands from that of the result out. The adjoints of padding operands are
	// not read.
	backward func(b *program.Builder, in [3]program.Value, out, adjoint program.Value) ([3]program.Value, error)
}

// apply records the operator on one to three nodes, those whose gradients it knows. Others are for closures to take, as
// valueOf gives them.
func apply(op operator, x ...*graph.Node) *graph.Node {
	for len(x) < 3 {
		x = append(x, graph.ScalarZero(x[0].Graph(), x[0].DType()))
	}
	options := &compute.ScaledDotProductAttentionConfig{Bias: op}
	out, _ := graph.BackendFusedScaledDotProductAttention(x[0], x[1], x[2], compute.AxesLayoutBHSD, options)
	return out
}

// valueOf is the value that a node was recorded as.
func valueOf(x *graph.Node) program.Value {
	return graph.InternalBackendOutputs(x)[0].(program.Value)
}

// operatorOf returns what apply put into the options.
func operatorOf(options *compute.ScaledDotProductAttentionConfig) (operator, error) {
	if options != nil {
		if op, ok := options.Bias.(operator); ok {
			return op, nil
		}
	}
	return operator{}, &UnsupportedError{Operator: "FusedScaledDotProductAttention", Why: "use record.Attention"}
}

func (f *function) FusedScaledDotProductAttention(x, y, z compute.Value, _ compute.AxesLayout,
	options *compute.ScaledDotProductAttentionConfig) (compute.Value, []compute.Value, error) {
	op, err := operatorOf(options)
	if err != nil {
		return nil, nil, err
	}
	out, err := value(op.forward(f.b, [3]program.Value{x.(program.Value), y.(program.Value), z.(program.Value)}))
	return out, nil, err
}

func (f *function) FusedScaledDotProductAttentionVJP(x, y, z compute.Value, _ compute.AxesLayout,
	options *compute.ScaledDotProductAttentionConfig, out compute.Value, _ []compute.Value, adjoint compute.Value) (
	dx, dy, dz compute.Value, err error) {
	op, err := operatorOf(options)
	if err != nil {
		return nil, nil, nil, err
	}
	in := [3]program.Value{x.(program.Value), y.(program.Value), z.(program.Value)}
	d, err := op.backward(f.b, in, out.(program.Value), adjoint.(program.Value))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("record: gradient: %w", err)
	}
	return d[0], d[1], d[2], nil
}

// emitter appends operators until the first error, which it keeps.
type emitter struct{ err error }

func (e *emitter) keep(v program.Value, err error) program.Value {
	if e.err == nil {
		e.err = err
	}
	return v
}

// Attention is causal attention of sequences that begin with the first token, as attention.Head specifies it: q
// [batch, heads, length, width], scaled by the caller, k and v [batch, groups, length, width] for a number of groups
// that divides the heads. The result is [batch, heads, length, width].
func Attention(q, k, v *graph.Node) *graph.Node {
	var lse program.Value
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		out := e.keep(b.Attention(program.CausalAttention, 0, 0, in[0], in[1], in[2]))
		lse = e.keep(b.Attention(program.CausalAttentionLSE, 0, 0, in[0], in[1]))
		return out, e.err
	}
	op.backward = func(b *program.Builder, in [3]program.Value, out, adjoint program.Value) ([3]program.Value, error) {
		var e emitter
		// The heads of a token lie side by side before and after this: as this sum sees them.
		swap := func(x program.Value, rank int) program.Value {
			return e.keep(b.Transpose(x, []int{0, 2, 1, 3}[:rank]...))
		}
		both := e.keep(b.Apply(program.Mul, swap(adjoint, 4), swap(out, 4)))
		delta := swap(e.keep(b.Reduce(program.ReduceSum, both, 3)), 3)
		dq := e.keep(b.Attention(program.CausalAttentionGradQ, 0, 0, in[0], in[1], in[2], adjoint, lse, delta))
		dk := e.keep(b.Attention(program.CausalAttentionGradK, 0, 0, in[0], in[1], in[2], adjoint, lse, delta))
		dv := e.keep(b.Attention(program.CausalAttentionGradV, 0, 0, in[0], in[1], adjoint, lse))
		return [3]program.Value{dq, dk, dv}, e.err
	}
	return apply(op, q, k, v)
}

// CrossEntropy is -log softmax(logits)[target] of each row, in nats, as elementary.CrossEntropy specifies it: logits
// [n, classes], targets int32 or int64 [n] to [n].
func CrossEntropy(logits, targets *graph.Node) *graph.Node {
	at := valueOf(targets)
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		return b.Apply(program.CrossEntropy, in[0], at)
	}
	op.backward = func(b *program.Builder, in [3]program.Value, _, adjoint program.Value) ([3]program.Value, error) {
		d, err := b.Apply(program.CrossEntropyGrad, in[0], at, adjoint)
		return [3]program.Value{d, in[1], in[2]}, err // those that fill up are zeros
	}
	return apply(op, logits)
}

// activation is an elementwise function and its gradient.
func activation(k, grad program.Kind, x *graph.Node) *graph.Node {
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) { return b.Apply(k, in[0]) }
	op.backward = func(b *program.Builder, in [3]program.Value, _, adjoint program.Value) ([3]program.Value, error) {
		d, err := b.Apply(grad, in[0], adjoint)
		return [3]program.Value{d, in[1], in[2]}, err
	}
	return apply(op, x)
}

// Gelu is the tanh form of x * Phi(x), as kernel.Path.Gelu specifies it.
func Gelu(x *graph.Node) *graph.Node { return activation(program.Gelu, program.GeluGrad, x) }

// Silu is x * sigmoid(x), as kernel.Path.Silu specifies it.
func Silu(x *graph.Node) *graph.Node { return activation(program.Silu, program.SiluGrad, x) }
