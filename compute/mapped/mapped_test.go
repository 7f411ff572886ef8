package mapped

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/starling-network/starling/compute/tensor"
)

func TestBlocks(t *testing.T) {
	for _, n := range []int{0, 1, Least - 1, Least, 3*Least + 5} {
		b := New(n)
		if len(b.Bytes) != n || bytes.Count(b.Bytes, []byte{0}) != n {
			t.Fatalf("%d bytes asked for, %d got, or not zeros", n, len(b.Bytes))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes))); at%tensor.Align != 0 {
			t.Errorf("a block of %d begins at %#x", n, at)
		}
		for i := range b.Bytes {
			b.Bytes[i] = 1
		}
		b.Free()
		b.Free()
		if b.Bytes != nil {
			t.Error("a block has bytes after it was freed")
		}
	}
}
