package proof

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/proof/equation"
)

// Integers are off by at most half a unit, fit in 16 bits, and the unit is the smallest with which they do.
func TestQuantise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-38, 3e-5, 1, 32767.4, 32767.5, 32768, 3e38} {
		x := []float32{0, float32(scale), -float32(scale)}
		for range 100 {
			x = append(x, float32(rng.NormFloat64()/8*scale))
		}
		f, err := Quantise(x)
		if err != nil {
			t.Fatal(err)
		}
		most := int16(0)
		for i, v := range f.Values {
			unit := math.Ldexp(1, -int(f.Exponent))
			if off := math.Abs(float64(x[i]) - float64(v)*unit); off > unit/2 {
				t.Errorf("%g became %d / 2^%d, off by %g", x[i], v, f.Exponent, off)
			}
			if v == math.MinInt16 {
				t.Errorf("%g became %d", x[i], v)
			}
			most = max(most, v, -v)
		}
		if most < 1<<13 {
			t.Errorf("%g: the largest integer is %d", scale, most)
		}
	}
	if f, err := Quantise(make([]float32, 3)); err != nil || f.Exponent != 0 {
		t.Errorf("zeros: %+v, %v", f, err)
	}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		if _, err := Quantise([]float32{1, v}); !errors.Is(err, ErrNumber) {
			t.Errorf("%g: %v", v, err)
		}
	}
}

// stated is a statement about drawn numbers, with the numbers: A, B and the inputs.
func stated(t *testing.T, s Shape, tokens int) (Statement, [3][]float32) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	var numbers [3][]float32
	var fixed [3]Fixed
	for i, n := range []uint32{s.Rank * s.In, s.Rank * s.Out, uint32(tokens) * s.In} {
		for range n {
			numbers[i] = append(numbers[i], float32(rng.NormFloat64()))
		}
		var err error
		if fixed[i], err = Quantise(numbers[i]); err != nil {
			t.Fatal(err)
		}
	}
	st := Statement{Base: canon.Sum("base"), Adapter: canon.Sum("adapter"), Module: "layer",
		Factor: math.Float64bits(1.5), Tokens: make([]uint32, tokens)}
	if err := st.Apply(Weights{s, fixed[0], fixed[1]}, fixed[2]); err != nil {
		t.Fatal(err)
	}
	return st, numbers
}

// Rounding bounds the difference to the same sum over the numbers before they were rounded, and is not far from it.
func TestRounding(t *testing.T) {
	shape, tokens := Shape{Rank: 3, In: 40, Out: 5}, 4
	s, numbers := stated(t, shape, tokens)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for token := range tokens {
		for i := range int(shape.Out) {
			sum := 0.0
			for k := range int(shape.Rank) {
				for j := range int(shape.In) {
					sum += float64(numbers[1][i*int(shape.Rank)+k]) * float64(numbers[0][k*int(shape.In)+j]) *
						float64(numbers[2][token*int(shape.In)+j]) * 1.5
				}
			}
			worst = max(worst, math.Abs(sum-s.Added(token, i)))
		}
	}
	if bound := s.Rounding(); worst > bound || worst < bound/1e4 {
		t.Errorf("the worst difference is %g, the bound %g", worst, bound)
	}
}

// The largest sums fit in an int64.
func TestSumsFit(t *testing.T) {
	shape := Shape{Rank: 16, In: maxTerms / 16, Out: 2}
	if err := shape.Validate(); err != nil {
		t.Fatal(err)
	}
	full := func(n uint32) Fixed {
		f := Fixed{Values: make([]int16, n)}
		for i := range f.Values {
			f.Values[i] = largest
		}
		return f
	}
	s := Statement{Tokens: make([]uint32, 1)}
	w := Weights{shape, full(shape.Rank * shape.In), full(shape.Rank * shape.Out)}
	if err := s.Apply(w, full(shape.In)); err != nil {
		t.Fatal(err)
	}
	if got, want := s.output(1), int64(maxTerms)*largest*largest*largest; got != want {
		t.Errorf("%d, wanted %d", got, want)
	}
}

func TestStatementsAreChecked(t *testing.T) {
	for name, change := range map[string]func(*Statement){
		"base":      func(s *Statement) { s.Base = canon.Digest{} },
		"adapter":   func(s *Statement) { s.Adapter = canon.Digest{} },
		"no name":   func(s *Statement) { s.Module = "" },
		"text":      func(s *Statement) { s.Module = "\xff" },
		"owner":     func(s *Statement) { s.Owner = "\xff" },
		"rank":      func(s *Statement) { s.Shape.Rank = MaxRank + 1 },
		"width":     func(s *Statement) { s.Shape.In = math.MaxUint32 },
		"tokens":    func(s *Statement) { s.Tokens = nil },
		"inputs":    func(s *Statement) { s.Inputs = s.Inputs[2:] },
		"outputs":   func(s *Statement) { s.Outputs = append(s.Outputs, 0) },
		"exponent":  func(s *Statement) { s.Exponents[1] = 201 },
		"factor":    func(s *Statement) { s.Factor = math.Float64bits(math.NaN()) },
		"no factor": func(s *Statement) { s.Factor = 0 },
		"input":     func(s *Statement) { s.Inputs[0], s.Inputs[1] = 0, 0x80 },
	} {
		s, _ := stated(t, Shape{Rank: 2, In: 4, Out: 3}, 2)
		change(&s)
		if err := s.Validate(); !errors.Is(err, ErrStatement) && !errors.Is(err, ErrShape) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Decode(Proof{Statement: s}.Encode()); err == nil {
			t.Errorf("%s is decoded", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := Statement{Module: "layer", Shape: Shape{Rank: 1, In: 2, Out: 2}, Tokens: []uint32{1}, Inputs: make([]byte, 4),
		Outputs: make([]byte, 16), Factor: math.Float64bits(1), Base: canon.Sum("a"), Adapter: canon.Sum("b")}
	f.Add(Proof{Statement: s, Commitment: make([]byte, 32), Points: make([]byte, 160)}.Encode())
	f.Add([]byte(Magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			return
		}
		if string(p.Encode()) != string(data) {
			t.Error("another encoding of the same proof")
		}
		if _, err := Fold(canon.Digest{}, p.Statement, p.Commitment); err != nil {
			t.Error(err)
		}
	})
}

func FuzzKey(f *testing.F) {
	shape := Shape{Rank: 1, In: 2, Out: 2}
	f.Add(Key{Shape: shape, Points: make([]byte, equation.KeyBytes(shape.publicInputs(), 1))}.Encode())
	f.Add([]byte(KeyMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, err := NewVerifier(data); err == nil && string(v.Key().Encode()) != string(data) {
			t.Error("another encoding of the same key")
		}
	})
}
