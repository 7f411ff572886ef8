package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Units go to workers by their speed, and those of a replica to different ones.
func TestStages(t *testing.T) {
	count := func(owners []int, workers int) []int {
		had := make([]int, workers)
		for _, w := range owners {
			had[w]++
		}
		return had
	}
	for _, c := range []struct {
		flops    []uint64
		replicas int
		blocks   []uint32
		want     []int
	}{
		{[]uint64{5, 5, 5}, 6, []uint32{2, 2, 2, 3, 3, 3, 6, 6, 6}, []int{3, 3, 3, 2, 2, 2, 1, 1, 1}},
		{[]uint64{5, 5, 5}, 3, []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{[]uint64{1 << 62, 1 << 61}, 2, []uint32{4, 4, 8, 8}, []int{1, 1, 1, 1}}, // the fast have the expensive stage
		{[]uint64{7, 7}, 4, []uint32{1, 1 << 31, 1}, []int{4, 0, 4}},
		{[]uint64{7, 7, 7}, 1, []uint32{1, 5}, []int{2, 1}},
		{[]uint64{7, 7, 7}, 1, []uint32{9}, []int{3}},
	} {
		if got := count(Stages(c.flops, c.replicas, c.blocks), len(c.blocks)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Units that are dealt in turn do not end earlier, and a replica has as many workers as it can have.
func TestStagesAreBalanced(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		flops, blocks, replicas := make([]uint64, 2+r.IntN(5)), make([]uint32, 1+r.IntN(12)), 1+r.IntN(12)
		for i := range flops {
			flops[i] = 1 + r.Uint64N(1<<40)
		}
		for i := range blocks {
			blocks[i] = 1 + r.Uint32N(1000)
		}
		got := Stages(flops, replicas, blocks)
		for k := 0; k < len(got); k += len(flops) {
			of := slices.Compact(slices.Sorted(slices.Values(got[k : k+len(flops)])))
			if len(of) < min(len(flops), len(blocks)) {
				t.Fatalf("replica %d has workers %v of %d", k/len(flops), of, len(blocks))
			}
		}
		turns := make([]int, len(got))
		for i := range turns {
			turns[i] = i % len(blocks)
		}
		if a, b := span(flops, blocks, got), span(flops, blocks, turns); a > b*1.001 && len(blocks) >= len(flops) {
			t.Fatalf("%v and %v: %v, and in turn %v", flops, blocks, a, b)
		}
	}
}

// span is when the last worker ends.
func span(flops []uint64, blocks []uint32, owners []int) (last float64) {
	load := make([]float64, len(blocks))
	for unit, w := range owners {
		load[w] += float64(flops[unit%len(flops)]) * float64(blocks[w])
	}
	return slices.Max(load)
}

// The largest deal that terms allow takes a fraction of a block.
func BenchmarkStages(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	flops, blocks := make([]uint64, 64), make([]uint32, 300)
	for i := range flops {
		flops[i] = 1 + r.Uint64N(1<<40)
	}
	for i := range blocks {
		blocks[i] = 1 + r.Uint32N(1000)
	}
	for b.Loop() {
		Stages(flops, 16, blocks)
	}
}
