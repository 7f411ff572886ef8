package recompute

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// neededFor returns what Need lists of the operands, and nothing else.
func neededFor(t testing.TB, op *program.Operator, in []*tensor.Tensor, d Division, leaf, part int) []*tensor.Partial {
	t.Helper()
	shapes := make([]tensor.Shape, len(in))
	out := make([]*tensor.Partial, len(in))
	for i, x := range in {
		shapes[i], out[i] = x.Shape, tensor.NewPartial(x.Shape)
	}
	fill := func(indices *tensor.Partial) {
		need, err := Need(op, shapes, d, leaf, part, indices)
		if err != nil {
			t.Fatal(err)
		}
		for k, leaves := range need {
			for _, l := range leaves {
				out[k].Set(l, in[k].Leaf(l))
			}
		}
	}
	fill(nil)
	if k := op.Kind.IndexOperand(); k >= 0 {
		fill(out[k])
	}
	return out
}

// checkParts demands the bytes of a leaf from its parts, one after the other.
func checkParts(t testing.TB, numerics uint32, op *program.Operator, in []*tensor.Tensor, want *tensor.Tensor,
	d Division, leaf int) {
	t.Helper()
	var state []byte
	var err error
	for part := range d.Parts() {
		operands := neededFor(t, op, in, d, leaf, part)
		before := bytes.Clone(state)
		if _, err := Eval(numerics, op, operands, d, leaf, part, append(before, 0)); !errors.Is(err, ErrState) {
			t.Fatalf("%s: a state that is too long: %v", op.Kind, err)
		}
		after, err2 := Eval(numerics, op, operands, d, leaf, part, state)
		if err = err2; err != nil || !bytes.Equal(state, before[:len(state)]) {
			t.Fatalf("%s of %v to %s, leaf %d, part %d of %+v: %v", op.Kind, op.Ints, op.Out, leaf, part, d, err)
		}
		state = after
	}
	want = want.Clone()
	want.Canonicalize()
	if !bytes.Equal(state, want.Leaf(leaf)) {
		t.Fatalf("%s of %v to %s, leaf %d in %+v:\ngot  %x\nwant %x", op.Kind, op.Ints, op.Out, leaf, d, state,
			want.Leaf(leaf))
	}
}

// randomDivision cuts leaves in any way.
func randomDivision(r *rand.Rand, op *program.Operator, in []tensor.Shape) Division {
	_, n := op.Out.LeafRange(0)
	d := Division{Elements: 1 + r.IntN(n), Links: 1}
	if r.IntN(3) == 0 {
		d.Elements = n
	}
	d.Ranges = (n + d.Elements - 1) / d.Elements
	if length := listLength(op, in); length > 0 {
		least := shortestLink(op)
		d.Along = min(length, least*(1+r.IntN((length+least-1)/least)))
		d.Links = (length + d.Along - 1) / d.Along
	}
	return d
}

func TestPartsOfRandomProgramsGiveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	links := map[program.Kind]int{}
	for seed := range 300 {
		p, in := programtest.Random(t, uint64(9000+seed), 5+seed%60)
		traceOps(t, p, in, func(i int, operands []*tensor.Tensor, value *tensor.Tensor) {
			op := &p.Ops[i]
			if r.IntN(3) == 0 {
				return
			}
			d := randomDivision(r, op, shapesOfOperands(p, op))
			links[op.Kind] = max(links[op.Kind], d.Links)
			checkParts(t, p.Numerics, op, operands, value, d, r.IntN(op.Out.Leaves()))
		})
	}
	for _, k := range []program.Kind{program.Dot, program.ReduceSum, program.ReduceMax, program.ReduceMin,
		program.SumSquares, program.AddRows, program.CausalAttention, program.CausalAttentionLSE,
		program.CausalAttentionGradK, program.CausalAttentionGradV} {
		if links[k] < 2 {
			t.Errorf("no %s was cut along its lists", k)
		}
	}
}

