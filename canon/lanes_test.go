package canon_test

import (
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
