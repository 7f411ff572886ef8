package terms

import (
	"slices"
	"testing"
)

func TestRoundsThatMayBeOpen(t *testing.T) {
	for _, c := range [][3]uint32{{4, 0, 8}, {4, 2, 8}, {4, 8, 16}, {4, 32, 64}, {4, 128, 160}, {4, 256, MaxWindow},
		{64, 256, 256}, {MaxUnits, 0, 8}, {MaxUnits, 8, 16}, {MaxUnits, 16, 16}, {512, 32, 32}} {
		if got := OpenRounds(c[0], c[1]); got != c[2] || got*c[0] > MaxOpen {
			t.Errorf("%d units, a state through %d rounds: a window of %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// The checkpoint after a round is made of its own updates, or, where rounds overlap, of those of the round before and,
// at the end of a group, of its own.
func TestAppliedRounds(t *testing.T) {
	alone := Terms{Rounds: 4}
	overlapping := Terms{Rounds: 4, Carry: 2, Overlap: true}
	for _, c := range []struct {
		terms Terms
		want  [][]uint32
	}{
		{alone, [][]uint32{{0}, {1}, {2}, {3}}},
		{overlapping, [][]uint32{nil, {0, 1}, nil, {2, 3}}},
	} {
		for round, want := range c.want {
			if got := c.terms.Applied(uint32(round)); !slices.Equal(got, want) {
				t.Errorf("overlap %t, round %d: the updates of rounds %d, want %d", c.terms.Overlap, round, got, want)
			}
		}
	}
}

// The time and the operations of a unit follow its size.
func TestUnitsOfDifferentSizes(t *testing.T) {
	x := Terms{Units: 2, Segments: 4, Sizes: []uint32{4, 1}, UnitFlops: 1000}
	if x.FlopsOf(0) != 1000 || x.FlopsOf(1) != 250 || x.RoundFlops() != 1250 {
		t.Errorf("%d and %d operations, %d together", x.FlopsOf(0), x.FlopsOf(1), x.RoundFlops())
	}
	if x.Whole(1, 3) != 12 || x.Executed(0, 2, 3) != 6 || x.Share(1, 100) != 25+MinBlocks {
		t.Errorf("blocks: whole %d, executed %d, share %d", x.Whole(1, 3), x.Executed(0, 2, 3), x.Share(1, 100))
	}
}
