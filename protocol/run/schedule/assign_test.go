package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// AssignBySpeed deals every unit, and the same way each time. The round takes at most twice the lower bound, which is
// the larger of all work over all speeds and the largest unit on the fastest worker. Keeping units with the workers
// that had them costs at most an eighth.
func TestAssignment(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		workers, units := 1+r.IntN(8), 1+r.IntN(12)
		sizes, blocks, had, none := make([]uint32, units), make([]uint32, workers), make([]int, units),
			slices.Repeat([]int{-1}, units)
		for i := range sizes {
			sizes[i], had[i] = uint32(1+r.IntN(20)), r.IntN(workers+1)-1
		}
		for i := range blocks {
			blocks[i] = uint32(1 + r.IntN(1<<(1+r.IntN(20))))
		}
		span := func(holders []int) (longest float64) {
			load := make([]float64, workers)
			for unit, w := range holders {
				load[w] += float64(sizes[unit]) * float64(blocks[w])
				longest = max(longest, load[w])
			}
			return longest
		}
		plain := AssignBySpeed(sizes, blocks, none)
		if len(plain) != units || !slices.Equal(plain, AssignBySpeed(sizes, blocks, none)) {
			t.Fatalf("%v over %v: %v, and again %v", sizes, blocks, plain, AssignBySpeed(sizes, blocks, none))
		}
		var speed, work float64
		for _, b := range blocks {
			speed += 1 / float64(b)
		}
		for _, s := range sizes {
			work += float64(s)
		}
		least := max(work/speed, float64(slices.Max(sizes))*float64(slices.Min(blocks)))
		if span(plain) > 2*least+1e-6 {
			t.Fatalf("%v over %v: %v takes %g, no dealing less than %g", sizes, blocks, plain, span(plain), least)
		}
		kept := AssignBySpeed(sizes, blocks, had)
		if span(kept) > span(plain)*9/8+1e-6 {
			t.Fatalf("%v over %v, had by %v: %v takes %g, and %v takes %g", sizes, blocks, had, kept, span(kept), plain,
				span(plain))
		}
		if again := AssignBySpeed(sizes, blocks, kept); !slices.Equal(again, kept) && span(again) > span(kept)*9/8+1e-6 {
			t.Fatalf("%v over %v: %v is dealt as %v", sizes, blocks, kept, again)
		}
		if again := AssignBySpeed(sizes, blocks, plain); !slices.Equal(again, plain) {
			t.Fatalf("%v over %v: who has %v gets %v", sizes, blocks, plain, again)
		}
	}
}

// Dealings of units of different sizes to workers of different speeds.
func TestAssignmentOfSpeeds(t *testing.T) {
	for _, c := range []struct {
		sizes, blocks []uint32
		want          []int
	}{
		{[]uint32{20, 15, 7, 3}, []uint32{333, 58, 151, 75}, []int{1, 3, 2, 0}},
		{[]uint32{3, 20, 7, 15}, []uint32{58, 75, 151, 333}, []int{3, 0, 2, 1}},
		{[]uint32{20, 15, 7, 3}, []uint32{100, 100, 100, 100}, []int{0, 1, 2, 3}},
		{[]uint32{4, 4, 4, 4}, []uint32{10, 10}, []int{0, 1, 0, 1}},
		{[]uint32{4, 2, 2}, []uint32{10, 20}, []int{0, 1, 0}},
	} {
		if got := AssignBySpeed(c.sizes, c.blocks, slices.Repeat([]int{-1}, len(c.sizes))); !slices.Equal(got, c.want) {
			t.Errorf("%v over %v: %v, want %v", c.sizes, c.blocks, got, c.want)
		}
	}
}
