package codec

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

func normal(n int, seed uint64) *tensor.Tensor {
	x := make([]float32, n)
	kernel.NormalTo(x, seed, 0)
	return tensor.FromF32(x, n)
}

// The vector is the published one of the quantiser (algorithms of the INTELLECT-1 run).
func TestInt8Vector(t *testing.T) {
	x := []float32{-1, -.5, 0, .25, .5, 1, 3, -.125}
	mean, scale := statistics(x)
	if mean != 0.390625 || math.Abs(scale-0.0285094014) > 1e-9 {
		t.Fatalf("mean %v, scale %v", mean, scale)
	}
	if got := encodeInt8(x)[4*levels:]; !slices.Equal(got, []byte{79, 97, 114, 123, 132, 149, 220, 110}) {
		t.Fatalf("codes %v", got)
	}
}

func TestInt8ErrorOnNormalData(t *testing.T) {
	x := normal(100_000, 1)
	p, err := Encode(Int8, x)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Decode(Int8, p, x.Shape)
	if err != nil {
		t.Fatal(err)
	}
	var e, s float64
	for i, v := range x.F32() {
		d := float64(v) - float64(y.F32()[i])
		e += d * d
		s += float64(v) * float64(v)
	}
	// Uniform error of a code, (6/256)^2/12 = 4.6e-5, and of the tails beyond 3 sigma around their means, 1.9e-4.
	if rel := e / s; rel < 2e-4 || rel > 2.7e-4 {
		t.Fatalf("relative squared error %v", rel)
	}
}

func TestEdges(t *testing.T) {
	for name, x := range map[string][]float32{
		"all equal": slices.Repeat([]float32{-2.5}, 400), "zeros": make([]float32, 400),
		"one element": {3}, "small": {1, 2, 3}, "one outlier": append(make([]float32, 400), 1e30),
	} {
		for _, c := range []string{Int8, Float32} {
			in := tensor.FromF32(x, len(x))
			p, err := Encode(c, in)
			if err != nil || len(p) != Size(c, len(x)) {
				t.Fatalf("%s %s: %d bytes, want %d, %v", name, c, len(p), Size(c, len(x)), err)
			}
			out, err := Decode(c, p, in.Shape)
			if err != nil {
				t.Fatalf("%s %s: %v", name, c, err)
			}
			if (c == Float32 || name != "one outlier") && !slices.Equal(out.F32(), x) {
				t.Errorf("%s %s: not restored exactly", name, c)
			}
		}
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := Encode(Int8, tensor.FromF32([]float32{1, bad}, 2)); !errors.Is(err, ErrPayload) {
			t.Errorf("%v encoded: %v", bad, err)
		}
	}
}

func packed(t testing.TB) (*Update, Expect) {
	delta := []*tensor.Tensor{normal(1000, 1), normal(10, 2)}
	u, err := Pack(Int8, 3, 1, delta)
	if err != nil {
		t.Fatal(err)
	}
	return u, Expect{Round: 3, Unit: 1, Codec: Int8, Shapes: []tensor.Shape{delta[0].Shape, delta[1].Shape}, Root: u.Root()}
}

func TestUnpackRefusesWhatWasNotPromised(t *testing.T) {
	u, want := packed(t)
	if _, delta, err := Unpack(u.Encode(), want); err != nil || len(delta) != 2 {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Update){
		"round": func(u *Update) { u.Round++ }, "unit": func(u *Update) { u.Unit++ }, "codec": func(u *Update) { u.Codec = Float32 },
		"fewer tensors": func(u *Update) { u.Payloads = u.Payloads[:1] }, "short payload": func(u *Update) { u.Payloads[0] = u.Payloads[0][1:] },
		"flipped bit": func(u *Update) { u.Payloads[0] = bytes.Clone(u.Payloads[0]); u.Payloads[0][1500] ^= 1 },
	} {
		bad, _ := packed(t)
		change(bad)
		if _, _, err := Unpack(bad.Encode(), want); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	u, want := packed(f)
	want.Root = canon.Digest{}
	f.Add(u.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, delta, err := Unpack(b, want); err == nil {
			for _, d := range delta {
				if finite(d.F32()) != nil {
					t.Fatal("accepted a number that is not finite")
				}
			}
		}
	})
}
