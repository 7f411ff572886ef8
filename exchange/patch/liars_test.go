package patch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/starling-network/starling/compute/tensor"
)

// content is that of the one piece of the difference of two tensors.
func content(t *testing.T, a, b *tensor.Tensor) (raw []byte) {
	t.Helper()
	w := &writer{flush: func(b []byte) error { raw = append(raw, b...); return nil }}
	if err := errors.Join(w.tensor(a.F32(), b.F32()), w.end()); err != nil {
		t.Fatal(err)
	}
	return raw
}

// applied applies one piece.
func applied(before, after Version, piece []byte) ([]*tensor.Tensor, error) {
	h := &Head{Format: format, From: before.Name, To: after.Name, Elements: uint64(before.Tensors[0].Shape.Elements()),
		Pieces: []Piece{{sha256.Sum256(piece), uint32(len(piece))}}}
	return h.Apply(before, func(int) ([]byte, error) { return piece, nil }, nil)
}

// A piece that is cut into frames of a few bytes takes no more memory than one of one frame.
func TestManyFrames(t *testing.T) {
	x := tensor.New(tensor.Make(tensor.Float32, 2*groupElements))
	y := x.Clone()
	for i := range y.F32() {
		y.F32()[i] = float32(i)
	}
	before, after := version(1, []*tensor.Tensor{x}), version(2, []*tensor.Tensor{y})
	raw := content(t, x, y)
	var piece []byte
	for n := 10; len(raw) > 0; raw = raw[n:] {
		n = min(n, len(raw))
		piece = append(piece, 0x28, 0xb5, 0x2f, 0xfd, 0x20, byte(n), byte(n<<3|1), 0, 0)
		piece = append(piece, raw[:n]...)
	}
	var m, o runtime.MemStats
	runtime.ReadMemStats(&m)
	_, err := applied(before, after, piece)
	runtime.ReadMemStats(&o)
	if n := (o.TotalAlloc - m.TotalAlloc) >> 20; n > 16 || err != nil {
		t.Errorf("%d MiB were allocated for a piece of %d bytes: %v", n, len(piece), err)
	}
}

// No patch leads to the root of a version and to other bits: every NaN of the result is the canonical one.
func TestNaN(t *testing.T) {
	x := tensor.New(tensor.Make(tensor.Float32, 1000))
	y := x.Clone()
	y.F32()[7] = math.Float32frombits(tensor.CanonicalNaN)
	before, after := version(1, []*tensor.Tensor{x}), version(2, []*tensor.Tensor{y})
	raw := content(t, x, y)
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	leads := 0
	for at := len(raw) - 4; at < len(raw); at++ {
		for d := range 256 {
			bad := bytes.Clone(raw)
			bad[at] = byte(d)
			got, err := applied(before, after, pack.EncodeAll(bad, nil))
			if err != nil || roots(got) != after.Name.Root {
				continue
			}
			if leads++; !bytes.Equal(got[0].Bytes(), y.Bytes()) {
				t.Fatalf("byte %d is %d: other bits of the same root", at, d)
			}
		}
	}
	if leads < 5 { // 4 bytes as they are, and other NaNs
		t.Errorf("%d pieces lead to the root", leads)
	}
}

// Weights without elements have no patch.
func TestNoElements(t *testing.T) {
	for _, list := range [][]*tensor.Tensor{{}, {tensor.New(tensor.Make(tensor.Float32, 0, 3))}} {
		_, err := Make(version(1, list), version(2, list), func([]byte) error { return nil })
		if !errors.Is(err, ErrWeights) {
			t.Errorf("%d tensors: %v", len(list), err)
		}
	}
}
