package tensor

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"unsafe"

	"github.com/starling-network/starling/canon"
)

func TestShapeCheck(t *testing.T) {
	for _, s := range []Shape{Make(Float32), Make(Bool, 1), Make(Int64, 3, 4), Make(Uint8, 1, 1, 1, 1, 1, 1, 1, 1)} {
		if err := s.Check(96); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []Shape{{}, Make(99), Make(Float32, 0), Make(Float32, -1), Make(Float32, -1, -1), Make(Float32, 25),
		Make(Uint8, 97), Make(Uint8, 1<<62, 1<<62), Make(Int64, math.MaxInt), Make(Uint8, 1, 1, 1, 1, 1, 1, 1, 1, 1)} {
		if err := s.Check(96); !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v, want ErrShape", s, err)
		}
	}
	if err := Make(Int64, 1<<62, 1<<62).Check(math.MaxInt); !errors.Is(err, ErrShape) {
		t.Errorf("an overflowing shape passes: %v", err)
	}
}

func TestMemoryIsAlignedLittleEndianAndOwned(t *testing.T) {
	for n := range 200 {
		m := Alloc(n)
		if len(m) != n || cap(m) != n || uintptr(unsafe.Pointer(unsafe.SliceData(m)))%Align != 0 {
			t.Fatalf("%d bytes: length %d, capacity %d, at %p", n, len(m), cap(m), m)
		}
	}
	data := []int32{1, -2}
	x := FromI32(data, 2)
	data[0] = 9
	if b := x.Bytes(); b[0] != 1 || b[4] != 0xfe || b[7] != 0xff || len(b) != 8 {
		t.Errorf("bytes %v", b)
	}
	c := x.Clone()
	c.I32()[0] = 5
	if x.I32()[0] != 1 {
		t.Error("a clone shares memory")
	}
	if y, err := FromBytes(x.Shape, x.Bytes()); err != nil || y.Root() != x.Root() {
		t.Errorf("from bytes: %v", err)
	}
	if _, err := FromBytes(x.Shape, x.Bytes()[1:]); !errors.Is(err, ErrShape) {
		t.Errorf("short bytes: %v", err)
	}
}

func TestRootBindsShapeAndElements(t *testing.T) {
	base := FromF32(make([]float32, 6), 2, 3)
	minus := base.Clone()
	minus.F32()[0] = float32(math.Copysign(0, -1))
	seen := map[canon.Digest]int{}
	for i, x := range []*Tensor{base, minus, FromF32(make([]float32, 6), 3, 2), FromF32(make([]float32, 6), 6),
		FromI32(make([]int32, 6), 2, 3), FromF32(make([]float32, 3000)[:2000], 2000), FromF32(make([]float32, 3000), 3000)} {
		if j, ok := seen[x.Root()]; ok {
			t.Errorf("tensors %d and %d have one root", i, j)
		}
		seen[x.Root()] = i
	}
}

func TestTreeTakesEveryNaNAsOne(t *testing.T) {
	x := FromF32(make([]float32, 3000), 3000)
	x.F32()[1500] = math.Float32frombits(0x7fc00000)
	y := x.Clone()
	y.F32()[1500] = math.Float32frombits(0xff812345)
	if x.Root() != y.Root() {
		t.Error("the root depends on the bits of a NaN")
	}
	if got := math.Float32bits(y.F32()[1500]); got != 0xff812345 {
		t.Errorf("hashing changed the tensor: %x", got)
	}
	n := (4*3000 + LeafBytes - 1) / LeafBytes
	tree := y.Tree()
	if tree.Len() != n {
		t.Fatalf("%d leaves, want %d", tree.Len(), n)
	}
	for i := range n {
		if node, err := tree.Node(0, i); err != nil || node != canon.Leaf(y.Leaf(i)) {
			t.Errorf("leaf %d is not the digest of its bytes: %v", i, err)
		}
	}
	y.Canonicalize()
	if math.Float32bits(y.F32()[1500]) != CanonicalNaN {
		t.Error("not canonical")
	}
}

// TestWholePages: memory of whole pages takes no page more.
func TestWholePages(t *testing.T) {
	before, after := new(runtime.MemStats), new(runtime.MemStats)
	runtime.ReadMemStats(before)
	const size, n = 1 << 20, 16
	for range n {
		if m := Alloc(size); uintptr(unsafe.Pointer(unsafe.SliceData(m)))%Align != 0 || cap(m) != size {
			t.Fatalf("%d bytes that are not aligned, or of another size", cap(m))
		}
	}
	if runtime.ReadMemStats(after); after.TotalAlloc-before.TotalAlloc > n*(size+4096) {
		t.Errorf("%d bytes for %d", (after.TotalAlloc-before.TotalAlloc)/n, size)
	}
}
