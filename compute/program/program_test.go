package program

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// tiny are limits under which a fuzzer may run what it finds.
var tiny = Limits{MaxOps: 100, MaxBytes: 1 << 16, MaxMemory: 1 << 20, MaxFlops: 1 << 20}

func TestEncodingRoundTrip(t *testing.T) {
	for seed := range uint64(100) {
		p, in := randomProgram(t, seed, 30)
		q, err := Decode(p.Encode(), DefaultLimits)
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
		p, in := randomProgram(t, seed, 30)
		whole := runOnce(t, p, in)
		for _, o := range p.Outputs {
			part := p.Only(o.Name)
			if err := part.Verify(Unlimited); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, o.Name, err)
			}
			needed := map[string]*tensor.Tensor{}
			for _, i := range part.Inputs() {
				needed[i.Name] = in[i.Name]
			}
			if live := part.live(); slices.Contains(live, false) {
				t.Fatalf("seed %d, %s: something is not needed: %v", seed, o.Name, live)
			}
			out := runOnce(t, part, needed)
			if sameBits(t, o.Name, out[o.Name], whole[o.Name]); len(out) != 1 {
				t.Fatalf("seed %d: %d outputs", seed, len(out))
			}
		}
	}
}

// checkSameRun demands the same outputs of two programs.
func checkSameRun(t *testing.T, p, q *Program, in map[string]*tensor.Tensor) {
	t.Helper()
	a, b := runOnce(t, p, in), runOnce(t, q, in)
	if len(a) != len(b) {
		t.Fatalf("%d outputs and %d", len(a), len(b))
	}
	for name := range a {
		sameBits(t, "output "+name, b[name], a[name])
	}
}

