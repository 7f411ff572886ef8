package cpu

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// TestSharedStateGivesTheSameBits runs random programs in place wherever Shares says that it can be done, each pair of
// an input and an output on its own.
func TestSharedStateGivesTheSameBits(t *testing.T) {
	tile, least := tileElements, minParallel
	defer func() { tileElements, minParallel = tile, least }()
	shared := 0
	for seed := range 2 * int(seeds()) {
		tileElements, minParallel = 1+seed%40, 1
		p, in := programtest.Random(t, uint64(9000+seed), 5+seed%60)
		x, err := Compile(p, 1+seed%3)
		if err != nil {
			t.Fatal(err)
		}
		want, err := x.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range p.Inputs() {
			for _, o := range p.Outputs {
				given, out := maps.Clone(in), map[string]*tensor.Tensor{}
				for _, o := range p.Outputs {
					out[o.Name] = tensor.New(p.Ops[o.Value].Out)
				}
				given[i.Name] = in[i.Name].Clone()
				if !given[i.Name].Shape.Equal(out[o.Name].Shape) {
					continue
				}
				out[o.Name] = given[i.Name]
				if !x.Shares(i.Name, o.Name) {
					if err := x.RunInto(given, out); !errors.Is(err, program.ErrInput) {
						t.Fatalf("seed %d: input %s and output %s: %v", seed, i.Name, o.Name, err)
					}
					continue
				}
				shared++
				if err := x.RunInto(given, out); err != nil {
					t.Fatal(err)
				}
				for name, w := range want {
					programtest.SameBits(t, fmt.Sprintf("seed %d: %s where input %s is output %s", seed, name, i.Name, o.Name),
						out[name], w)
				}
			}
		}
	}
	if shared < 2*int(seeds())/3 {
		t.Errorf("only %d pairs share memory", shared)
	}
}

func TestOutputsDoNotShareAnInput(t *testing.T) {
	b := program.NewBuilder()
	x := b.Input("x", tensor.Make(tensor.Float32, 8))
	for _, k := range []program.Kind{program.Neg, program.Abs} {
		v, err := b.Apply(k, x)
		if err != nil {
			t.Fatal(err)
		}
		b.Output(k.String(), v)
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	one := tensor.New(tensor.Make(tensor.Float32, 8))
	if err := e.RunInto(map[string]*tensor.Tensor{"x": one},
		map[string]*tensor.Tensor{"Neg": one, "Abs": one}); !errors.Is(err, program.ErrInput) {
		t.Errorf("two outputs in one tensor: %v", err)
	}
}

// Garbage leaves the process before memory for runs is taken, if that is much.
func TestSwept(t *testing.T) {
	for bytes, want := range map[int]uint32{swept - tensor.Align: 0, swept: 1} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x := &Exec{plan: &lower.Plan{Arena: bytes}}
		x.allocate()
		x.Release()
		if runtime.ReadMemStats(&after); after.NumForcedGC-before.NumForcedGC != want {
			t.Errorf("%d collections before %d bytes were taken", after.NumForcedGC-before.NumForcedGC, bytes)
		}
	}
}
