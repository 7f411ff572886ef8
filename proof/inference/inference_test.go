package inference

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// drawn is a network with normal weights.
func drawn(rng *rand.Rand, scale float64, widths ...uint32) (Shape, []Floats) {
	s := Shape{widths}
	var layers []Floats
	for i, out := range widths[1:] {
		in := widths[i]
		f := Floats{make([]float32, in*out), make([]float32, out)}
		for k := range f.Weights {
			f.Weights[k] = float32(rng.NormFloat64() * scale / math.Sqrt(float64(in)))
		}
		for k := range f.Added {
			f.Added[k] = float32(rng.NormFloat64() * scale / 10)
		}
		layers = append(layers, f)
	}
	return s, layers
}

// exact are the scores of a network without rounding.
func exact(layers []Floats, pixels []byte) []float64 {
	var x []float64
	for _, p := range pixels {
		x = append(x, (2*float64(p)-255)/255)
	}
	for i, f := range layers {
		y := make([]float64, len(f.Added))
		for row := range y {
			y[row] = float64(f.Added[row])
			for j, v := range x {
				y[row] += v * float64(f.Weights[row*len(x)+j])
			}
			if i < len(layers)-1 {
				y[row] = max(0, y[row])
			}
		}
		x = y
	}
	return x
}

// The scores of the integers are near those of the model, of weights of any size, and no sum leaves its bounds: not
// even of the image that makes it largest.
func TestIntegersAreNearTheModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-6, 1, 1e4} {
		shape, layers := drawn(rng, scale, 40, 12, 9, 4)
		n, err := Quantise(shape, layers)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range n.Layers[:2] {
			most := int64([]int{white, mostHidden}[i])
			for row, sum := range l.Added {
				sum = max(sum, -sum)
				for _, w := range l.Weights[row*int(shape.Widths[i]) : (row+1)*int(shape.Widths[i])] {
					sum += max(int64(w), -int64(w)) * most
				}
				if sum >= Bound {
					t.Errorf("layer %d, row %d: a sum of %d", i, row, sum)
				}
			}
		}
		for range 20 {
			pixels := make([]byte, 40)
			for i := range pixels {
				pixels[i] = byte(rng.IntN(256))
			}
			s := Statement{Model: canon.Sum("model")}
			if err := s.Apply(n, pixels); err != nil {
				t.Fatal(err)
			}
			got, want := s.Scores(), exact(layers, pixels)
			size := 0.0
			for _, x := range want {
				size = max(size, math.Abs(x))
			}
			for i := range want {
				if math.Abs(got[i]-want[i]) > size/5000 {
					t.Errorf("scale %g: scores %v, wanted %v", scale, got, want)
					break
				}
			}
		}
	}
}

// Weights that are no numbers have no integers.
func TestWeightsAreFinite(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for _, added := range []bool{false, true} {
			shape, layers := drawn(rand.New(rand.NewPCG(1, 2)), 1, 4, 3, 2)
			if layers[1].Weights[2] = bad; added {
				layers[1].Weights[2], layers[1].Added[1] = 0, bad
			}
			if _, err := Quantise(shape, layers); !errors.Is(err, equation.ErrShape) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	}
	shape, layers := drawn(rand.New(rand.NewPCG(1, 2)), 0, 4, 3, 2)
	if _, err := Quantise(shape, layers); err != nil {
		t.Errorf("a network of zeros: %v", err)
	}
	for _, widths := range [][]uint32{nil, {4}, {4, 1}, {1, 4}, {MaxInputs + 1, 2}, {2, MaxClasses + 1},
		{3072, 256, 2}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, {2, math.MaxUint32, 2}} {
		if err := (Shape{widths}).Validate(); !errors.Is(err, equation.ErrShape) {
			t.Errorf("%v: %v", widths, err)
		}
	}
}

// Bytes of strangers that are no proof or no key are refused, and the others have one encoding.
func FuzzDecode(f *testing.F) {
	s := Statement{Model: canon.Sum("model"), Shape: Shape{[]uint32{2, 2}}, Exponents: []int16{3}, Pixels: make([]byte, 2),
		Outputs: make([]byte, 16)}
	f.Add(Proof{s, make([]byte, 32), make([]byte, 160)}.Encode())
	f.Add(Key{Shape: s.Shape, Points: make([]byte, equation.KeyBytes(5, 1))}.Encode())
	far := Statement{Model: s.Model, Shape: Shape{[]uint32{2, 2, 2, 2, 2, 2, 2}},
		Exponents: []int16{-200, -200, -200, -200, -200, -200}, Pixels: s.Pixels, Outputs: bytes.Repeat([]byte{127}, 16)}
	f.Add(Proof{far, make([]byte, 32), make([]byte, 160)}.Encode())
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := Decode(data); err == nil {
			if string(p.Encode()) != string(data) {
				t.Error("another encoding of the same proof")
			}
			if _, err := Public(canon.Digest{}, p.Statement, p.Commitment); err != nil {
				t.Error(err)
			}
			for _, x := range p.Statement.Scores() {
				if math.IsInf(x, 0) || math.IsNaN(x) {
					t.Errorf("the score %g of the exponents %v", x, p.Statement.Exponents)
				}
			}
		}
		if v, err := NewVerifier(data); err == nil && string(v.Key().Encode()) != string(data) {
			t.Error("another encoding of the same key")
		}
	})
}
