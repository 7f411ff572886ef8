package programtest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// SameBits fails unless both tensors have the same bytes, all NaNs being taken as one.
func SameBits(t testing.TB, what string, got, want *tensor.Tensor) {
	t.Helper()
	g, w := got.Clone(), want.Clone()
	g.Canonicalize()
	w.Canonicalize()
	if !g.Shape.Equal(w.Shape) || !bytes.Equal(g.Bytes(), w.Bytes()) {
		t.Fatalf("%s: got %s %v, want %s %v", what, g.Shape, naiveFrom(g), w.Shape, naiveFrom(w))
	}
}

// Must returns a function that unwraps the value of a builder's method, and ends the test at an error.
func Must(t testing.TB) func(program.Value, error) program.Value {
	return func(v program.Value, err error) program.Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Layer is a piece of a transformer with its usual views: split heads, masked softmax, row and column sums.
func Layer(t testing.TB, batch, length, heads, width int) (*program.Program, map[string]*tensor.Tensor) {
	b := program.NewBuilder()
	must := Must(t)
	d := heads * width
	x := b.Input("x", tensor.Make(tensor.Float32, batch, length, d))
	w := b.Input("w", tensor.Make(tensor.Float32, d, 3*d))
	bias := b.Input("bias", tensor.Make(tensor.Float32, 3*d))
	qkv := must(b.Dot(x, []int{2}, nil, w, []int{0}, nil))
	qkv = must(b.Apply(program.Add, qkv, must(b.Broadcast(bias, []int{batch, length, 3 * d}, []int{2}))))
	part := func(i int) program.Value {
		s := must(b.Slice(qkv, []int{0, 0, i * d}, []int{batch, length, (i + 1) * d}, []int{1, 1, 1}))
		return must(b.Reshape(s, batch, length, heads, width))
	}
	q, k, v := part(0), part(1), part(2)
	scores := must(b.Dot(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2}))
	dims := b.Shape(scores).Dims
	row := must(b.Iota(tensor.Make(tensor.Int32, length, length), 0))
	column := must(b.Iota(tensor.Make(tensor.Int32, length, length), 1))
	mask := must(b.Broadcast(must(b.Apply(program.LessEqual, column, row)), dims, []int{2, 3}))
	low := must(b.Broadcast(b.Constant(tensor.Scalar(-1e9)), dims, nil))
	scores = must(b.Apply(program.Where, mask, scores, low))
	spread := func(x program.Value) program.Value { return must(b.Broadcast(x, dims, []int{0, 1, 2})) }
	e := must(b.Apply(program.Exp, must(b.Apply(program.Sub, scores, spread(must(b.Reduce(program.ReduceMax, scores,
		3)))))))
	probs := must(b.Apply(program.Div, e, spread(must(b.Reduce(program.ReduceSum, e, 3)))))
	mixed := must(b.Dot(probs, []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2}))
	joined := must(b.Reshape(must(b.Transpose(mixed, 0, 2, 1, 3)), batch, length, d))
	b.Output("joined", joined)
	b.Output("tanh", must(b.Apply(program.Tanh, joined)))
	b.Output("columns", must(b.Reduce(program.ReduceSum, joined, 0, 1)))
	b.Output("squares", must(b.Apply(program.SumSquares, qkv)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	r := rand.New(rand.NewPCG(7, 7))
	for _, i := range p.Inputs() {
		in[i.Name] = Tensor(r, i.Shape, false)
	}
	return p, in
}

// Attention is a program of attention and its gradients as a model has them.
func Attention(t testing.TB, batch, heads, groups, length, width int) (*program.Program, map[string]*tensor.Tensor) {
	w := &writer{t: t, b: program.NewBuilder()}
	headed := func(name string, heads int) program.Value {
		x := w.b.Input(name, tensor.Make(tensor.Float32, batch, length, heads, width))
		return w.keep(w.b.Transpose(x, 0, 2, 1, 3))
	}
	q, k, v, do := headed("q", heads), headed("k", groups), headed("v", groups), headed("do", heads)
	o := w.keep(w.b.Attention(program.CausalAttention, 0, 0, q, k, v))
	lse := w.keep(w.b.Attention(program.CausalAttentionLSE, 0, 0, q, k))
	delta := w.keep(w.b.Reduce(program.ReduceSum, w.keep(w.b.Apply(program.Mul, do, o)), 3))
	out := []program.Value{o, lse}
	for _, k3 := range []program.Kind{program.CausalAttentionGradQ, program.CausalAttentionGradK} {
		out = append(out, w.keep(w.b.Attention(k3, 0, 0, q, k, v, do, lse, delta)))
	}
	out = append(out, w.keep(w.b.Attention(program.CausalAttentionGradV, 0, 0, q, k, do, lse)))
	for i, v := range out {
		w.b.Output(string(rune('A'+i)), v)
	}
	p, err := w.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(17, 1))
	in := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		in[i.Name] = Tensor(r, i.Shape, false)
	}
	return p, in
}
