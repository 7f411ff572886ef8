package codec

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// Errors on normal numbers, against what the formats promise.
func TestErrorsOnNormalData(t *testing.T) {
	x := normal(1, 100_000)
	for _, c := range []struct {
		name      string
		low, high float64
	}{
		// Uniform error of a code, (6/256)^2/12 = 4.6e-5, and of the tails beyond 3 sigma around their means, 1.9e-4.
		{Int8, 2e-4, 2.7e-4},
		// Rounding error up to 2^-11 of a number, nearly uniform in its octave: about 2^-22/3.
		{Float16, 3e-8, 9e-8}, {BFloat16, 2e-6, 6e-6},
		// Each octave splits at its middle: the reference page measures 3.8e-2.
		{E3M0, 3.4e-2, 4.2e-2},
		// 1 - 2/pi of the energy is not in the signs.
		{Sign, 0.36, 0.367},
	} {
		p, err := Encode(c.name, x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Decode(c.name, p, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if e := relative(x, y); e < c.low || e > c.high {
			t.Errorf("%s: relative squared error %v, want %v to %v", c.name, e, c.low, c.high)
		}
	}
}

// A number beyond the largest half becomes that one, not infinity.
func TestHalvesSaturate(t *testing.T) {
	for x, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7bff, 1e38: 0x7bff, -1e38: 0xfbff, 1e-10: 0,
		1: 0x3c00} {
		if got := toHalf(x); got != want {
			t.Errorf("%v is %#x, want %#x", x, got, want)
		}
	}
	for x, want := range map[float32]uint16{math.MaxFloat32: 0x7f7f, -math.MaxFloat32: 0xff7f, 0x1p-135: 0, -1: 0xbf80} {
		if got := toBrain(x); got != want {
			t.Errorf("%v is %#x, want %#x", x, got, want)
		}
	}
}

// Each magnitude goes to the nearest of 0 and s * 2^-k, ties up.
func TestE3M0TakesTheNearest(t *testing.T) {
	below := func(x float32) float32 { return math.Nextafter32(x, 0) }
	for _, c := range []struct{ x, want float32 }{
		{8, 8}, {6, 8}, {below(6), 4}, {4, 4}, {3, 4}, {below(3), 2}, {0.125, 0.125}, {0.1, 0.125}, {0.0625, 0.125},
		{below(0.0625), 0}, {0, 0}, {-3, -4}, {-0.01, 0},
	} {
		x := vector(8, c.x, 0)
		p, err := Encode(E3M0, x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Decode(E3M0, p, x.Shape)
		if err != nil || y.F32()[1] != c.want || y.F32()[0] != 8 {
			t.Errorf("%v became %v, want %v (%v)", c.x, y.F32(), c.want, err)
		}
	}
}

func TestScalesAndPaddingAreChecked(t *testing.T) {
	scale := func(b0, b1, b2, b3 byte) func([]byte) {
		return func(p []byte) { copy(p, []byte{b0, b1, b2, b3}) }
	}
	three, nine := tensor.Make(tensor.Float32, 3), tensor.Make(tensor.Float32, 9)
	for _, c := range []struct {
		what, name string
		s          tensor.Shape
		change     func(p []byte)
	}{
		{"infinite scale", E3M0, three, func(p []byte) { p[0], p[1] = 0x80, 0x7f }},
		{"negative scale", E3M0, three, func(p []byte) { p[0], p[1] = 0x00, 0xbf }},
		{"negative zero", E3M0, three, func(p []byte) { p[2] = 0x08 }},
		{"padding", E3M0, three, func(p []byte) { p[3] |= 0x10 }},
		{"NaN scale", Sign, nine, scale(0, 0, 0xc0, 0x7f)},
		{"negative scale", Sign, nine, scale(0, 0, 0x80, 0xbf)},
		{"padding", Sign, nine, func(p []byte) { p[5] |= 2 }},
		{"infinity", Float16, three, func(p []byte) { p[0], p[1] = 0, 0x7c }},
		{"NaN", BFloat16, three, func(p []byte) { p[0], p[1] = 0xc0, 0x7f }},
	} {
		p, err := Encode(c.name, normal(1, c.s.Dims...))
		if err != nil {
			t.Fatal(err)
		}
		c.change(p)
		if _, err := Decode(c.name, p, c.s); !errors.Is(err, ErrPayload) {
			t.Errorf("%s with %s: %v", c.name, c.what, err)
		}
	}
}

// One element of 1e6 sets the width of the codes of Int8 and takes all other elements of the tensor with it; with a
// scale for every 256, the damage ends there, and error feedback sends the rest later.
func TestSpike(t *testing.T) {
	x := normal(3, 10, 256)
	x.F32()[0] = 1e6
	rest := func(y *tensor.Tensor) float64 {
		return relative(tensor.FromF32(x.F32()[256:], 9, 256), tensor.FromF32(y.F32()[256:], 9, 256))
	}
	for _, c := range []struct {
		name      string
		low, high float64
	}{{Int8, 0.99, 1.01}, {E3M0, 0.03, 0.05}} {
		p, err := Encode(c.name, x)
		if err != nil {
			t.Fatal(err)
		}
		y, err := Decode(c.name, p, x.Shape)
		if err != nil {
			t.Fatal(err)
		}
		if e := rest(y); e < c.low || e > c.high {
			t.Errorf("%s: error beside the spike %v, want %v to %v", c.name, e, c.low, c.high)
		}
	}
	f := Feedback{Codec: named[Int8], Decay: 1}
	_, residual, err := f.Encode(nil, x)
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := f.Encode(residual, tensor.New(x.Shape))
	if err != nil {
		t.Fatal(err)
	}
	y, err := Decode(Int8, p, x.Shape)
	if err != nil || rest(y) > 0.01 {
		t.Errorf("a round later the error is %v, %v", rest(y), err)
	}
}
