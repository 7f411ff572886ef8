package catalog

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/catalog"
)

// A lineage counts layers, whatever the number of proofs about one, and only those with a proof that no other account
// made; and says that the number of contributions is a claim.
func TestLayersAreCountedOnce(t *testing.T) {
	about := func(parent uint64, layer string, setup uint32, bound bool) catalog.Proven {
		return catalog.Proven{Parent: parent, Layer: layer, Setup: setup, Bound: bound}
	}
	all := []catalog.Proven{about(1, "a", 5, true), about(1, "a", 3, true), about(1, "b", 4, true),
		about(1, "c", 1, false), about(2, "d", 2, true)}
	for parent, want := range map[uint64][2]uint32{1: {2, 3}, 2: {1, 2}, 3: {}} {
		if n, setup := layers(all, parent); n != int(want[0]) || setup != want[1] {
			t.Errorf("parent %d: %d layers, %d contributions, wanted %d", parent, n, setup, want)
		}
	}
	var b strings.Builder
	Node{Proven: 2, Setup: 3}.write(&b, 0)
	if !strings.Contains(b.String(), "2 layers, 3 contributions claimed") {
		t.Errorf("%q", b.String())
	}
}

// A title of a stranger adds no lines or columns to a lineage, and moves no cursor.
func TestTitlesAreOneCell(t *testing.T) {
	var b strings.Builder
	Node{Listing: 7, Title: "a\n  8 b\t50 %\x1b[2J", Part: "100.00", Licence: "MIT", Shares: "listing/7"}.write(&b, 0)
	if line := b.String(); strings.Count(line, "\n") != 1 || strings.Count(line, "\t") != 5 ||
		strings.Contains(line, "\x1b") {
		t.Errorf("%q", line)
	}
}
