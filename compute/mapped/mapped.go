// Package mapped is memory that the collector of garbage neither sees nor waits for: blocks of zeros that come from the
// system, and go back to it in the moment in which they are freed.
//
// The owner of a block frees it; nothing that points into it may be used after that. Memory whose end is not known
// belongs to package tensor.
package mapped

import (
	"runtime"
	"unsafe"

	"github.com/starling-network/starling/compute/tensor"
)

// Least is the size from which on a block is mapped. A smaller one is ordinary memory.
const Least = 1 << 20

// Block is memory that begins at a multiple of tensor.Align.
type Block struct {
	Bytes   []byte
	cleanup runtime.Cleanup
	mapped  bool
}

// New returns a block of n zeros. One that is never freed goes back to the system once the block cannot be reached;
// slices of its bytes do not keep it.
func New(n int) *Block {
	if n >= Least {
		if raw := take(n); raw != nil {
			b := &Block{Bytes: raw[:n:n], mapped: true}
			b.cleanup = runtime.AddCleanup(b, func(at *byte) { give(unsafe.Slice(at, n)) }, unsafe.SliceData(raw))
			return b
		}
	}
	return &Block{Bytes: tensor.Alloc(n)}
}

// Free gives the memory back. It may be called again.
func (b *Block) Free() {
	if b.mapped {
		b.mapped = false
		b.cleanup.Stop()
		give(b.Bytes)
	}
	b.Bytes = nil
}
