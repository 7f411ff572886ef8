package program_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

func TestEncodingRoundTrip(t *testing.T) {
	for seed := range uint64(100) {
		p, in := programtest.Random(t, seed, 30)
		q, err := admit.Decode(p.Encode(), program.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		if q.Digest() != p.Digest() || !slices.Equal(q.Encode(), p.Encode()) ||
			fmt.Sprint(q.Inputs()) != fmt.Sprint(p.Inputs()) {
			t.Fatalf("seed %d: the decoded program differs", seed)
		}
		checkSameRun(t, p, q, in)
	}
}

// A part of a program gives the bits of the whole, from no more inputs than it needs.
func TestOnly(t *testing.T) {
	for seed := range uint64(50) {
		p, in := programtest.Random(t, seed, 30)
		whole := runOnce(t, p, in)
		for _, o := range p.Outputs {
			part := p.Only(o.Name)
			if err := admit.Verify(part, program.Unlimited); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, o.Name, err)
			}
			needed := map[string]*tensor.Tensor{}
			for _, i := range part.Inputs() {
				needed[i.Name] = in[i.Name]
			}
			if live := part.Live(); slices.Contains(live, false) {
				t.Fatalf("seed %d, %s: something is not needed: %v", seed, o.Name, live)
			}
			out := runOnce(t, part, needed)
			if programtest.SameBits(t, o.Name, out[o.Name], whole[o.Name]); len(out) != 1 {
				t.Fatalf("seed %d: %d outputs", seed, len(out))
			}
		}
	}
}

// checkSameRun demands the same outputs of two programs.
func checkSameRun(t *testing.T, p, q *program.Program, in map[string]*tensor.Tensor) {
	t.Helper()
	a, b := runOnce(t, p, in), runOnce(t, q, in)
	if len(a) != len(b) {
		t.Fatalf("%d outputs and %d", len(a), len(b))
	}
	for name := range a {
		programtest.SameBits(t, "output "+name, b[name], a[name])
	}
}

