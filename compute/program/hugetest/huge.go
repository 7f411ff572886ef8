// Package hugetest has programs of few operators on tensors of up to 2^31 elements, for tests of everything that reads
// the program of a stranger.
package hugetest

import (
	"strconv"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// Programs returns programs by name, with dimensions that lie in memory so that few of them merge. A stranger sends
// each in some hundred bytes: reading and checking one must not cost what running it does.
func Programs(t testing.TB) map[string]*program.Program {
	const n = 1 << 30
	out := map[string]*program.Program{}
	add := func(name string, make func(b *program.Builder) program.Value) {
		b := program.NewBuilder()
		b.Output("y", make(b))
		p, err := b.Finish()
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = p
	}
	must := programtest.Must(t)
	inputs := 0
	f32 := func(b *program.Builder, dims ...int) program.Value {
		inputs++
		return b.Input(strconv.Itoa(inputs), tensor.Make(tensor.Float32, dims...))
	}
	add("batch of products", func(b *program.Builder) program.Value {
		return must(b.Dot(f32(b, n, 2, 1), []int{2}, []int{0, 1}, f32(b, 2, n, 1), []int{2}, []int{1, 0}))
	})
	add("contraction", func(b *program.Builder) program.Value {
		return must(b.Dot(f32(b, n, 2), []int{0, 1}, nil, f32(b, 2, n), []int{1, 0}, nil))
	})
	add("free dimensions", func(b *program.Builder) program.Value {
		x := must(b.Transpose(f32(b, 2, n, 2), 1, 0, 2))
		return must(b.Dot(x, []int{2}, nil, f32(b, 2), []int{0}, nil))
	})
	add("attention", func(b *program.Builder) program.Value {
		x := must(b.Transpose(f32(b, 2, n/4, 4, 1), 1, 0, 2, 3))
		return must(b.Attention(program.CausalAttention, 0, 0, x, x, x))
	})
	add("attention gradient", func(b *program.Builder) program.Value {
		x, lse := must(b.Transpose(f32(b, 2, n/4, 4, 1), 1, 0, 2, 3)), f32(b, n/4, 2, 4)
		return must(b.Attention(program.CausalAttentionGradK, 0, 0, x, x, x, x, lse, lse))
	})
	for _, k := range []program.Kind{program.ReduceSum, program.ReduceMax, program.FirstMax} {
		add(k.String(), func(b *program.Builder) program.Value {
			x := must(b.Transpose(f32(b, 2, n/4, 2), 1, 2, 0))
			return must(b.Reduce(k, x, 1))
		})
	}
	add("squares", func(b *program.Builder) program.Value {
		return must(b.Apply(program.SumSquares, must(b.Transpose(f32(b, 2, n), 1, 0))))
	})
	add("windows", func(b *program.Builder) program.Value {
		return must(b.Windows(f32(b, n/4, 4), []int{2, 2}, []int{1, 1}, []int{1, 2}))
	})
	add("sum of windows", func(b *program.Builder) program.Value {
		x := f32(b, n/4-1, 2, 2, 2)
		return must(b.SumWindows(x, []int{n / 4, 4}, []int{2, 2}, []int{1, 1}, []int{1, 2}))
	})
	add("views", func(b *program.Builder) program.Value {
		x := must(b.Reshape(must(b.Transpose(f32(b, n/4, 2, 2), 2, 0, 1)), 4, n/4))
		x = must(b.Reverse(must(b.Slice(x, []int{1, 1}, []int{4, n / 4}, []int{2, 3})), 0, 1))
		dims := b.Shape(x).Dims
		x = must(b.Broadcast(x, []int{dims[0], 3, dims[1]}, []int{0, 2}))
		return must(b.Apply(program.Neg, must(b.Concat(1, x, must(b.Reverse(x, 0))))))
	})
	add("pad", func(b *program.Builder) program.Value {
		zero := b.Constant(tensor.New(tensor.Make(tensor.Float32)))
		return must(b.Pad(must(b.Transpose(f32(b, 2, n/8), 1, 0)), zero, []int{1, 1}, []int{2, 0}, []int{1, 1}))
	})
	add("rows taken", func(b *program.Builder) program.Value {
		at := b.Input("at", tensor.Make(tensor.Int32, n/4, 2))
		return must(b.Apply(program.TakeRows, must(b.Transpose(f32(b, 2, n/2), 1, 0)), at))
	})
	add("rows added", func(b *program.Builder) program.Value {
		at := b.Input("at", tensor.Make(tensor.Int32, n/4))
		return must(b.Apply(program.AddRows, f32(b, n/4, 2), at, must(b.Transpose(f32(b, 2, n/4), 1, 0))))
	})
	add("losses", func(b *program.Builder) program.Value {
		at := b.Input("at", tensor.Make(tensor.Int32, n/4))
		return must(b.Apply(program.CrossEntropy, must(b.Transpose(f32(b, 2, n/4), 1, 0)), at))
	})
	add("random", func(b *program.Builder) program.Value {
		return must(b.Random(b.Input("key", tensor.Make(tensor.Int64, 3)), n/2, 2))
	})
	return out
}
