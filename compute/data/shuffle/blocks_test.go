package shuffle

import (
	"slices"
	"testing"
)

// Blocks have every number once, and each block the numbers that follow each other.
func TestBlocksAreABijection(t *testing.T) {
	for _, n := range []uint64{1, 2, 7, 64, 100, 1009} {
		for _, size := range []uint64{1, 2, 3, 10, 64, n} {
			if size > n {
				continue
			}
			seen := make([]bool, n)
			for i := range n {
				w := InBlocks(3, 2, n, size, i)
				if w >= n || seen[w] {
					t.Fatalf("%d in blocks of %d: %d goes to %d, out of range or taken", n, size, i, w)
				}
				seen[w] = true
				if first := InBlocks(3, 2, n, size, i-i%size); w/size != first/size {
					t.Fatalf("%d in blocks of %d: %d and %d are in one block", n, size, w, first)
				}
			}
		}
	}
}

// The orders of blocks, and those within, differ by epoch and seed, and look like no order.
func TestBlocksSpread(t *testing.T) {
	const n, size = 10_000, 100
	order := func(seed, epoch uint64) (list []uint64) {
		for i := range uint64(n) {
			list = append(list, InBlocks(seed, epoch, n, size, i))
		}
		return list
	}
	a := order(1, 0)
	for name, b := range map[string][]uint64{"epoch": order(1, 1), "seed": order(2, 0)} {
		same, within := 0, 0
		for i := range a {
			if a[i] == b[i] {
				same++
			}
			if a[i]%size == b[i]%size {
				within++
			}
		}
		if same > 10 || within < 50 || within > 150 { // of a random order: 1, and 100 with a deviation of 10
			t.Errorf("another %s: %d places are equal, %d within their blocks", name, same, within)
		}
	}
	var first []uint64
	for b := range uint64(n / size) {
		first = append(first, a[b*size]%size)
	}
	slices.Sort(first)
	if different := len(slices.Compact(first)); different < 50 { // of 100 draws: 63
		t.Errorf("blocks begin at %d different places", different)
	}
}

// The order is part of the result of every run: these figures may not change without a new version of the format.
func TestBlocksAreFixed(t *testing.T) {
	var got []uint64
	for i := range uint64(11) {
		got = append(got, InBlocks(5, 1, 11, 4, i))
	}
	if want := []uint64{3, 1, 0, 2, 7, 4, 5, 6, 9, 10, 8}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}
