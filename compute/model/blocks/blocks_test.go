package blocks

import (
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// TestQuantise: a weight is off by half a code at most, and its own codes stand for themselves.
func TestQuantise(t *testing.T) {
	for _, columns := range []int{1, 20, 64, 96, 256} {
		x := tensor.New(tensor.Make(tensor.Float32, 3, columns))
		philox.NormalTo(x.F32(), 1, uint64(columns))
		clear(x.F32()[:Size(columns)])
		codes, scales, err := Quantise(x)
		if err != nil {
			t.Fatal(err)
		}
		y := Restore(codes, scales)
		for i, v := range x.F32() {
			half := scales.F32()[i/Size(columns)] * 0.5001
			if d := v - y.F32()[i]; d > half || d < -half {
				t.Fatalf("%d columns: element %d is %v, was %v", columns, i, y.F32()[i], v)
			}
		}
		again, _, err := Quantise(y)
		if err != nil || again.Root() != codes.Root() {
			t.Errorf("%d columns: the codes of what codes stand for are others", columns)
		}
	}
	if Size(96) != 32 || Size(4096) != 64 || Size(7) != 1 {
		t.Error("sizes of blocks")
	}
	if _, _, err := Quantise(tensor.New(tensor.Make(tensor.Float32, 3))); err == nil {
		t.Error("a vector has codes")
	}
}

// TestCompress names what is there, and takes it back.
func TestCompress(t *testing.T) {
	w, b := tensor.New(tensor.Make(tensor.Float32, 2, 4)), tensor.New(tensor.Make(tensor.Float32, 4))
	philox.NormalTo(w.F32(), 1, 1)
	names := []string{"w", "w" + Suffix, "b"}
	list, err := Compress(names, map[string]*tensor.Tensor{"w": w, "b": b})
	if err != nil || len(list) != 3 || list[0].Shape.DType != tensor.Int8 || list[2] != b {
		t.Fatal(list, err)
	}
	got := Expand(map[string]*tensor.Tensor{"w": list[0], "w" + Suffix: list[1], "b": list[2]})
	if len(got) != 2 || got["w"].Root() != Restore(list[0], list[1]).Root() || got["b"] != b {
		t.Error(got)
	}
	if _, err := Compress([]string{"x"}, nil); err == nil {
		t.Error("a weight that is not there")
	}
}
