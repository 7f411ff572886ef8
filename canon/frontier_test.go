package canon

import (
	"encoding/binary"
	"slices"
	"testing"
)

func numbered(n int) []Digest {
	out := make([]Digest, n)
	for i := range out {
		out[i] = Leaf(binary.LittleEndian.AppendUint32(nil, uint32(i)))
	}
	return out
}

func TestFrontierGrowsToTheTree(t *testing.T) {
	if new(Frontier).Root() != NewTree(nil).Root() {
		t.Error("the root of no leaves")
	}
	leaves := numbered(4200)
	whole := NewTree(leaves)
	f := new(Frontier)
	for i, l := range leaves {
		if n := i; n < 600 || n%97 == 0 || n > 4090 && n < 4100 {
			if !slices.Equal(f.Nodes(), whole.Frontier(n)) {
				t.Fatalf("%d leaves: the nodes are not those of the tree", n)
			}
			again, err := NewFrontier(n, f.Nodes())
			if err != nil || again.leaves != n || again.Root() != NewTree(leaves[:n]).Root() {
				t.Fatalf("%d leaves: %v", n, err)
			}
			again.Push(l)
			if again.Root() != NewTree(leaves[:n+1]).Root() {
				t.Fatalf("%d leaves and one more", n)
			}
		}
		f.Push(l)
	}
	if f.Root() != whole.Root() || f.leaves != len(leaves) {
		t.Error("the root of all leaves")
	}
}

func TestFrontierOfAWrongLength(t *testing.T) {
	for _, c := range []struct{ leaves, nodes int }{{-1, 0}, {0, 1}, {1, 0}, {15, 14}, {16, 16}, {16, 0}, {17, 1},
		{17, 3}, {4096, 2}, {1 << 40, 0}} {
		if _, err := NewFrontier(c.leaves, make([]Digest, c.nodes)); err == nil {
			t.Errorf("%d nodes were taken for %d leaves", c.nodes, c.leaves)
		}
	}
}

func TestCoverSize(t *testing.T) {
	whole := NewTree(numbered(1000))
	for _, leaves := range [][]int{nil, {0}, {999}, {0, 999}, {15, 16}, {1, 17, 300, 301, 302, 992}} {
		cover, err := whole.Cover(leaves)
		n, err2 := CoverSize(1000, leaves)
		if err != nil || err2 != nil || n != len(cover) {
			t.Errorf("%v: %d, the cover has %d: %v, %v", leaves, n, len(cover), err, err2)
		}
	}
	for _, bad := range [][]int{{1000}, {-1}, {2, 1}, {3, 3}} {
		if _, err := CoverSize(1000, bad); err == nil {
			t.Errorf("%v", bad)
		}
	}
}
