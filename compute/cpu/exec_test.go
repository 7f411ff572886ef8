package cpu

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// checkProgram demands the bits of the oracle from Run at several numbers of threads, Trace and Eval.
func checkProgram(t *testing.T, p *program.Program, in map[string]*tensor.Tensor) {
	t.Helper()
	checkValues(t, p, in, specified(t, p, in))
}

// specified are the values of all operators by the specification, which computes each element alone and is slow.
func specified(t *testing.T, p *program.Program, in map[string]*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	tensors := make([]*tensor.Tensor, len(p.Ops))
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Kind == program.Input {
			tensors[i] = in[op.Name]
		} else {
			tensors[i] = programtest.Eval(t, p.Numerics, op, operands(op, tensors))
		}
	}
	return tensors
}

// operands are the values that an operator reads.
func operands(op *program.Operator, tensors []*tensor.Tensor) (args []*tensor.Tensor) {
	for _, v := range op.In {
		args = append(args, tensors[v])
	}
	return args
}

// checkValues checks that all ways to execute a program give these values of its operators.
func checkValues(t *testing.T, p *program.Program, in map[string]*tensor.Tensor, tensors []*tensor.Tensor) {
	t.Helper()
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == program.Input {
			continue
		}
		got, err := Eval(p.Numerics, op, operands(op, tensors))
		if err != nil {
			t.Fatalf("Eval of operator %d: %v", i, err)
		}
		programtest.SameBits(t, fmt.Sprintf("Eval of operator %d, %s", i, op.Kind), got, tensors[i])
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
				what := fmt.Sprintf("Run with %d threads, %s of value %d", threads, p.Ops[o.Value].Kind, o.Value)
				programtest.SameBits(t, what, out[o.Name], tensors[o.Value])
			}
		}
		err = x.Trace(in, func(op int, value *tensor.Tensor) error {
			programtest.SameBits(t, fmt.Sprintf("Trace of operator %d, %s", op, p.Ops[op].Kind), value, tensors[op])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if x.Drop(); x.block != nil || x.memory != nil {
			t.Error("memory is kept after it was dropped")
		}
		x.Drop()
		checkTraceOf(t, x, in, tensors)
	}
}

// checkTraceOf compares two values of a program when they are asked for alone.
func checkTraceOf(t *testing.T, x *Exec, in map[string]*tensor.Tensor, tensors []*tensor.Tensor) {
	t.Helper()
	wanted, seen := []int{len(tensors) - 1, len(tensors) / 2}, map[int]bool{}
	err := x.TraceOf(in, wanted, func(op int, value *tensor.Tensor) error {
		seen[op] = true
		programtest.SameBits(t, fmt.Sprintf("TraceOf operator %d", op), value, tensors[op])
		return nil
	})
	if err != nil || !seen[wanted[0]] || !seen[wanted[1]] || len(seen) > 2 {
		t.Errorf("asked for %v, saw %v, %v", wanted, seen, err)
	}
}

func TestRandomProgramsGiveTheSpecifiedBits(t *testing.T) {
	type drawn struct {
		p    *program.Program
		in   map[string]*tensor.Tensor
		want []*tensor.Tensor
	}
	var all []drawn
	for seed := range seeds() {
		p, in := programtest.Random(t, seed, 5+int(seed)%60)
		all = append(all, drawn{p, in, specified(t, p, in)})
	}
	for _, path := range kernel.Paths() {
		t.Run(path.String(), func(t *testing.T) {
			if err := kernel.Select(path.String()); err != nil {
				t.Fatal(err)
			}
			defer kernel.Select("")
			for seed, d := range all {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { checkValues(t, d.p, d.in, d.want) })
			}
		})
	}
}

func TestRandomProgramsInSmallTilesOnSeveralThreads(t *testing.T) {
	tile, least := tileElements, minParallel
	defer func() { tileElements, minParallel = tile, least }()
	for seed := range seeds() {
		tileElements, minParallel = 1+int(seed)%40, 1
		p, in := programtest.Random(t, 1000+seed, 5+int(seed)%60)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkProgram(t, p, in) })
	}
}

func TestLayerGivesTheSpecifiedBits(t *testing.T) {
	p, in := programtest.Layer(t, 2, 19, 3, 7)
	checkProgram(t, p, in)
	checkProgram(t, p.Simplify(), in)
}

func TestSteadyStateAllocatesNoBuffers(t *testing.T) {
	p, in := programtest.Layer(t, 4, 128, 4, 32)
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
	p, good := programtest.Layer(t, 1, 4, 1, 4)
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
		if err := x.RunInto(in, out); !errors.Is(err, program.ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
	}
}

func TestIndexOutOfRangeIsAnErrorOfTheRun(t *testing.T) {
	for _, bad := range []int32{-1, 3, math.MaxInt32} {
		b := program.NewBuilder()
		rows := b.Input("rows", tensor.Make(tensor.Int32, 2))
		table := b.Input("table", tensor.Make(tensor.Float32, 3, 4))
		taken, err := b.Apply(program.TakeRows, table, rows)
		if err != nil {
			t.Fatal(err)
		}
		added, err := b.Apply(program.AddRows, table, rows, taken)
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
		var e *program.OpError
		if _, err := x.Run(in); !errors.Is(err, program.ErrIndex) || !errors.As(err, &e) || e.Index != int(taken) {
			t.Errorf("index %d: %v", bad, err)
		}
		if err := x.Trace(in, func(int, *tensor.Tensor) error { return nil }); !errors.Is(err, program.ErrIndex) {
			t.Errorf("index %d: Trace says %v", bad, err)
		}
	}
}

// TestHeirHasElementsOfTheSameSize: 16 of 64 booleans become 16 floats in as many bytes. Were the floats put over the
// booleans, the first tile would destroy those of the second.
func TestHeirHasElementsOfTheSameSize(t *testing.T) {
	tile := tileElements
	defer func() { tileElements = tile }()
	tileElements = 8
	b := program.NewBuilder()
	not, _ := b.Apply(program.Not, b.Input("x", tensor.Make(tensor.Bool, 64)))
	few, _ := b.Slice(not, []int{0}, []int{16}, []int{1})
	floats, _ := b.Convert(few, tensor.Float32)
	sum, err := b.Reduce(program.ReduceSum, floats, 0)
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
