package catalog

import "testing"

// Layers are counted once, whatever the number of proofs about one, and only those with a proof that no other account
// made.
func TestLayersAreCountedOnce(t *testing.T) {
	about := func(parent uint64, layer string, setup uint32, bound bool) Proven {
		return Proven{Parent: parent, Layer: layer, Setup: setup, Bound: bound}
	}
	all := []Proven{about(1, "a", 5, true), about(1, "a", 3, true), about(1, "b", 4, true),
		about(1, "c", 1, false), about(2, "d", 2, true)}
	for parent, want := range map[uint64][2]uint32{1: {2, 3}, 2: {1, 2}, 3: {}} {
		if n, setup := Layers(all, parent); n != int(want[0]) || setup != want[1] {
			t.Errorf("parent %d: %d layers, %d contributions, wanted %d", parent, n, setup, want)
		}
	}
}
