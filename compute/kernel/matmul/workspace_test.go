package matmul

import (
	"testing"

	"github.com/starling-network/starling/compute/mapped"
)

// Memory that a buffer has grown out of leaves the process, smaller products use a larger block, and Release frees all.
func TestWorkspace(t *testing.T) {
	defer Release()
	w := takeWorkspace()
	const n = mapped.Least // elements, four times as many bytes
	w.b.room(n)
	small := w.b.block
	if b := w.b.room(n - 1); len(b) != n-1 || w.b.block != small {
		t.Errorf("%d elements lie in a block of their own", len(b))
	}
	if b := w.b.room(2 * n); len(b) != 2*n || w.b.block == small || small.Bytes != nil {
		t.Errorf("%d elements; the block before has %d bytes", len(b), len(small.Bytes))
	}
	large := w.b.block
	w.leave()
	if Release(); large.Bytes != nil || len(workspaces.free) > 0 {
		t.Errorf("%d bytes and %d workspaces are left", len(large.Bytes), len(workspaces.free))
	}
}