func runOnce(t *testing.T, p *Program, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	x, err := Compile(p, 1)
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
		p, in := randomProgram(t, seed, 40)
		q := p.Simplify()
		if err := q.Verify(DefaultLimits); err != nil {
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
	b := NewBuilder()
	x := b.Input("x", tensor.Make(tensor.Float32, 2, 3))
	b.Input("unused", tensor.Make(tensor.Bool))
	e1, _ := b.Unary(Exp, x)
	e2, _ := b.Unary(Exp, x)
	_, _ = b.Unary(Log, x)
	t1, _ := b.Transpose(e2, 1, 0)
	t2, _ := b.Transpose(t1, 1, 0)
	sum, err := b.Binary(Add, e1, t2)
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
	p, _ := layerProgram(t, 2, 8, 2, 4)
	products := 2*16*8*24 + 2*(2*2*8*8*4)*2
	if f := p.Flops(); f < uint64(products) || f > uint64(products)*2 {
		t.Errorf("%d, the products alone have %d", f, products)
	}
	huge := &Program{Ops: []Operator{{Out: tensor.Make(tensor.Float32, 1<<31-1, 1<<31-1)}, {Kind: Dot, In: []int32{0, 0},
		Out: tensor.Make(tensor.Float32, 1<<31-1, 1<<31-1), Ints: []int64{1, 0, 1, 1}}}}
	if f := huge.Flops(); f != math.MaxUint64 {
		t.Errorf("a product of 2^94 operations counts as %d", f)
	}
}

func TestVerifyRejects(t *testing.T) {
	f32 := tensor.Make(tensor.Float32, 2, 3)
	source := Operator{Kind: Input, Name: "x", Out: f32}
	for name, ops := range map[string][]Operator{
		"unknown kind":           {{Kind: 255, Out: f32}},
		"operand after":          {source, {Kind: Neg, In: []int32{1}, Out: f32}},
		"negative operand":       {source, {Kind: Neg, In: []int32{-1}, Out: f32}},
		"no operand":             {source, {Kind: Neg, Out: f32}},
		"two operands":           {source, {Kind: Neg, In: []int32{0, 0}, Out: f32}},
		"wrong result":           {source, {Kind: Neg, In: []int32{0}, Out: tensor.Make(tensor.Float32, 3, 2)}},
		"wrong result type":      {source, {Kind: Equal, In: []int32{0, 0}, Out: f32}},
		"unexpected attribute":   {source, {Kind: Neg, In: []int32{0}, Out: f32, Ints: []int64{1}}},
		"unexpected data":        {source, {Kind: Neg, In: []int32{0}, Out: f32, Data: []byte{1}}},
		"unexpected name":        {source, {Kind: Neg, In: []int32{0}, Out: f32, Name: "y"}},
		"nameless input":         {{Kind: Input, Out: f32}},
		"two inputs of a name":   {source, source},
		"zero dimension":         {{Kind: Input, Name: "x", Out: tensor.Make(tensor.Float32, 0)}},
		"negative dimension":     {{Kind: Input, Name: "x", Out: tensor.Make(tensor.Float32, -1)}},
		"unknown element type":   {{Kind: Input, Name: "x", Out: tensor.Make(99, 1)}},
		"overflowing dimensions": {{Kind: Input, Name: "x", Out: tensor.Make(tensor.Float32, 1<<32, 1<<32)}},
		"short constant":         {{Kind: Constant, Out: f32, Data: make([]byte, 4)}},
		"boolean 2":              {{Kind: Constant, Out: tensor.Make(tensor.Bool), Data: []byte{2}}},
		"other NaN":              {{Kind: Constant, Out: tensor.Make(tensor.Float32), Data: []byte{1, 0, 0xc0, 0x7f}}},
		"mean of a matrix twice": {source,
			{Kind: ReduceSum, In: []int32{0}, Out: tensor.Make(tensor.Float32), Ints: []int64{0, 0}}},
		"slice beyond the end":    {source, {Kind: Slice, In: []int32{0}, Out: f32, Ints: []int64{0, 0, 2, 4, 1, 1}}},
		"stride 0":                {source, {Kind: Slice, In: []int32{0}, Out: f32, Ints: []int64{0, 0, 2, 3, 1, 0}}},
		"permutation with a hole": {source, {Kind: Transpose, In: []int32{0}, Out: f32, Ints: []int64{1, 1}}},
		"reshape to more":         {source, {Kind: Reshape, In: []int32{0}, Out: tensor.Make(tensor.Float32, 7)}},
		"reshape that overflows": {source,
			{Kind: Reshape, In: []int32{0}, Out: tensor.Make(tensor.Float32, 1<<62, 1<<62, 6)}},
		"broadcast of 3 to 4": {source,
			{Kind: Broadcast, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 4), Ints: []int64{0, 1}}},
		"negative attribute count": {source, {Kind: Dot, In: []int32{0, 0}, Out: f32, Ints: []int64{-1, 1}}},
		"product that mismatches":  {source, {Kind: Dot, In: []int32{0, 0}, Out: f32, Ints: []int64{1, 0, 0, 1}}},
		"logarithm of integers": {{Kind: Input, Name: "i", Out: tensor.Make(tensor.Int32)},
			{Kind: Log, In: []int32{0}, Out: tensor.Make(tensor.Int32)}},
		"window of size 0": {source,
			{Kind: Windows, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 3, 1, 0), Ints: []int64{1, 0, 1, 1, 1, 1}}},
		"window beyond the end": {source,
			{Kind: Windows, In: []int32{0}, Out: tensor.Make(tensor.Float32, 2, 1, 1, 3), Ints: []int64{1, 3, 1, 1, 1, 2}}},
		"window that overflows": {source,
			{Kind: Windows, In: []int32{0}, Out: f32, Ints: []int64{1, math.MaxInt64, 1, 1, 1, math.MaxInt64}}},
		"sum of other windows": {source, {Kind: SumWindows, In: []int32{0}, Out: f32, Ints: []int64{1, 2, 1, 1, 1, 1}}},
		"maximum of a lost axis": {source,
			{Kind: FirstMax, In: []int32{0}, Out: tensor.Make(tensor.Bool, 2, 3), Ints: []int64{2}}},
		"random key of floats": {source, {Kind: Random, In: []int32{0}, Out: tensor.Make(tensor.Uint32, 2)}},
		"attribute beyond 32 bits": {source, {Kind: Input, Name: "s", Out: tensor.Make(tensor.Float32)},
			{Kind: AdamM, In: []int32{0, 0, 1}, Out: f32, Ints: []int64{1 << 32}}},
	} {
		p := &Program{Numerics: NewBuilder().p.Numerics, Ops: ops}
		if err := p.Verify(DefaultLimits); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	good := func() *Program { return &Program{Numerics: NewBuilder().p.Numerics, Ops: []Operator{source}} }
	for name, change := range map[string]func(p *Program){
		"other numerics":        func(p *Program) { p.Numerics++ },
		"output of no value":    func(p *Program) { p.Outputs = []Output{{"y", 1}} },
		"negative output":       func(p *Program) { p.Outputs = []Output{{"y", -1}} },
		"nameless output":       func(p *Program) { p.Outputs = []Output{{"", 0}} },
		"two outputs of a name": func(p *Program) { p.Outputs = []Output{{"y", 0}, {"y", 0}} },
	} {
		p := good()
		change(p)
		if err := p.Verify(DefaultLimits); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	p, _ := layerProgram(t, 2, 16, 2, 8)
	if err := p.Verify(DefaultLimits); err != nil {
		t.Fatal(err)
	}
	x, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l *Limits){
		"operators": func(l *Limits) { l.MaxOps = len(p.Ops) - 1 },
		"bytes":     func(l *Limits) { l.MaxBytes = int64(len(p.Encode())) - 1 },
		"memory":    func(l *Limits) { l.MaxMemory = x.PeakBytes() - 1 },
		"flops":     func(l *Limits) { l.MaxFlops = p.Flops() - 1 },
	} {
		l := DefaultLimits
		change(&l)
		if _, err := Decode(p.Encode(), l); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v, want ErrLimit", name, err)
		}
	}
}

