package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

func TestAttentionOfTrainingGivesTheSpecifiedBits(t *testing.T) {
	p, in := programtest.Attention(t, 2, 4, 2, 130, 8)
	want := specified(t, p, in)
	for _, path := range kernel.Paths() {
		if err := kernel.Select(path.String()); err != nil {
			t.Fatal(err)
		}
		checkValues(t, p, in, want)
	}
	if err := kernel.Select(""); err != nil {
		t.Fatal(err)
	}
}

// TestAttentionSharesNoOtherOperands has gradients of queries and of keys with different values and deltas, after one
// of values, which has neither.
func TestAttentionSharesNoOtherOperands(t *testing.T) {
	b, keep := program.NewBuilder(), programtest.Must(t)
	in := func(name string, dims ...int) program.Value {
		return b.Input(name, tensor.Make(tensor.Float32, dims...))
	}
	q, k, v, v2, do := in("q", 1, 2, 5, 3), in("k", 1, 1, 5, 3), in("v", 1, 1, 5, 3), in("v2", 1, 1, 5, 3),
		in("do", 1, 2, 5, 3)
	lse, delta, delta2 := in("lse", 1, 2, 5), in("delta", 1, 2, 5), in("delta2", 1, 2, 5)
	b.Output("dv", keep(b.Attention(program.CausalAttentionGradV, 0, 0, q, k, do, lse)))
	b.Output("dq", keep(b.Attention(program.CausalAttentionGradQ, 0, 0, q, k, v, do, lse, delta)))
	b.Output("dk", keep(b.Attention(program.CausalAttentionGradK, 0, 0, q, k, v2, do, lse, delta2)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(18, 1))
	given := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		given[i.Name] = programtest.Tensor(r, i.Shape, false)
	}
	checkProgram(t, p, given)
}
