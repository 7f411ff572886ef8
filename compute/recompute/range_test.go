package recompute

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// needRange is Need of elements lo up to hi of an output.
func needRange(op *program.Operator, in []tensor.Shape, lo, hi int, indices *tensor.Partial) ([][]int, error) {
	pieces, err := cut(op, in, lo, hi, indices)
	if err != nil {
		return nil, err
	}
	return needs(pieces, in), nil
}

// known returns what needRange lists of the operands.
func known(t testing.TB, op *program.Operator, in []*tensor.Tensor, lo, hi int) []*tensor.Partial {
	t.Helper()
	shapes := make([]tensor.Shape, len(in))
	out := make([]*tensor.Partial, len(in))
	for i, x := range in {
		shapes[i], out[i] = x.Shape, tensor.NewPartial(x.Shape)
	}
	var indices *tensor.Partial
	for phase := 0; phase < 2; phase++ {
		need, err := needRange(op, shapes, lo, hi, indices)
		if err != nil {
			t.Fatal(err)
		}
		for k, leaves := range need {
			for _, l := range leaves {
				out[k].Set(l, slices.Clone(in[k].Leaf(l)))
			}
		}
		k := op.Kind.IndexOperand()
		if k < 0 {
			break
		}
		indices = out[k]
	}
	return out
}

func checkRange(t testing.TB, numerics uint32, op *program.Operator, in []*tensor.Tensor, want *tensor.Tensor,
	lo, hi int) {
	t.Helper()
	want = want.Clone()
	want.Canonicalize()
	got, err := EvalRange(numerics, op, known(t, op, in, lo, hi), lo, hi)
	size := op.Out.DType.Size()
	if err != nil || !bytes.Equal(got, want.Bytes()[lo*size:hi*size]) {
		t.Fatalf("%s of %v to %s, elements %d to %d: %v, got %x want %x", op.Kind, op.Ints, op.Out, lo, hi, err, got,
			want.Bytes()[lo*size:hi*size])
	}
}

// checkRanges demands the bits of a whole output from its parts.
func checkRanges(t testing.TB, numerics uint32, op *program.Operator, in []*tensor.Tensor, want *tensor.Tensor,
	seed int) {
	t.Helper()
	n := op.Out.Elements()
	for _, r := range [][2]int{{0, n}, {n - 1, n}, {n / 3, n/3 + 1 + (n-1-n/3)*(seed%5)/5},
		{seed % n, n - (n-seed%n)/2 + (n-seed%n)/4}} {
		if r[0] < r[1] && r[1] <= n {
			checkRange(t, numerics, op, in, want, r[0], r[1])
		}
	}
}

