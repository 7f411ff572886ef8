package outer

import (
	"slices"
	"testing"
)

// Units are cut so that machines of their paces are done together, as nearly as 20 segments let them.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		steps uint32
		paces []float64
		want  []uint32
		share float64
	}{
		{20, []float64{1, 0.77, 0.38, 0.17}, []uint32{20, 15, 7, 3}, 0.96},
		{100, []float64{1, 0.58 / 0.75, 0.58 / 1.51, 0.58 / 3.33}, []uint32{20, 15, 7, 3}, 0.964},
		{60, []float64{0.17, 1, 0.38, 0.77}, []uint32{2, 12, 4, 9}, 0.96},
		{20, []float64{1, 1, 1}, []uint32{4, 4, 4}, 1},
		{20, []float64{1, 0.5}, []uint32{4, 2}, 1},
		{17, []float64{1, 0.5}, []uint32{17, 8}, 0.98},
		{23, []float64{1, 0.5}, []uint32{1, 1}, 0.66},
		{20, []float64{1, 0.001}, []uint32{20, 1}, 0.02},
		{1, []float64{1}, []uint32{1}, 1},
		{20, nil, nil, 0},
	} {
		sizes, share := Sizes(c.steps, c.paces)
		if !slices.Equal(sizes, c.want) || share < c.share || share > 1+1e-9 {
			t.Errorf("%d steps for %v: %v, which lets them work %.4f of the time, want %v and %g", c.steps, c.paces, sizes,
				share, c.want, c.share)
		}
	}
}
