package blocks

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// TestQuantise: a weight is off by half the distance of codes at most, and its own codes stand for themselves.
func TestQuantise(t *testing.T) {
	for _, columns := range []int{1, 20, 64, 96, 256} {
		x := tensor.New(tensor.Make(tensor.Float32, 3, columns))
		philox.NormalTo(x.F32(), 1, uint64(columns))
		clear(x.F32()[:Size(columns)])
		for _, bits := range []int{8, 4} {
			codes, scales, err := Quantise(x, bits)
			if err != nil {
				t.Fatal(err)
			}
			y := Restore(codes, scales)
			for i, v := range x.F32() {
				half := 0.5001 * scales.F32()[i/Size(columns)]
				if codes.Shape.DType == tensor.Uint8 {
					half *= 0.3038 // the largest gap of the table
				}
				if d := v - y.F32()[i]; d > half || d < -half {
					t.Fatalf("%d columns in %d bits: element %d is %v, was %v", columns, bits, i, y.F32()[i], v)
				}
			}
			again, _, err := Quantise(y, bits)
			if err != nil || again.Root() != codes.Root() {
				t.Errorf("%d columns in %d bits: the codes of what codes stand for are others", columns, bits)
			}
		}
	}
	if Size(96) != 32 || Size(4096) != 64 || Size(7) != 1 {
		t.Error("sizes of blocks")
	}
	if _, _, err := Quantise(tensor.New(tensor.Make(tensor.Float32, 3)), 8); err == nil {
		t.Error("a vector has codes")
	}
	if place(float32(math.NaN())) != 7 || place(-2) != 0 || place(2) != 15 || place(0.0397901497781276) != 7 {
		t.Error("places in the table")
	}
}

// TestCompress names what is there, and takes it back.
func TestCompress(t *testing.T) {
	w, b := tensor.New(tensor.Make(tensor.Float32, 2, 4)), tensor.New(tensor.Make(tensor.Float32, 4))
	philox.NormalTo(w.F32(), 1, 1)
	names := []string{"w", "w" + Suffix, "b"}
	for _, bits := range []int{8, 4} {
		codes, scales := Shapes(2, 4, bits)
		list, err := Compress(names, []tensor.Shape{codes, scales, b.Shape}, map[string]*tensor.Tensor{"w": w, "b": b})
		if err != nil || len(list) != 3 || !list[0].Shape.Equal(codes) || !list[1].Shape.Equal(scales) || list[2] != b {
			t.Fatal(list, err)
		}
		got := Expand(map[string]*tensor.Tensor{"w": list[0], "w" + Suffix: list[1], "b": list[2]})
		if len(got) != 2 || got["w"].Root() != Restore(list[0], list[1]).Root() || got["b"] != b {
			t.Error(got)
		}
	}
	if _, err := Compress([]string{"x"}, []tensor.Shape{w.Shape}, nil); err == nil {
		t.Error("a weight that is not there")
	}
}