// runHarmlessly runs a program that passes verification on zeros, and demands that nothing but an index fails.
func runHarmlessly(t *testing.T, p *Program) {
	in := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		in[i.Name] = tensor.New(i.Shape)
	}
	x, err := Compile(p, 2)
	if err != nil {
		t.Fatalf("verified, but Compile says %v", err)
	}
	if _, err := x.Run(in); err != nil && !errors.Is(err, ErrIndex) {
		t.Fatalf("verified, but Run says %v", err)
	}
	if err := x.Trace(in, func(int, *tensor.Tensor) error { return nil }); err != nil && !errors.Is(err, ErrIndex) {
		t.Fatalf("verified, but Trace says %v", err)
	}
	if err := p.Simplify().Verify(Unlimited); err != nil {
		t.Fatalf("verified, but once simplified %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		p, _ := randomProgram(&testing.T{}, seed, 8)
		f.Add(p.Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data, tiny)
		if err != nil {
			return
		}
		if !slices.Equal(p.Encode(), data) {
			t.Fatal("two encodings of one program")
		}
		runHarmlessly(t, p)
	})
}

// TestMutatedProgramsAreHarmless changes fields of valid programs, as an attacker who knows the format would.
func TestMutatedProgramsAreHarmless(t *testing.T) {
	list, seeds := kindList(), uint64(4000)
	if testing.Short() {
		seeds = 1000
	}
	passed := 0
	for seed := range seeds {
		p, _ := randomProgram(t, seed%100, 12)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 1 + r.IntN(2) {
			op := &p.Ops[r.IntN(len(p.Ops))]
			odd := []int64{-1, 0, 1, 2, 3, 7, 1000, math.MaxInt32, math.MaxInt64, math.MinInt64, 1 << 32}[r.IntN(11)]
			switch r.IntN(7) {
			case 0:
				op.Kind = list[r.IntN(len(list))]
			case 1:
				op.Out.DType = allTypes[r.IntN(len(allTypes))]
			case 2:
				if len(op.Out.Dims) > 0 {
					op.Out.Dims[r.IntN(len(op.Out.Dims))] = int(odd)
				}
			case 3:
				if len(op.Ints) > 0 {
					op.Ints[r.IntN(len(op.Ints))] = odd
				}
			case 4:
				if len(op.In) > 0 {
					op.In[r.IntN(len(op.In))] = int32(r.IntN(len(p.Ops)+2) - 1)
				}
			case 5:
				op.Ints = append(op.Ints, odd)
			case 6:
				op.Data = append(op.Data, byte(odd))
			}
		}
		if p.Verify(tiny) == nil {
			passed++
			runHarmlessly(t, p)
		}
	}
	if passed < 100 {
		t.Errorf("only %d mutants passed verification: the test has lost its teeth", passed)
	}
}

// TestGoldenDigests pins the bytes of programs and of their results. A change of a result is a change of
// kernel.Version.
func TestGoldenDigests(t *testing.T) {
	var got strings.Builder
	line := func(name string, p *Program, in map[string]*tensor.Tensor) {
		out := runOnce(t, p, in)
		fmt.Fprintf(&got, "%s program %s\n", name, p.Digest())
		for _, o := range p.Outputs {
			fmt.Fprintf(&got, "%s output %s %s\n", name, o.Name, out[o.Name].Root())
		}
	}
	p, in := layerProgram(t, 2, 33, 2, 16)
	line("layer", p, in)
	p, in = randomProgram(t, 42, 60)
	line("random", p, in)

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