func runOnce(t *testing.T, p *program.Program, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSimplifyKeepsBitsAndInputs(t *testing.T) {
	for seed := range uint64(200) {
		p, in := programtest.Random(t, seed, 40)
		q := p.Simplify()
		if err := admit.Verify(q, program.DefaultLimits); err != nil {
			t.Fatal(err)
		}
		if len(q.Ops) > len(p.Ops) || len(q.Inputs()) != len(p.Inputs()) {
			t.Fatalf("seed %d: %d operators became %d, %d inputs %d", seed, len(p.Ops), len(q.Ops), len(p.Inputs()),
				len(q.Inputs()))
		}
		if again := q.Simplify(); again.Digest() != q.Digest() {
			t.Errorf("seed %d: simplifying twice is not simplifying once", seed)
		}
		checkSameRun(t, p, q, in)
	}
}

func TestSimplifyMergesAndDrops(t *testing.T) {
	b := program.NewBuilder()
	x := b.Input("x", tensor.Make(tensor.Float32, 2, 3))
	b.Input("unused", tensor.Make(tensor.Bool))
	e1, _ := b.Apply(program.Exp, x)
	e2, _ := b.Apply(program.Exp, x)
	_, _ = b.Apply(program.Log, x)
	t1, _ := b.Transpose(e2, 1, 0)
	t2, _ := b.Transpose(t1, 1, 0)
	sum, err := b.Apply(program.Add, e1, t2)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("sum", sum)
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range p.Simplify().Ops {
		got = append(got, op.Kind.String())
	}
	if want := "Input Input Exp Add"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestFlops(t *testing.T) {
	p, _ := programtest.Layer(t, 2, 8, 2, 4)
	products := 2*16*8*24 + 2*(2*2*8*8*4)*2
	if f := p.Flops(); f < uint64(products) || f > uint64(products)*2 {
		t.Errorf("%d, the products alone have %d", f, products)
	}
	huge := &program.Program{Ops: []program.Operator{{Out: tensor.Make(tensor.Float32, 1<<31-1, 1<<31-1)},
		{Kind: program.Dot, In: []int32{0, 0},
			Out: tensor.Make(tensor.Float32, 1<<31-1, 1<<31-1), Ints: []int64{1, 0, 1, 1}}}}
	if f := huge.Flops(); f != math.MaxUint64 {
		t.Errorf("a product of 2^94 operations counts as %d", f)
	}
}

func TestCheckRejects(t *testing.T) {
	f32 := tensor.Make(tensor.Float32, 2, 3)
	source := program.Operator{Kind: program.Input, Name: "x", Out: f32}
	for name, ops := range map[string][]program.Operator{
		"unknown kind":           {{Kind: 255, Out: f32}},
		"operand after":          {source, {Kind: program.Neg, In: []int32{1}, Out: f32}},
		"negative operand":       {source, {Kind: program.Neg, In: []int32{-1}, Out: f32}},
		"no operand":             {source, {Kind: program.Neg, Out: f32}},
		"two operands":           {source, {Kind: program.Neg, In: []int32{0, 0}, Out: f32}},
		"wrong result":           {source, {Kind: program.Neg, In: []int32{0}, Out: tensor.Make(tensor.Float32, 3, 2)}},
		"wrong result type":      {source, {Kind: program.Equal, In: []int32{0, 0}, Out: f32}},
		"unexpected attribute":   {source, {Kind: program.Neg, In: []int32{0}, Out: f32, Ints: []int64{1}}},
		"unexpected data":        {source, {Kind: program.Neg, In: []int32{0}, Out: f32, Data: []byte{1}}},
		"unexpected name":        {source, {Kind: program.Neg, In: []int32{0}, Out: f32, Name: "y"}},
		"nameless input":         {{Kind: program.Input, Out: f32}},
		"two inputs of a name":   {source, source},
		"zero dimension":         {{Kind: program.Input, Name: "x", Out: tensor.Make(tensor.Float32, 0)}},
		"negative dimension":     {{Kind: program.Input, Name: "x", Out: tensor.Make(tensor.Float32, -1)}},
		"unknown element type":   {{Kind: program.Input, Name: "x", Out: tensor.Make(99, 1)}},
		"overflowing dimensions": {{Kind: program.Input, Name: "x", Out: tensor.Make(tensor.Float32, 1<<32, 1<<32)}},
		"short constant":         {{Kind: program.Constant, Out: f32, Data: make([]byte, 4)}},
		"boolean 2":              {{Kind: program.Constant, Out: tensor.Make(tensor.Bool), Data: []byte{2}}},
		"other NaN": {{Kind: program.Constant, Out: tensor.Make(tensor.Float32), Data: []byte{1, 0, 0xc0,
			0x7f}}},
		"mean of a matrix twice": {source,
			{Kind: program.ReduceSum, In: []int32{0}, Out: tensor.Make(tensor.Float32), Ints: []int64{0, 0}}},
		"slice beyond the end":    {source, {Kind: program.Slice, In: []int32{0}, Out: f32, Ints: []int64{0, 0, 2, 4, 1, 1}}},
		"stride 0":                {source, {Kind: program.Slice, In: []int32{0}, Out: f32, Ints: []int64{0, 0, 2, 3, 1, 0}}},
		"permutation with a hole": {source, {Kind: program.Transpose, In: []int32{0}, Out: f32, Ints: []int64{1, 1}}},
		"reshape to more":         {source, {Kind: program.Reshape, In: []int32{0}, Out: tensor.Make(tensor.Float32, 7)}},
		"reshape that overflows": {source,
			{Kind: program.Reshape, In: []int32{0}, Out: tensor.Make(tensor.Float32, 1<<62, 1<<62, 6)}},
		"broadcast of 3 to 4": {source,
			{Kind: program.Broadcast, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 4), Ints: []int64{0, 1}}},
		"negative attribute count": {source, {Kind: program.Dot, In: []int32{0, 0}, Out: f32, Ints: []int64{-1, 1}}},
		"product that mismatches":  {source, {Kind: program.Dot, In: []int32{0, 0}, Out: f32, Ints: []int64{1, 0, 0, 1}}},
		"logarithm of integers": {{Kind: program.Input, Name: "i", Out: tensor.Make(tensor.Int32)},
			{Kind: program.Log, In: []int32{0}, Out: tensor.Make(tensor.Int32)}},
		"window of size 0": {source,
			{Kind: program.Windows, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 3, 1, 0), Ints: []int64{1, 0, 1, 1, 1,
				1}}},
		"window beyond the end": {source,
			{Kind: program.Windows, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 1, 1, 3), Ints: []int64{1, 3, 1, 1, 1,
				2}}},
		"window that overflows": {source,
			{Kind: program.Windows, In: []int32{0}, Out: f32, Ints: []int64{1, math.MaxInt64, 1, 1, 1, math.MaxInt64}}},
		"sum of other windows": {source, {Kind: program.SumWindows, In: []int32{0}, Out: f32, Ints: []int64{1, 2, 1, 1, 1,
			1}}},
		"maximum of a lost axis": {source,
			{Kind: program.FirstMax, In: []int32{0}, Out: tensor.Make(tensor.Bool, 2, 3), Ints: []int64{2}}},
		"random key of floats": {source, {Kind: program.Random, In: []int32{0}, Out: tensor.Make(tensor.Uint32, 2)}},
		"attribute beyond 32 bits": {source, {Kind: program.Input, Name: "s", Out: tensor.Make(tensor.Float32)},
			{Kind: program.AdamM, In: []int32{0, 0, 1}, Out: f32, Ints: []int64{1 << 32}}},
	} {
		p := &program.Program{Numerics: kernel.Version1, Ops: ops}
		if err := p.Check(program.DefaultLimits); !errors.Is(err, program.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	good := func() *program.Program {
		return &program.Program{Numerics: kernel.Version1, Ops: []program.Operator{source}}
	}
	for name, change := range map[string]func(p *program.Program){
		"other numerics":        func(p *program.Program) { p.Numerics = kernel.Newest + 1 },
		"output of no value":    func(p *program.Program) { p.Outputs = []program.Output{{"y", 1}} },
		"negative output":       func(p *program.Program) { p.Outputs = []program.Output{{"y", -1}} },
		"nameless output":       func(p *program.Program) { p.Outputs = []program.Output{{"", 0}} },
		"two outputs of a name": func(p *program.Program) { p.Outputs = []program.Output{{"y", 0}, {"y", 0}} },
	} {
		p := good()
		change(p)
		if err := p.Check(program.DefaultLimits); !errors.Is(err, program.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestGoldenDigests pins the bytes of programs and of their results. A change of a result is another version
// of the numerics.
func TestGoldenDigests(t *testing.T) {
	var got strings.Builder
	line := func(name string, p *program.Program, in map[string]*tensor.Tensor) {
		out := runOnce(t, p, in)
		fmt.Fprintf(&got, "%s program %s\n", name, p.Digest())
		for _, o := range p.Outputs {
			fmt.Fprintf(&got, "%s output %s %s\n", name, o.Name, out[o.Name].Root())
		}
	}
	p, in := programtest.Layer(t, 2, 33, 2, 16)
	line("layer", p, in)
	p, in = programtest.Random(t, 42, 60)
	line("random", p, in)
	p, in = programtest.Layer(t, 2, 33, 2, 16)
	line("layer of version 2", p.In(kernel.Version2), in)
	p, in = programtest.Random(t, 43, 60)
	line("random of version 2", p, in)

	path := filepath.Join("testdata", "golden.txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("results differ from %s (run with -rewrite after a wanted change):\n%s", path, got.String())
	}
}
