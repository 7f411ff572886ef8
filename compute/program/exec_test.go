package program

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// sameBits fails unless both tensors have the same bytes, all NaNs being taken as one.
func sameBits(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	g, w := got.Clone(), want.Clone()
	g.Canonicalize()
	w.Canonicalize()
	if !g.Shape.Equal(w.Shape) || !bytes.Equal(g.Bytes(), w.Bytes()) {
		t.Fatalf("%s: got %s %v, want %s %v", what, g.Shape, naiveFrom(g), w.Shape, naiveFrom(w))
	}
}

// checkProgram demands the bits of the oracle from Run at several numbers of threads, Trace and Eval.
func checkProgram(t *testing.T, p *Program, in map[string]*tensor.Tensor) {
	t.Helper()
	values := make([]naive, len(p.Ops))
	tensors := make([]*tensor.Tensor, len(p.Ops))
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == Input {
			values[i], tensors[i] = naiveFrom(in[op.Name]), in[op.Name]
			continue
		}
		var operands []naive
		var args []*tensor.Tensor
		for _, v := range op.In {
			operands, args = append(operands, values[v]), append(args, tensors[v])
		}
		tensors[i] = evalNaive(t, op, operands).tensor()
		values[i] = naiveFrom(tensors[i])
		got, err := Eval(op, args)
		if err != nil {
			t.Fatalf("Eval of operator %d: %v", i, err)
		}
		sameBits(t, fmt.Sprintf("Eval of operator %d, %s", i, op.Kind), got, tensors[i])
	}
	for threads := 1; threads <= 3; threads++ {
		x, err := Compile(p, threads)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second run finds what the first left in the arena
			out, err := x.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range p.Outputs {
				sameBits(t, fmt.Sprintf("Run with %d threads, %s of value %d", threads, p.Ops[o.Value].Kind, o.Value), out[o.Name],
					tensors[o.Value])
			}
		}
		err = x.Trace(in, func(op int, value *tensor.Tensor) error {
			sameBits(t, fmt.Sprintf("Trace of operator %d, %s", op, p.Ops[op].Kind), value, tensors[op])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRandomProgramsGiveTheSpecifiedBits(t *testing.T) {
	for _, path := range kernel.Paths() {
		t.Run(path.String(), func(t *testing.T) {
			if err := kernel.Select(path.String()); err != nil {
				t.Fatal(err)
			}
			defer kernel.Select("")
			for seed := range uint64(150) {
				p, in := randomProgram(t, seed, 5+int(seed)%60)
				t.Run(fmt.Sprint(seed), func(t *testing.T) { checkProgram(t, p, in) })
			}
		})
	}
}

func TestRandomProgramsInSmallTilesOnSeveralThreads(t *testing.T) {
	tile, least := tileElements, minParallel
	defer func() { tileElements, minParallel = tile, least }()
	for seed := range uint64(150) {
		tileElements, minParallel = 1+int(seed)%40, 1
		p, in := randomProgram(t, 1000+seed, 5+int(seed)%60)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkProgram(t, p, in) })
	}
}

