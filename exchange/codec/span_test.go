package codec

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// A tensor that is cut into pieces decodes piece by piece to the same elements as in whole, for every cut.
func TestPiecesDecodeAsTheWhole(t *testing.T) {
	for _, name := range names {
		for _, dims := range [][]int{{7}, {300, 200}, {PartElements}, {PartElements + 1}, {130, 1031},
			{3*PartElements + 4097}} {
			shape := tensor.Make(tensor.Float32, dims...)
			x := tensor.New(shape)
			philox.NormalTo(x.F32(), 1, uint64(shape.Elements()))
			payload, err := Encode(name, x)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := Decode(name, payload, shape)
			if err != nil {
				t.Fatal(err)
			}
			grain, err := Alignment(name, shape)
			if err != nil || grain < 1 {
				t.Fatalf("%s of %s: grain %d, %v", name, shape, grain, err)
			}
			tile, err := Tile(name, shape)
			if err != nil || grain%tile != 0 && grain != shape.Elements() {
				t.Fatalf("%s of %s: tile %d of grain %d, %v", name, shape, tile, grain, err)
			}
			sizes := []int{tile}
			for each := grain; each < shape.Elements()+grain; each += grain {
				sizes = append(sizes, each)
			}
			for _, each := range sizes {
				var joined []float32
				for lo := 0; lo < shape.Elements(); lo += each {
					joined = append(joined, restore(t, name, shape, lo, min(lo+each, shape.Elements()), payload)...)
				}
				if !slices.Equal(joined, whole.F32()) {
					t.Fatalf("%s of %s in pieces of %d elements is something else", name, shape, each)
				}
			}
		}
	}
}

func restore(t *testing.T, name string, s tensor.Shape, lo, hi int, payload []byte) []float32 {
	t.Helper()
	spans, err := Spans(name, s, lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	var piece bytes.Buffer
	for _, x := range spans {
		piece.Write(payload[x.Lo:x.Hi])
	}
	got, err := RestorePiece(name, s, lo, hi, piece.Bytes())
	if err != nil {
		t.Fatalf("%s of %s, elements %d to %d: %v", name, s, lo, hi, err)
	}
	if _, err := RestorePiece(name, s, lo, hi, piece.Bytes()[1:]); !errors.Is(err, ErrPayload) {
		t.Errorf("a byte less: %v", err)
	}
	return got.F32()
}

func TestNoSuchPiece(t *testing.T) {
	s := tensor.Make(tensor.Float32, 2*PartElements+5)
	n := s.Elements()
	for _, c := range [][2]int{{-1, n}, {0, n + 1}, {5, n}, {0, PartElements + 1}, {PartElements, PartElements}, {n, n}} {
		if _, err := Spans(Int8, s, c[0], c[1]); err == nil {
			t.Errorf("elements %d to %d", c[0], c[1])
		}
		if _, err := RestorePiece(Int8, s, c[0], c[1], nil); err == nil {
			t.Errorf("elements %d to %d", c[0], c[1])
		}
	}
	if _, err := Spans("none", s, 0, n); err == nil {
		t.Error("a codec that is not known")
	}
	if _, err := Alignment("none", s); err == nil {
		t.Error("a codec that is not known")
	}
	if _, err := Tile("none", s); err == nil {
		t.Error("a codec that is not known")
	}
	// Elements of a whole tensor that decode to something that is no number.
	nan := bytes.Repeat([]byte{0xff}, 4*PartElements)
	if _, err := RestorePiece(Float32, s, 0, PartElements, nan); !errors.Is(err, ErrPayload) {
		t.Errorf("numbers that are none: %v", err)
	}
}
