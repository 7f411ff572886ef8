package given

import (
	"slices"
	"testing"
)

func TestDrawings(t *testing.T) {
	for d, want := range map[Drawing]Drawing{
		NewDrawing(0, 500_000):         {1, all, 0},
		NewDrawing(500_000, 1_000_000): {2, all, 1},
		NewDrawing(2_000_000, 250_000): {0.5, 0.25, 1},
	} {
		if d != want {
			t.Errorf("%+v, wanted %+v", d, want)
		}
	}
	if n := Words(31); n != 32 {
		t.Errorf("%d words", n)
	}
	a := Answer{Prompt: []int32{1, 2}, Answer: []int32{3, 4, 5}, From: 1, Stopped: true, First: 7}
	in := a.Inputs(64)
	if !slices.Equal(in[Text].I32()[:6], []int32{1, 2, 3, 4, 5, 0}) ||
		!slices.Equal(in[Place].I32(), []int32{2, 1, 2, 1}) || !slices.Equal(in[Key].I64(), []int64{0, Stream, 8}) {
		t.Errorf("%v %v %v", in[Text].I32(), in[Place].I32(), in[Key].I64())
	}
}