// traceOps shows every operator of a program but the inputs, with the canonical values of its operands and its own.
func traceOps(t testing.TB, p *program.Program, in map[string]*tensor.Tensor,
	visit func(op int, operands []*tensor.Tensor, value *tensor.Tensor)) {
	t.Helper()
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]*tensor.Tensor, len(p.Ops))
	err = x.Trace(in, func(i int, v *tensor.Tensor) error {
		values[i] = v.Clone()
		values[i].Canonicalize()
		if p.Ops[i].Kind == program.Input {
			return nil
		}
		var operands []*tensor.Tensor
		for _, k := range p.Ops[i].In {
			operands = append(operands, values[k])
		}
		visit(i, operands, values[i])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRangesOfRandomProgramsGiveTheSameBits(t *testing.T) {
	seen := map[program.Kind]bool{}
	for seed := range 400 {
		p, in := programtest.Random(t, uint64(5000+seed), 5+seed%60)
		traceOps(t, p, in, func(i int, operands []*tensor.Tensor, value *tensor.Tensor) {
			seen[p.Ops[i].Kind] = true
			checkRanges(t, p.Numerics, &p.Ops[i], operands, value, seed+i)
		})
	}
	for _, k := range programtest.Kinds() {
		if !seen[k] {
			t.Errorf("no program has %s", k)
		}
	}
}

// Tensors of many leaves: a range needs few of them.
func TestRangesOfLargeOperators(t *testing.T) {
	if err := kernel.Select(""); err != nil {
		t.Fatal(err)
	}
	p, in := programtest.Layer(t, 2, 70, 3, 40)
	x, err := cpu.Compile(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]*tensor.Tensor, len(p.Ops))
	err = x.Trace(in, func(i int, v *tensor.Tensor) error {
		values[i] = v
		op := &p.Ops[i]
		if op.Kind == program.Input {
			return nil
		}
		var operands []*tensor.Tensor
		for _, k := range op.In {
			operands = append(operands, values[k])
		}
		n := op.Out.Leaves()
		for _, leaf := range []int{0, n / 2, n - 1} {
			lo, hi := op.Out.LeafRange(leaf)
			checkRange(t, p.Numerics, op, operands, v, lo, hi)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNeedIsSmall(t *testing.T) {
	f := func(dims ...int) tensor.Shape { return tensor.Make(tensor.Float32, dims...) }
	indices := tensor.FromI32([]int32{5, 0, 5, 9, 3, 1}, 6)
	part := tensor.NewPartial(indices.Shape)
	part.Set(0, indices.Bytes())
	for _, c := range []struct {
		op   program.Operator
		in   []tensor.Shape
		leaf int
		want string
	}{
		{program.Operator{Kind: program.Add, Out: f(100, 1024)}, []tensor.Shape{f(100, 1024), f(100, 1024)}, 7, "[[7] [7]]"},
		{program.Operator{Kind: program.AdamM, Out: f(100, 1024)}, []tensor.Shape{f(100, 1024), f(100, 1024), f()}, 99,
			"[[99] [99] [0]]"},
		{program.Operator{Kind: program.Reshape, Out: f(1024, 100)}, []tensor.Shape{f(100, 1024)}, 50, "[[50]]"},
		{program.Operator{Kind: program.Dot, Out: f(8, 2048), Ints: []int64{1, 0, 1, 0}}, []tensor.Shape{f(8, 3), f(3,
			2048)}, 3,
			"[[0] [1 3 5]]"},
		{program.Operator{Kind: program.ReduceSum, Out: f(2048), Ints: []int64{1}}, []tensor.Shape{f(2048, 2)}, 1, "[[2 3]]"},
		{program.Operator{Kind: program.ReduceSum, Out: f(2048), Ints: []int64{0}}, []tensor.Shape{f(3, 2048)}, 1,
			"[[1 3 5]]"},
		{program.Operator{Kind: program.TakeRows, Out: f(6, 1024)}, []tensor.Shape{f(10, 1024), indices.Shape}, 2,
			"[[5] [0]]"},
		{program.Operator{Kind: program.AddRows, Out: f(10, 1024)}, []tensor.Shape{f(10, 1024), indices.Shape, f(6, 1024)}, 5,
			"[[5] [0] [0 2]]"},
		{program.Operator{Kind: program.Concat, Out: f(20, 1024), Ints: []int64{0}}, []tensor.Shape{f(10, 1024), f(10,
			1024)}, 12,
			"[[] [2]]"},
	} {
		lo, hi := c.op.Out.LeafRange(c.leaf)
		need, err := needRange(&c.op, c.in, lo, hi, part)
		if c.op.Kind == program.TakeRows || c.op.Kind == program.AddRows {
			only, err := needRange(&c.op, c.in, lo, hi, nil)
			if err != nil || len(only[0]) > 0 || len(only[1]) != 1 {
				t.Errorf("%s without indices: %v, %v", c.op.Kind, only, err)
			}
			need[1] = only[1]
		}
		if err != nil || fmt.Sprint(need) != c.want {
			t.Errorf("%s: %v, %v, want %s", c.op.Kind, need, err, c.want)
		}
	}
}

func TestEvalRangeNeedsItsOperands(t *testing.T) {
	s := tensor.Make(tensor.Float32, 4096)
	op := &program.Operator{Kind: program.Neg, Out: s}
	x := tensor.NewPartial(s)
	x.Set(1, make([]byte, tensor.LeafBytes))
	if _, err := EvalRange(kernel.Version1, op, []*tensor.Partial{x}, 1024, 2048); err != nil {
		t.Error(err)
	}
	if _, err := EvalRange(kernel.Version1, op, []*tensor.Partial{x}, 2048, 3072); !errors.Is(err, ErrPartial) {
		t.Errorf("a missing leaf: %v", err)
	}
	table, indices := tensor.NewPartial(s), tensor.NewPartial(tensor.Make(tensor.Int32, 1))
	indices.Set(0, tensor.FromI32([]int32{4096}, 1).Bytes())
	take := &program.Operator{Kind: program.TakeRows, Out: tensor.Make(tensor.Float32, 1)}
	_, err := EvalRange(kernel.Version1, take, []*tensor.Partial{table, indices}, 0, 1)
	if !errors.Is(err, program.ErrIndex) {
		t.Errorf("an index outside: %v", err)
	}
}

// TestAttentionNeedsLittle bounds what a referee is given: rows of one head, and no others.
func TestAttentionNeedsLittle(t *testing.T) {
	f := func(dims ...int) tensor.Shape { return tensor.Make(tensor.Float32, dims...) }
	q, k, r := f(2, 12, 512, 64), f(2, 4, 512, 64), f(2, 12, 512)
	for _, c := range []struct {
		kind program.Kind
		in   []tensor.Shape
		out  tensor.Shape
		most int // leaves
	}{
		{program.CausalAttention, []tensor.Shape{q, k, k}, q, 1 + 2*32},
		{program.CausalAttentionGradQ, []tensor.Shape{q, k, k, q, r, r}, q, 2 + 2*32 + 2},
		{program.CausalAttentionGradK, []tensor.Shape{q, k, k, q, r, r}, k, 2*3*32 + 2 + 2*4},
		{program.CausalAttentionGradV, []tensor.Shape{q, k, q, r}, k, 2*3*32 + 1 + 4},
	} {
		op := &program.Operator{Kind: c.kind, Out: c.out, Ints: []int64{0, 0}}
		for leaf := range c.out.Leaves() {
			lo, hi := c.out.LeafRange(leaf)
			need, err := needRange(op, c.in, lo, hi, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, leaves := range need {
				n += len(leaves)
			}
			if n > c.most {
				t.Fatalf("leaf %d of %s needs %d leaves, more than %d", leaf, c.kind, n, c.most)
			}
		}
	}
}