// Lists of several chunks, in links that begin and end anywhere.
func TestPartsOfLongLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := func(dims ...int) *tensor.Tensor {
		x := tensor.New(tensor.Make(tensor.Float32, dims...))
		for i := range x.F32() {
			x.F32()[i] = float32(r.NormFloat64())
		}
		return x
	}
	rows := tensor.New(tensor.Make(tensor.Int32, 700))
	for i := range rows.I32() {
		rows.I32()[i] = int32(r.IntN(9))
	}
	for _, c := range []struct {
		op program.Operator
		in []*tensor.Tensor
	}{
		{program.Operator{Kind: program.Dot, Out: tensor.Make(tensor.Float32, 3, 500), Ints: []int64{1, 0, 1, 0}},
			[]*tensor.Tensor{f(3, 1400), f(1400, 500)}},
		{program.Operator{Kind: program.Dot, Out: tensor.Make(tensor.Float32, 30, 40), Ints: []int64{1, 0, 1, 1}},
			[]*tensor.Tensor{f(30, 1024), f(40, 1024)}},
		{program.Operator{Kind: program.Dot, Out: tensor.Make(tensor.Float32, 2, 30, 40), Ints: []int64{1, 1, 1, 0, 1, 0}},
			[]*tensor.Tensor{f(2, 600, 30), f(2, 600, 40)}},
		{program.Operator{Kind: program.DotExact, Out: tensor.Make(tensor.Float32, 3, 500),
			Ints: []int64{1, 0, 1, 0, 15, 64}}, []*tensor.Tensor{f(3, 1400), f(1400, 500)}},
		{program.Operator{Kind: program.DotExact, Out: tensor.Make(tensor.Float32, 30, 40),
			Ints: []int64{1, 0, 1, 1, 8, 32}}, []*tensor.Tensor{f(30, 1024), f(40, 1024)}},
		{program.Operator{Kind: program.DotExact, Out: tensor.Make(tensor.Float32, 2, 30, 40),
			Ints: []int64{1, 1, 1, 0, 1, 0, 8, 64}}, []*tensor.Tensor{f(2, 600, 30), f(2, 600, 40)}},
		{program.Operator{Kind: program.ReduceSum, Out: tensor.Make(tensor.Float32, 7), Ints: []int64{0}},
			[]*tensor.Tensor{f(9000, 7)}},
		{program.Operator{Kind: program.ReduceSum, Out: tensor.Make(tensor.Float32, 3), Ints: []int64{1}},
			[]*tensor.Tensor{f(3, 8192)}},
		{program.Operator{Kind: program.ReduceSum, Out: tensor.Make(tensor.Float32, 5), Ints: []int64{0, 2}},
			[]*tensor.Tensor{f(70, 5, 70)}},
		{program.Operator{Kind: program.ReduceMax, Out: tensor.Make(tensor.Float32, 2000), Ints: []int64{1}},
			[]*tensor.Tensor{f(2000, 30)}},
		{program.Operator{Kind: program.SumSquares, Out: tensor.Make(tensor.Float32)}, []*tensor.Tensor{f(20000)}},
		{program.Operator{Kind: program.AddRows, Out: tensor.Make(tensor.Float32, 9, 300)}, []*tensor.Tensor{f(9, 300),
			rows, f(700, 300)}},
	} {
		want, err := cpu.Eval(kernel.Version1, &c.op, c.in)
		if err != nil {
			t.Fatal(err)
		}
		var shapes []tensor.Shape
		for _, x := range c.in {
			shapes = append(shapes, x.Shape)
		}
		for range 12 {
			checkParts(t, kernel.Version1, &c.op, c.in, want, randomDivision(r, &c.op, shapes), r.IntN(c.op.Out.Leaves()))
		}
		total := 0
		for _, x := range c.in {
			total += x.Shape.Leaves()
		}
		d, ok := Divide(&c.op, shapes, freely(func(need [][]int, state int) bool {
			n := 0
			for _, leaves := range need {
				n += len(leaves)
			}
			return n <= max(5, total/5)
		}))
		if !ok || d.Parts() < 2 {
			t.Fatalf("%s to %s is not divided: %+v", c.op.Kind, c.op.Out, d)
		}
		for leaf := range c.op.Out.Leaves() {
			checkParts(t, kernel.Version1, &c.op, c.in, want, d, leaf)
		}
	}
}

// freely is a Fit that may look at everything.
func freely(part func(need [][]int, state int) bool) Fit {
	return Fit{Part: part, Spend: func(int) bool { return true }}
}

func TestDivideFindsNoneForWhatNeverFits(t *testing.T) {
	op := &program.Operator{Kind: program.Neg, Out: tensor.Make(tensor.Float32, 4096)}
	calls := 0
	d, ok := Divide(op, []tensor.Shape{op.Out}, freely(func([][]int, int) bool { calls++; return false }))
	if ok || calls > 20 {
		t.Errorf("%+v after %d calls", d, calls)
	}
	if d, ok := Divide(op, []tensor.Shape{op.Out}, freely(func([][]int, int) bool { return true })); !ok ||
		d.Parts() != 1 {
		t.Errorf("%+v", d)
	}
}

// shapesOfOperands are the shapes of the operands of an operator of a program.
func shapesOfOperands(p *program.Program, op *program.Operator) (out []tensor.Shape) {
	for _, v := range op.In {
		out = append(out, p.Ops[v].Out)
	}
	return out
}
