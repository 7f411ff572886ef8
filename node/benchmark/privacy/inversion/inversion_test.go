package inversion

import (
	"math"
	"testing"

	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// The image of a bare gradient is found, with its digit. Package privacy has the other searches.
func TestImageIsFound(t *testing.T) {
	n, err := New(3)
	if err != nil {
		t.Fatal(err)
	}
	e := digits.Draw(5, 3, 9)
	g, err := n.flat(e)
	if err != nil {
		t.Fatal(err)
	}
	if d := Label(g); d != 9 {
		t.Errorf("the digit is %d", d)
	}
	found, away, err := n.Search(t.Context(), g, []int{9}, Search{Starts: 3, Steps: 60})
	if err != nil || PSNR(e, found[0]) < 25 {
		t.Errorf("PSNR %v, %v away, %v", PSNR(e, found[0]), away, err)
	}
}

func TestPSNR(t *testing.T) {
	var black, white, grey digits.Example
	for i := range white.Pixels {
		white.Pixels[i], grey.Pixels[i] = 255, 51
	}
	for _, c := range []struct {
		a, b digits.Example
		want float64
	}{{black, white, 0}, {black, grey, 20 * math.Log10(5)}, {grey, grey, 99}} {
		if got := PSNR(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v, wanted %v", got, c.want)
		}
	}
}

func TestSolved(t *testing.T) {
	x := solved([]float64{4, 2, 2, 3}, []float64{10, 8}, 0)
	if math.Abs(x[0]-1.75) > 1e-12 || math.Abs(x[1]-1.5) > 1e-12 {
		t.Error(x)
	}
}