// layerProgram is a piece of a transformer with its usual views: split heads, masked softmax, row and column sums.
func layerProgram(t *testing.T, batch, length, heads, width int) (*Program, map[string]*tensor.Tensor) {
	b := NewBuilder()
	must := func(v Value, err error) Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	d := heads * width
	x := b.Input("x", tensor.Make(tensor.Float32, batch, length, d))
	w := b.Input("w", tensor.Make(tensor.Float32, d, 3*d))
	bias := b.Input("bias", tensor.Make(tensor.Float32, 3*d))
	qkv := must(b.Dot(x, []int{2}, nil, w, []int{0}, nil))
	qkv = must(b.Binary(Add, qkv, must(b.Broadcast(bias, []int{batch, length, 3 * d}, []int{2}))))
	part := func(i int) Value {
		s := must(b.Slice(qkv, []int{0, 0, i * d}, []int{batch, length, (i + 1) * d}, []int{1, 1, 1}))
		return must(b.Reshape(s, batch, length, heads, width))
	}
	q, k, v := part(0), part(1), part(2)
	scores := must(b.Dot(q, []int{3}, []int{0, 2}, k, []int{3}, []int{0, 2}))
	dims := b.Shape(scores).Dims
	row := must(b.Iota(tensor.Make(tensor.Int32, length, length), 0))
	column := must(b.Iota(tensor.Make(tensor.Int32, length, length), 1))
	mask := must(b.Broadcast(must(b.Compare(LessEqual, column, row)), dims, []int{2, 3}))
	low := must(b.Broadcast(b.Constant(tensor.Scalar(-1e9)), dims, nil))
	scores = must(b.Where(mask, scores, low))
	spread := func(x Value) Value { return must(b.Broadcast(x, dims, []int{0, 1, 2})) }
	e := must(b.Unary(Exp, must(b.Binary(Sub, scores, spread(must(b.ReduceMax(scores, 3)))))))
	probs := must(b.Binary(Div, e, spread(must(b.ReduceSum(e, 3)))))
	mixed := must(b.Dot(probs, []int{3}, []int{0, 1}, v, []int{1}, []int{0, 2}))
	joined := must(b.Reshape(must(b.Transpose(mixed, 0, 2, 1, 3)), batch, length, d))
	b.Output("joined", joined)
	b.Output("tanh", must(b.Unary(Tanh, joined)))
	b.Output("columns", must(b.ReduceSum(joined, 0, 1)))
	b.Output("squares", must(b.SumSquares(qkv)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{}
	r := rand.New(rand.NewPCG(7, 7))
	for _, i := range p.Inputs() {
		in[i.Name] = randomTensor(r, i.Shape, false)
	}
	return p, in
}

func TestLayerGivesTheSpecifiedBits(t *testing.T) {
	p, in := layerProgram(t, 2, 19, 3, 7)
	checkProgram(t, p, in)
	checkProgram(t, p.Simplify(), in)
}

func TestSteadyStateAllocatesNoBuffers(t *testing.T) {
	p, in := layerProgram(t, 4, 128, 4, 32)
	x, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	const runs = 5
	runtime.ReadMemStats(&before)
	for range runs {
		if err := x.RunInto(in, out); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	// The race detector makes the pools of matrix products forget; without it, nearly nothing is allocated.
	if bytes := int64(after.TotalAlloc-before.TotalAlloc) / runs; bytes > x.PeakBytes()/4 {
		t.Errorf("a run allocates %d bytes, and has %d", bytes, x.PeakBytes())
	}
}

func TestRunRejectsWrongTensors(t *testing.T) {
	p, good := layerProgram(t, 1, 4, 1, 4)
	x, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(in, out map[string]*tensor.Tensor){
		"missing input":     func(in, _ map[string]*tensor.Tensor) { delete(in, "w") },
		"unknown input":     func(in, _ map[string]*tensor.Tensor) { in["v"] = tensor.Scalar(1) },
		"wrong shape":       func(in, _ map[string]*tensor.Tensor) { in["bias"] = tensor.Scalar(1) },
		"missing output":    func(_, out map[string]*tensor.Tensor) { delete(out, "tanh") },
		"wrong output":      func(_, out map[string]*tensor.Tensor) { out["tanh"] = tensor.Scalar(1) },
		"output is another": func(_, out map[string]*tensor.Tensor) { out["joined"] = out["tanh"] },
		"wrong type of elements": func(in, _ map[string]*tensor.Tensor) {
			in["bias"] = tensor.FromI32(make([]int32, 12),
				12)
		},
	} {
		out, err := x.Run(good)
		if err != nil {
			t.Fatal(err)
		}
		in := maps.Clone(good)
		change(in, out)
		if err := x.RunInto(in, out); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
	}
}

func TestIndexOutOfRangeIsAnErrorOfTheRun(t *testing.T) {
	for _, bad := range []int32{-1, 3, math.MaxInt32} {
		b := NewBuilder()
		rows := b.Input("rows", tensor.Make(tensor.Int32, 2))
		table := b.Input("table", tensor.Make(tensor.Float32, 3, 4))
		taken, err := b.TakeRows(table, rows)
		if err != nil {
			t.Fatal(err)
		}
		added, err := b.AddRows(table, rows, taken)
		if err != nil {
			t.Fatal(err)
		}
		b.Output("added", added)
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		x, err := Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]*tensor.Tensor{"rows": tensor.FromI32([]int32{1, bad}, 2),
			"table": tensor.New(tensor.Make(tensor.Float32, 3, 4))}
		var e *OpError
		if _, err := x.Run(in); !errors.Is(err, ErrIndex) || !errors.As(err, &e) || e.Index != int(taken) {
			t.Errorf("index %d: %v", bad, err)
		}
		if err := x.Trace(in, func(int, *tensor.Tensor) error { return nil }); !errors.Is(err, ErrIndex) {
			t.Errorf("index %d: Trace says %v", bad, err)
		}
	}
}

// TestLiveStoresNeverOverlap checks the plan of memory against the lives of the stores, counted here from the steps.
func TestLiveStoresNeverOverlap(t *testing.T) {
	for seed := range uint64(300) {
		p, _ := randomProgram(t, seed, 10+int(seed)%120)
		pl := lower(p, 0)
		made, last := make([]int, len(pl.stores)), make([]int, len(pl.stores))
		for i := range made {
			made[i], last[i] = len(pl.steps), -1
		}
		for i, st := range pl.steps {
			for _, s := range st.writes {
				made[s], last[s] = min(made[s], i), max(last[s], i)
			}
			for _, s := range st.reads {
				last[s] = i
			}
		}
		for a, x := range pl.stores {
			if x.class != inArena || last[a] < 0 {
				continue
			}
			if x.offset%tensor.Align != 0 || x.offset < 0 || x.offset+x.bytes > pl.arena {
				t.Fatalf("seed %d: store %d at %d, %d bytes, is not in the arena of %d", seed, a, x.offset, x.bytes, pl.arena)
			}
			for b, y := range pl.stores[:a] {
				together := y.class == inArena && made[a] <= last[b] && made[b] <= last[a]
				if !together || x.offset >= y.offset+y.bytes || y.offset >= x.offset+x.bytes {
					continue
				}
				older, newer := b, a
				if made[a] < made[b] {
					older, newer = a, b
				}
				if heirs, _ := pl.heirs(made[newer], pl.dying(made[newer])); last[older] != made[newer] || heirs[newer] != older ||
					x.offset != y.offset {
					t.Fatalf("seed %d: stores %d and %d overlap while both live", seed, a, b)
				}
			}
		}
	}
}

// TestHeirHasElementsOfTheSameSize: 16 of 64 booleans become 16 floats in as many bytes. Were the floats put over the
// booleans, the first tile would destroy those of the second.
func TestHeirHasElementsOfTheSameSize(t *testing.T) {
	tile := tileElements
	defer func() { tileElements = tile }()
	tileElements = 8
	b := NewBuilder()
	not, _ := b.Unary(Not, b.Input("x", tensor.Make(tensor.Bool, 64)))
	few, _ := b.Slice(not, []int{0}, []int{16}, []int{1})
	floats, _ := b.Convert(few, tensor.Float32)
	sum, err := b.ReduceSum(floats, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("sum", sum)
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	checkProgram(t, p, map[string]*tensor.Tensor{"x": tensor.New(tensor.Make(tensor.Bool, 64))})
}

// Eval computes one operator, other than an Input, with the portable kernels: what a referee does. The bits are those
// of Run. What breaks a rule of the kind is ErrInvalid, but no limit is checked: the operator must come from a verified
// program.
func Eval(op *Operator, in []*tensor.Tensor) (*tensor.Tensor, error) {
	return alone(op, in, 1, kernel.Portable)
}
