package forward_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/forward"
	"github.com/starling-network/starling/compute/tensor"
)

// chain multiplies a table by the weights of two layers in turn, and by the table; skip adds the first product last.
func chain(t *testing.T, skip bool) *program.Program {
	t.Helper()
	b := program.NewBuilder()
	shape := tensor.Make(tensor.Float32, 2, 2)
	apply := func(k program.Kind, in ...program.Value) program.Value {
		v, err := b.Apply(k, in...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	x, table := b.Input("x", shape), b.Input("table", shape)
	one, two := b.Input("one", shape), b.Input("two", shape)
	first := apply(program.Add, apply(program.Mul, x, table), one)
	second := apply(program.Add, apply(program.Mul, apply(program.Neg, first), first), two)
	if skip {
		second = apply(program.Add, second, first)
	}
	b.Output("y", apply(program.Mul, second, table))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func of(name string) int {
	return map[string]int{"x": forward.Anywhere, "table": forward.Ends, "one": 1, "two": 2}[name]
}

// A part has its own weights, and one value of the part before it: what follows from that is computed again.
func TestCut(t *testing.T) {
	list, err := forward.Cut(chain(t, false), 4, of)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range [][]string{{"x", "table"}, {"one", forward.Hidden}, {"two", forward.Hidden},
		{"table", forward.Hidden}} {
		have := list[part].InputShapes()
		for _, name := range want {
			if _, ok := have[name]; !ok || len(have) != len(want) {
				t.Errorf("part %d reads %v, wanted %v", part, have, want)
			}
		}
	}
	if n := len(list[3].Outputs); n != 1 || list[3].Outputs[0].Name != "y" {
		t.Errorf("the last part makes %v", list[3].Outputs)
	}
}

func TestCutRefuses(t *testing.T) {
	if _, err := forward.Cut(chain(t, true), 5, func(name string) int {
		if name == "two" {
			return 3
		}
		return of(name)
	}); !errors.Is(err, forward.ErrCut) {
		t.Errorf("a part that reads nothing: %v", err)
	}
	if _, err := forward.Cut(chain(t, false), 2, of); !errors.Is(err, forward.ErrCut) {
		t.Errorf("an input of a part that there is not: %v", err)
	}
}
