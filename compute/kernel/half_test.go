package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestHalves rounds every half, the middle between each and the next one, and the neighbours of that.
func TestHalves(t *testing.T) {
	for _, c := range []struct {
		name     string
		to       func(float32) uint16
		from     func(uint16) float32
		infinity uint16
		nan      uint16
		digits   int // bits of a fraction
		least    int // exponent of the smallest normal number
	}{
		{"Float16", ToFloat16, FromFloat16, 0x7c00, 0x7e00, 10, -14},
		{"BFloat16", ToBFloat16, FromBFloat16, 0x7f80, 0x7fc0, 7, -126},
	} {
		value := func(h uint16) float64 { // extrapolated, as if there were exponents above the largest number
			e, f := int(h>>c.digits), float64(h&(1<<c.digits-1))
			if e == 0 {
				return math.Ldexp(f, c.least-c.digits)
			}
			return math.Ldexp(f+math.Ldexp(1, c.digits), e-1+c.least-c.digits)
		}
		check := func(x float32, want uint16) {
			t.Helper()
			if got := c.to(x); got != want {
				t.Fatalf("%s of %v is %#x, want %#x", c.name, x, got, want)
			}
			if got := c.to(-x); got != want|0x8000 {
				t.Fatalf("%s of %v is %#x, want %#x", c.name, -x, got, want|0x8000)
			}
		}
		for h := range c.infinity {
			x := float32(value(h))
			if got := c.from(h); got != x || c.from(h|0x8000) != -x {
				t.Fatalf("%s %#x is %v, want %v", c.name, h, got, x)
			}
			middle := float32((value(h) + value(h+1)) / 2)
			check(x, h)
			check(middle, h+h&1)
			check(math.Nextafter32(middle, 0), h)
			check(math.Nextafter32(middle, float32(math.Inf(1))), h+1)
		}
		inf := float32(math.Inf(1))
		check(inf, c.infinity)
		if c.from(c.infinity) != inf || c.from(c.infinity|0x8000) != -inf {
			t.Errorf("%s: infinity does not come back", c.name)
		}
		for _, bits := range []uint32{0x7fc00000, 0xffc00001, 0x7f800001, 0xff800001} {
			if got := c.to(math.Float32frombits(bits)); got != c.nan {
				t.Errorf("%s of NaN %#x is %#x, want %#x", c.name, bits, got, c.nan)
			}
		}
		for h := c.infinity + 1; h < 1<<15; h++ {
			if x := math.Float32bits(c.from(h | 0x8000)); x<<1 <= 0xff<<24 || x>>31 != 1 ||
				uint16(x>>(23-c.digits))&(1<<c.digits-1) != h&(1<<c.digits-1) {
				t.Fatalf("%s NaN %#x is %#x", c.name, h, x)
			}
		}
	}
}

func TestByFloatConvertsElementByElement(t *testing.T) {
	for _, n := range []int{0, 1, 255, 256, 257, 1000} {
		x, got := make([]int64, n), make([]uint16, n)
		for i := range x {
			x[i] = int64(i)*7919 - 1_000_000
		}
		ByFloat(Convert[float32, int64], Map(ToFloat16))(got, x)
		for i, h := range got {
			if h != ToFloat16(float32(x[i])) {
				t.Fatalf("%d elements: %d is %#x", n, x[i], h)
			}
		}
	}
}

func TestQuantize(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x, scale float32
		want     int8
	}{
		{0, 1, 0}, {float32(math.Copysign(0, -1)), 1, 0}, {0.5, 1, 1}, {-0.5, 1, -1}, {1.5, 1, 2}, {2.5, 1, 3}, {-2.5, 1, -3},
		{math.Nextafter32(0.5, 0), 1, 0}, {126.5, 1, 127}, {-126.5, 1, -127}, {127.5, 1, 127}, {-128, 1, -127},
		{1e30, 1, 127},
		{inf, 1, 127}, {-inf, 1, -127}, {nan, 1, 0}, {1, 0, 0}, {1, -1, 0}, {1, nan, 0}, {1, inf, 0}, {inf, inf, 0},
		{1, math.SmallestNonzeroFloat32, 0}, {0x1p-126, 0x1p-126, 1}, {-0x1p-126, 0x1p-126, -1},
		{0x1p-126, math.Nextafter32(0x1p-126, 0), 0},
		{math.SmallestNonzeroFloat32, 0x1p-126, 0}, {math.MaxFloat32, math.MaxFloat32 / 127, 127},
	} {
		if got := Quantize(c.x, c.scale); got != c.want {
			t.Errorf("%v by %v is %d, want %d", c.x, c.scale, got, c.want)
		}
	}
}

// TestQuantizeIsNear demands of random blocks that what comes back is at most half a step and some rounding away.
func TestQuantizeIsNear(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for range 1000 {
		x, scale := make([]float32, 32), make([]float32, 32)
		codes, back := make([]int8, 32), make([]float32, 32)
		largest, size := float32(0), float32(math.Ldexp(1, r.IntN(200)-100))
		for i := range x {
			x[i] = size * (2*r.Float32() - 1)
			largest = max(largest, x[i], -x[i])
		}
		for i := range scale {
			scale[i] = largest / 127
		}
		QuantizeTo(codes, x, scale)
		DequantizeTo(back, codes, scale)
		for i := range x {
			if codes[i] != Quantize(x[i], scale[i]) || math.Abs(float64(back[i]-x[i])) > 0.5001*float64(scale[i]) {
				t.Fatalf("%v by %v is %d, which is %v", x[i], scale[i], codes[i], back[i])
			}
		}
	}
}

func BenchmarkConversions(b *testing.B) {
	x, scale, back := make([]float32, 1024), make([]float32, 1024), make([]float32, 1024)
	for i := range x {
		x[i], scale[i] = float32(i%255)-127, 1.01
	}
	i32, i8, u16 := make([]int32, 1024), make([]int8, 1024), make([]uint16, 1024)
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"float32 to int32", func() { FloatTo(i32, x) }}, {"int32 to float32", func() { Convert(back, i32) }},
		{"float32 to float16", func() { Map(ToFloat16)(u16, x) }},
		{"float16 to float32", func() { Map(FromFloat16)(back, u16) }},
		{"quantize", func() { QuantizeTo(i8, x, scale) }}, {"dequantize", func() { DequantizeTo(back, i8, scale) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(1024)
			for b.Loop() {
				c.run()
			}
		})
	}
}
