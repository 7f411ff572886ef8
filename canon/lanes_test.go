package canon_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

// However the leaves of a list differ in length, each has its own digest.
func TestLeaves(t *testing.T) {
	var data [][]byte
	for i := range 100 {
		size := 4096
		if i%37 == 36 {
			size = i
		}
		data = append(data, make([]byte, size))
		for j := range data[i] {
			data[i][j] = byte(i * j)
		}
	}
	for i, d := range canon.Leaves(data) {
		if d != canon.Leaf(data[i]) {
			t.Errorf("leaf %d of %d bytes: %v, wanted %v", i, len(data[i]), d, canon.Leaf(data[i]))
		}
	}
	if len(canon.Leaves(nil)) != 0 {
		t.Error("digests of no leaves")
	}
}

// The root of leaves that are given one after the other is that of their tree, and takes no memory for them.
func TestRootOfLeaves(t *testing.T) {
	for _, n := range []int{0, 1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 257, 600} {
		var data [][]byte
		for i := range n {
			leaf := make([]byte, 64)
			if i == n-1 {
				leaf = leaf[:7]
			}
			leaf[0], leaf[1] = byte(i), byte(i>>8)
			data = append(data, leaf)
		}
		if got, want := canon.RootOfLeaves(slices.Values(data)), canon.NewTree(canon.Leaves(data)).Root(); got != want {
			t.Errorf("%d leaves: %s, want %s", n, got.Short(), want.Short())
		}
	}
	leaf := make([]byte, 4096)
	many := func(yield func([]byte) bool) {
		for range 1 << 12 {
			if !yield(leaf) {
				return
			}
		}
	}
	if n := testing.AllocsPerRun(1, func() { canon.RootOfLeaves(many) }); n > 30 {
		t.Errorf("%v allocations for 4096 leaves", n)
	}
	one := slices.Values([][]byte{leaf})
	before, after := new(runtime.MemStats), new(runtime.MemStats)
	runtime.ReadMemStats(before)
	const calls = 1000
	for range calls {
		canon.RootOfLeaves(one)
	}
	if runtime.ReadMemStats(after); after.TotalAlloc-before.TotalAlloc > calls*1024 {
		t.Errorf("%d bytes for a tree of one leaf", (after.TotalAlloc-before.TotalAlloc)/calls)
	}
}
