package schedule

import (
	"math/rand/v2"
	"testing"
)

// crowd draws a number of units and the speeds of workers.
func crowd(r *rand.Rand) (units uint32, blocks []uint32) {
	blocks = make([]uint32, 1+r.IntN(12))
	for i := range blocks {
		blocks[i] = uint32(200 + r.IntN(1<<(1+r.IntN(16))))
	}
	return uint32(1 + r.IntN(64)), blocks
}

// The shares of a round are the parts of the workers, rounded down or up, and sum up to all units; over the rounds no
// worker has had, or lacks, as much as a unit and a quarter more than its parts.
func TestSharesAreFair(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 65))
	for range 300 {
		units, blocks := crowd(r)
		var speed float64
		for _, b := range blocks {
			speed += 1 / float64(b)
		}
		owed, had := make([]int32, len(blocks)), make([]float64, len(blocks))
		const rounds = 200
		for round := range rounds {
			due := ShareBySpeed(units, blocks, owed)
			owed = due.Owed
			var sum uint32
			for i, n := range due.Shares {
				part := float64(units) / float64(blocks[i]) / speed
				if d := float64(n) - part; d <= -1.000001 || d >= 1.000001 {
					t.Fatalf("%d units over %v: worker %d gets %d of %g", units, blocks, i, n, part)
				}
				sum += n
				had[i] += float64(n)
				if off := had[i] - float64(round+1)*part; off < -1.25 || off > 1.25 {
					t.Fatalf("%d units over %v: after %d rounds worker %d has %g units more than its part",
						units, blocks, round+1, i, off)
				}
			}
			if sum != units {
				t.Fatalf("%d units over %v: %v", units, blocks, due.Shares)
			}
		}
	}
}

// A machine earns as much as its halves: over 100 rounds its units differ from theirs by two hundredths, and by 3.
func TestHalvesGetWhatTheWholeGets(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 65))
	for range 200 {
		units, blocks := crowd(r)
		for i := range blocks {
			blocks[i] *= 2
		}
		halves := append([]uint32{blocks[0]}, blocks...)
		blocks[0] /= 2
		count := func(blocks []uint32, of int) (sum uint32) {
			owed := make([]int32, len(blocks))
			for range 100 {
				due := ShareBySpeed(units, blocks, owed)
				owed = due.Owed
				for _, n := range due.Shares[:of] {
					sum += n
				}
			}
			return sum
		}
		whole, parts := float64(count(blocks, 1)), float64(count(halves, 2))
		if off := parts - whole; off < -3-whole/50 || off > 3+whole/50 {
			t.Errorf("%d units over %v: the first gets %g, and its halves %g", units, blocks, whole, parts)
		}
	}
}

// Where each round is rounded by itself, a worker that is due 1.33 of 12 units gets 1 in each.
func TestRoundingIsOwed(t *testing.T) {
	blocks, owed := []uint32{512, 256, 256, 128}, make([]int32, 4)
	var sums [4]uint32
	for range 12 {
		due := ShareBySpeed(12, blocks, owed)
		owed = due.Owed
		for i, n := range due.Shares {
			sums[i] += n
		}
	}
	for i, want := range []uint32{16, 32, 32, 64} {
		if n := sums[i]; n+1 < want || n > want+1 {
			t.Errorf("worker %d gets %d units in twelve rounds, want %d", i, n, want)
		}
	}
	if got := SplitBySpeed(12, blocks); got[0] != 1 {
		t.Errorf("rounded by itself: %v", got)
	}
}

// Parts that are rounded up in the same round make the round longer once: the two slow workers are.
func TestSlowWorkersShareLongRounds(t *testing.T) {
	blocks, owed, long := []uint32{1000, 1000, 100, 100, 100}, make([]int32, 5), 0
	const rounds = 160
	for range rounds {
		due := ShareBySpeed(8, blocks, owed)
		owed = due.Owed
		if due.Shares[0] > 0 || due.Shares[1] > 0 {
			long++
		}
	}
	if each := rounds * 8 / 32; long > each+2 { // each is due a quarter of a unit
		t.Errorf("%d of %d rounds wait for a slow worker, each of which has %d units", long, rounds, each)
	}
}

func FuzzShareBySpeed(f *testing.F) {
	f.Add(uint32(12), []byte{2, 1, 1, 4}, []byte{0, 200})
	f.Fuzz(func(t *testing.T, units uint32, speeds, before []byte) {
		if len(speeds) == 0 || len(speeds) > 64 {
			return
		}
		units %= 1 << 10
		blocks, owed := make([]uint32, len(speeds)), make([]int32, len(speeds))
		for i, s := range speeds {
			blocks[i] = 1 << (s % 29)
			if i < len(before) {
				owed[i] = (int32(before[i]) - 128) << 15
			}
		}
		due := ShareBySpeed(units, blocks, owed)
		var sum uint32
		for i, n := range due.Shares {
			sum += n
			if whole := uint32(due.Exact[i] / OneUnit); n < whole || n > whole+1 {
				t.Errorf("worker %d gets %d of %d/%d units", i, n, due.Exact[i], OneUnit)
			}
			if most := int32(mostOwed * OneUnit); due.Owed[i] > most || due.Owed[i] < -most {
				t.Errorf("worker %d is owed %d", i, due.Owed[i])
			}
		}
		if sum != units {
			t.Errorf("%d units are dealt as %v", units, due.Shares)
		}
	})
}
