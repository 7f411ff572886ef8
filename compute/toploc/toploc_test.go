package toploc

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func activations(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func prove(t testing.TB, x []float32) []byte {
	t.Helper()
	p, err := Prove(x)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) != 258 {
		t.Fatalf("%d bytes", len(p))
	}
	return p
}

// The differences of scaled activations are those of the reference's own tests, also where places exceed the modulus.
func TestScaled(t *testing.T) {
	for _, n := range []int{Top, 4096, 32 * 768, 32 * 8192} {
		x := activations(uint64(n), n)
		proof := prove(t, x)
		for _, c := range []struct {
			by   float32
			fits func(d Difference) bool
		}{
			{1, func(d Difference) bool { return d == Difference{} }},
			{1.01, func(d Difference) bool { return d.Exponents <= 4 && d.Mean <= 3 && d.Holds(BFloat16) }},
			{1.10, func(d Difference) bool { return d.Mean > MaxMean && d.Median > MaxMedian && !d.Holds(BFloat16) }},
			{1.001, func(d Difference) bool { return d.Holds(BFloat16) && !d.Holds(Float32) }},
			{1.000001, func(d Difference) bool { return d.Holds(Float32) }},
			{4, func(d Difference) bool { return d.Exponents == Top && !d.Holds(BFloat16) }},
			{-1, func(d Difference) bool { return d.Exponents == Top && !d.Holds(BFloat16) }},
		} {
			y := make([]float32, n)
			for i := range x {
				y[i] = c.by * x[i]
			}
			d, err := Compare(proof, y)
			if err != nil || !c.fits(d) {
				t.Errorf("%d activations times %g: %+v, %v", n, c.by, d, err)
			}
		}
		if d, err := Compare(proof, activations(uint64(n)+1, n)); err != nil || d.Holds(BFloat16) {
			t.Errorf("other activations: %+v, %v", d, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	x := activations(1, 4096)
	good := prove(t, x)
	for name, p := range map[string][]byte{"nothing": nil, "zeros": make([]byte, Bytes), "short": good[:Bytes-1],
		"a large coefficient": append(append([]byte{}, good[:Bytes-2]...), 0xff, 0xff)} {
		if _, err := Compare(p, x); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	x[7] = float32(math.Inf(1))
	for name, x := range map[string][]float32{"infinite": x, "few": x[:Top-1], "none": nil} {
		if _, err := Prove(x); !errors.Is(err, ErrActivations) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Compare(good, x); !errors.Is(err, ErrActivations) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCompare reads proofs of strangers.
func FuzzCompare(f *testing.F) {
	x := activations(1, 300)
	f.Add(prove(f, x))
	f.Fuzz(func(t *testing.T, proof []byte) {
		if d, err := Compare(proof, x); err == nil && (d.Exponents < 0 || d.Exponents > Top || d.Mean < 0) {
			t.Fatalf("%+v", d)
		}
	})
}
