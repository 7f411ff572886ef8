package recompute

import (
	"runtime"
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// An untrusted program may have an operator with gigabytes of indices. Dividing it into parts must not allocate them.
func TestDividingALargeGatherTakesNoMemory(t *testing.T) {
	const n = 1 << 26 // 256 MiB of indices
	for _, c := range []struct {
		op program.Operator
		in []tensor.Shape
	}{
		{program.Operator{Kind: program.TakeRows, Out: tensor.Make(tensor.Bool, n, 1)},
			[]tensor.Shape{tensor.Make(tensor.Bool, 1, 1), tensor.Make(tensor.Int32, n)}},
		{program.Operator{Kind: program.AddRows, Out: tensor.Make(tensor.Float32, 1, 1)},
			[]tensor.Shape{tensor.Make(tensor.Float32, 1, 1), tensor.Make(tensor.Int32, n), tensor.Make(tensor.Float32, n, 1)}},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, ok := Divide(&c.op, c.in, freely(func(need [][]int, state int) bool {
			leaves := 0
			for _, l := range need {
				leaves += len(l)
			}
			return leaves*tensor.LeafBytes+state <= 768<<10
		}))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; !ok || got > 256<<20 {
			t.Errorf("%s: divided: %t, %d MiB allocated", c.op.Kind, ok, got>>20)
		}
	}
}

func TestDividingStopsWhenNothingIsLeftToSpend(t *testing.T) {
	op := &program.Operator{Kind: program.Neg, Out: tensor.Make(tensor.Float32, 4096)}
	fits := func([][]int, int) bool { return true }
	told, looks := 0, 0
	_, ok := Divide(op, []tensor.Shape{op.Out},
		Fit{Part: fits, Spend: func(n int) bool { told += n; looks++; return true }})
	if !ok || told == 0 {
		t.Errorf("divided: %t, for %d units", ok, told)
	}
	all := looks
	if _, ok := Divide(op, []tensor.Shape{op.Out},
		Fit{Part: fits, Spend: func(int) bool { looks--; return looks > 0 }}); ok || looks < 0 {
		t.Errorf("divided with %d of %d looks: %t", all-1, all, ok)
	}
}

// A list of indices that follow on each other takes the time of its elements, though few runs are left of it.
func TestListingManyElementsIsCounted(t *testing.T) {
	const n = 1 << 17 // of which the inputs of one part fit in an opening
	f := func(dims ...int) tensor.Shape { return tensor.Make(tensor.Float32, dims...) }
	for _, c := range []struct {
		name string
		op   program.Operator
		in   []tensor.Shape
	}{
		{"sum of all", program.Operator{Kind: program.ReduceSum, Out: f(), Ints: []int64{0}}, []tensor.Shape{f(n)}},
		{"greatest of all", program.Operator{Kind: program.ReduceMax, Out: f(1), Ints: []int64{1}}, []tensor.Shape{f(1, n)}},
		{"product with one element", program.Operator{Kind: program.Dot, Out: f(1, 1), Ints: []int64{1, 0, 1, 0}},
			[]tensor.Shape{f(1, n/2), f(n/2, 1)}},
	} {
		told := 0
		_, ok := Divide(&c.op, c.in, Fit{
			Part: func(need [][]int, state int) bool {
				for _, l := range need {
					state += len(l) * tensor.LeafBytes
				}
				return state <= 768<<10
			},
			Spend: func(units int) bool { told += units; return true }})
		if !ok || told < n/8 {
			t.Errorf("%s: divided: %t, for %d units of %d elements", c.name, ok, told, n)
		}
	}
}
