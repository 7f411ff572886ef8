package admit

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/grade/gradetest"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// tiny are limits under which a fuzzer may run what it finds.
var tiny = program.Limits{MaxOps: 100, MaxBytes: 1 << 16, MaxMemory: 1 << 20, MaxFlops: 1 << 20}

func TestLimits(t *testing.T) {
	p, _ := programtest.Layer(t, 2, 16, 2, 8)
	if err := Verify(p, program.DefaultLimits); err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l *program.Limits){
		"operators": func(l *program.Limits) { l.MaxOps = len(p.Ops) - 1 },
		"bytes":     func(l *program.Limits) { l.MaxBytes = int64(len(p.Encode())) - 1 },
		"memory":    func(l *program.Limits) { l.MaxMemory = x.PeakBytes() - 1 },
		"flops":     func(l *program.Limits) { l.MaxFlops = p.Flops() - 1 },
	} {
		l := program.DefaultLimits
		change(&l)
		if _, err := Decode(p.Encode(), l); !errors.Is(err, program.ErrLimit) {
			t.Errorf("%s: %v, want ErrLimit", name, err)
		}
	}
}

// runHarmlessly runs a program that passes verification on zeros, and demands that nothing but an index fails.
func runHarmlessly(t *testing.T, p *program.Program) {
	in := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		in[i.Name] = tensor.New(i.Shape)
	}
	x, err := cpu.Compile(p, 2)
	if err != nil {
		t.Fatalf("verified, but Compile says %v", err)
	}
	if _, err := x.Run(in); err != nil && !errors.Is(err, program.ErrIndex) {
		t.Fatalf("verified, but Run says %v", err)
	}
	if err := x.Trace(in, func(int, *tensor.Tensor) error { return nil }); err != nil && !errors.Is(err,
		program.ErrIndex) {
		t.Fatalf("verified, but Trace says %v", err)
	}
	if err := Verify(p.Simplify(), program.Unlimited); err != nil {
		t.Fatalf("verified, but once simplified %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(20) {
		p, _ := programtest.Random(&testing.T{}, seed, 8)
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
	list, seeds := programtest.Kinds(), uint64(4000)
	if testing.Short() {
		seeds = 1000
	}
	passed := 0
	for seed := range seeds {
		p, _ := programtest.Random(t, seed%100, 12)
		r := rand.New(rand.NewPCG(seed, 2))
		for range 1 + r.IntN(2) {
			op := &p.Ops[r.IntN(len(p.Ops))]
			odd := []int64{-1, 0, 1, 2, 3, 7, 1000, math.MaxInt32, math.MaxInt64, math.MinInt64, 1 << 32}[r.IntN(11)]
			switch r.IntN(7) {
			case 0:
				op.Kind = list[r.IntN(len(list))]
			case 1:
				op.Out.DType = programtest.Types[r.IntN(len(programtest.Types))]
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
		if Verify(p, tiny) == nil {
			passed++
			runHarmlessly(t, p)
		}
	}
	if passed < 100 {
		t.Errorf("only %d mutants passed verification: the test has lost its teeth", passed)
	}
}

// The rules of rewards cost more to check than their bytes: a program has few.
func TestFewOperatorsRewardAnswers(t *testing.T) {
	for n, wanted := range map[int]error{maxGraded: nil, maxGraded + 1: program.ErrLimit} {
		b := program.NewBuilder()
		rows := b.Input("rows", tensor.Make(tensor.Int32, 1, 2))
		for i := range n {
			v, err := b.Append(program.Operator{Kind: program.Grade, In: []int32{int32(rows), int32(rows)},
				Ints: []int64{gradetest.Cost(t, 2)}, Data: gradetest.Rule()})
			if err != nil {
				t.Fatal(err)
			}
			b.Output(string(rune('a'+i)), v)
		}
		p, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		if err := Verify(p, program.DefaultLimits); !errors.Is(err, wanted) {
			t.Errorf("%d operators: %v", n, err)
		}
	}
}
