package recompute

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// attentionCase is an operator of attention with its operands.
type attentionCase struct {
	op program.Operator
	in []*tensor.Tensor
}

// attentions are all kinds between q [batch, heads, queries, width] and k [batch, groups, keys, width].
func attentions(r *rand.Rand, batch, heads, groups, queries, keys, width, query, key int) []attentionCase {
	make := func(dims ...int) *tensor.Tensor {
		t := tensor.New(tensor.Make(tensor.Float32, dims...))
		for i := range t.F32() {
			t.F32()[i] = float32(r.NormFloat64())
		}
		return t
	}
	q, k, v := make(batch, heads, queries, width), make(batch, groups, keys, width), make(batch, groups, keys, width)
	do, lse, delta := make(batch, heads, queries, width), make(batch, heads, queries), make(batch, heads, queries)
	for i := range lse.F32() {
		lse.F32()[i] += 5
	}
	of := func(kind program.Kind, out *tensor.Tensor, in ...*tensor.Tensor) attentionCase {
		return attentionCase{program.Operator{Kind: kind, Out: out.Shape, Ints: []int64{int64(query), int64(key)}}, in}
	}
	list := []attentionCase{
		of(program.CausalAttentionGradK, k, q, k, v, do, lse, delta), of(program.CausalAttentionGradV, k, q, k, do, lse),
	}
	if query >= key {
		list = append(list, of(program.CausalAttention, q, q, k, v), of(program.CausalAttentionLSE, lse, q, k),
			of(program.CausalAttentionGradQ, q, q, k, v, do, lse, delta))
	}
	return list
}

// Attention over many blocks of keys, and over more queries than a chunk of a product has, is computed in parts, also
// where numbers overflow.
func TestAttentionInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range [][8]int{
		{1, 2, 1, 600, 600, 4, 0, 0}, {2, 4, 2, 70, 140, 8, 75, 3}, {1, 1, 1, 3, 130, 600, 127, 0},
		{1, 3, 1, 140, 70, 4, 5, 60},
	} {
		for i, a := range attentions(r, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]) {
			if i%2 == 1 {
				x := a.in[i%len(a.in)].F32()
				x[r.IntN(len(x))], x[r.IntN(len(x))] = float32(math.Inf(1)), float32(math.NaN())
			}
			numerics := kernel.Version1 + uint32(i/2%2)
			want, err := cpu.Eval(numerics, &a.op, a.in)
			if err != nil {
				t.Fatal(err)
			}
			shapes := make([]tensor.Shape, len(a.in))
			for k, x := range a.in {
				shapes[k] = x.Shape
			}
			for range 4 {
				d := randomDivision(r, &a.op, shapes)
				if d.Parts() < 400 {
					checkParts(t, numerics, &a.op, a.in, want, d, r.IntN(a.op.Out.Leaves()))
				}
			}
		}
	}
}

// Attention of the largest contexts is divided into parts that a payload holds.
func TestAttentionOfLargeContexts(t *testing.T) {
	for _, context := range []int{4096, 1 << 17} {
		q, k := tensor.Make(tensor.Float32, 1, 32, context, 128), tensor.Make(tensor.Float32, 1, 8, context, 128)
		rows := tensor.Make(tensor.Float32, 1, 32, context)
		for _, c := range []struct {
			kind program.Kind
			out  tensor.Shape
			in   []tensor.Shape
		}{
			{program.CausalAttention, q, []tensor.Shape{q, k, k}}, {program.CausalAttentionLSE, rows, []tensor.Shape{q, k}},
			{program.CausalAttentionGradQ, q, []tensor.Shape{q, k, k, q, rows, rows}},
			{program.CausalAttentionGradK, k, []tensor.Shape{q, k, k, q, rows, rows}},
			{program.CausalAttentionGradV, k, []tensor.Shape{q, k, q, rows}},
		} {
			looked := 0
			op := program.Operator{Kind: c.kind, Out: c.out, Ints: []int64{0, 0}}
			d, ok := Divide(&op, c.in, Fit{Spend: func(n int) bool { looked += n; return true },
				Part: func(need [][]int, state int) bool {
					bytes := state
					for _, l := range need {
						bytes += tensor.LeafBytes * len(l)
					}
					return bytes <= 768<<10
				}})
			t.Logf("%s, %d keys: %+v, %d elements looked at", c.kind, context, d, looked)
			if !ok || looked > 8<<20 {
				t.Errorf("%s: divided: %t", c.kind, ok)
			}
		}
	}
}
