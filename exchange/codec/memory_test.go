package codec

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// What was sent and what is kept back add up to what was computed; whole numbers make the sums exact.
func TestFeedbackLosesNothing(t *testing.T) {
	for _, c := range []Codec{TopK{Chunk: 64, K: 3, Bits: 32}, RandomK{Every: 9, Bits: 32}, named[E3M0]} {
		f := Feedback{Codec: c, Decay: 1}
		var residual *tensor.Tensor
		computed, sent := make([]float64, 640), make([]float64, 640)
		for round := range uint64(10) {
			delta := normal(round, 10, 64)
			for i, v := range delta.F32() {
				delta.F32()[i] = float32(math.Round(float64(v * 100)))
				computed[i] += float64(delta.F32()[i])
			}
			p, next, err := f.Encode(residual, delta)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Restore(c, p, delta.Shape)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range y.F32() {
				sent[i] += float64(v)
			}
			residual = next
		}
		for i, r := range residual.F32() {
			if math.Abs(sent[i]+float64(r)-computed[i]) > 1e-3 {
				t.Fatalf("%#v: element %d: sent %v, kept %v of %v", c, i, sent[i], r, computed[i])
			}
		}
	}
}

// Without feedback a small element beside large ones is never sent; with it, it arrives.
func TestFeedbackSendsSmallElements(t *testing.T) {
	c := TopK{Chunk: 64, K: 4, Bits: 32}
	delta := vector(slices.Repeat([]float32{0.1}, 64)...)
	for i := range 4 {
		delta.F32()[i] = 1
	}
	total := func(decay float32) (sum float64) {
		var residual *tensor.Tensor
		for range 200 {
			p, next, err := Feedback{Codec: c, Decay: decay}.Encode(residual, delta)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Restore(c, p, delta.Shape)
			if err != nil {
				t.Fatal(err)
			}
			sum, residual = sum+float64(y.F32()[63]), next
		}
		return sum
	}
	if without, with := total(0), total(1); without != 0 || math.Abs(with-20) > 2 {
		t.Errorf("of 20, %v arrived without feedback and %v with it", without, with)
	}
}

func TestFeedbackDecaysAndStartsAgain(t *testing.T) {
	f := Feedback{Codec: TopK{Chunk: 64, K: 1, Bits: 32}, Decay: 0.5}
	delta := tensor.New(tensor.Make(tensor.Float32, 64))
	delta.F32()[3], delta.F32()[5] = 8, 4
	_, residual, err := f.Encode(nil, delta)
	if err != nil || residual.F32()[3] != 0 || residual.F32()[5] != 4 {
		t.Fatalf("%v, %v", residual.F32()[:8], err)
	}
	root := residual.Root()
	_, next, err := f.Encode(residual, delta) // 8 and 4 + 0.5*4
	if err != nil || next.F32()[5] != 6 || residual.Root() != root {
		t.Fatalf("%v, %v", next.F32()[:8], err)
	}
	// A residual of another layout is an error, not a guess.
	if _, _, err := f.Encode(residual, normal(1, 8, 8)); err == nil {
		t.Error("a residual of another shape was used")
	}
}

// The algorithm by hand: one of two elements is sent each round.
func TestDeepGradientMasksItsMomentum(t *testing.T) {
	d := DeepGradient{Codec: TopK{Chunk: 64, K: 1, Bits: 32}, Momentum: 0.5}
	g := tensor.New(tensor.Make(tensor.Float32, 64))
	g.F32()[0], g.F32()[1] = 4, 3
	var u, v *tensor.Tensor
	for round, want := range []struct{ u0, u1, v0, v1 float32 }{
		{0, 3, 0, 3}, // u 4 3, v 4 3: the first is sent
		{4, 0, 4, 0}, // u 4 4.5, v 4 7.5: the second
		{0, 3, 0, 3}, // u 6 3, v 10 3: the first
		{4, 0, 4, 0}, // u 4 4.5, v 4 7.5: the second
	} {
		var err error
		if _, u, v, err = d.Encode(u, v, g); err != nil {
			t.Fatal(err)
		}
		x, y := u.F32(), v.F32()
		if x[0] != want.u0 || x[1] != want.u1 || y[0] != want.v0 || y[1] != want.v1 {
			t.Fatalf("round %d: u %v, v %v, want %v", round, x[:2], y[:2], want)
		}
	}
	for epoch, want := range []int{1024, 256, 64, 16, 4, 4, 4} {
		if got := Sparsity(epoch); got != want {
			t.Errorf("epoch %d sends %d of 4096, want %d", epoch, got, want)
		}
	}
}

// A matrix of a rank comes back from factors of that rank.
func TestLowRankRestoresItsRank(t *testing.T) {
	const m, n, rank = 40, 30, 3
	c := LowRank{Rank: rank, Seed: 1}
	left, right := normal(1, rank, m), normal(2, rank, n)
	x := tensor.New(tensor.Make(tensor.Float32, m, n))
	c.product(x, left, right)
	if y := tensor.FromF32(roundTrip(t, c, x), m, n); relative(x, y) > 1e-10 {
		t.Errorf("error %v", relative(x, y))
	}
	if y := tensor.FromF32(roundTrip(t, LowRank{Rank: 2, Seed: 1}, x), m, n); relative(x, y) < 1e-3 {
		t.Errorf("two factors gave a matrix of rank three back: error %v", relative(x, y))
	}
}

func TestOrthonormalize(t *testing.T) {
	p := normal(3, 4, 50)
	copy(p.F32()[150:], p.F32()[:50]) // the last depends on the first
	if err := Orthonormalize(p); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		for j := range i + 1 {
			want := 0.0
			if i == j && i < 3 {
				want = 1
			}
			var got float64
			for k := range 50 {
				got += float64(p.F32()[i*50+k]) * float64(p.F32()[j*50+k])
			}
			if math.Abs(got-want) > 1e-6 {
				t.Errorf("rows %d and %d: %v, want %v", i, j, got, want)
			}
		}
	}
	bad := vector(float32(math.Inf(1)))
	if Orthonormalize(tensor.FromF32(bad.F32(), 1, 1)) == nil {
		t.Error("an infinity was normalised")
	}
}

// The steps are linear: the mean of the workers' factors are the factors of the mean, from one start.
func TestLowRankFactorsCanBeAveraged(t *testing.T) {
	c := LowRank{Rank: 2, Seed: 5}
	a, b := normal(1, 20, 10), normal(2, 20, 10)
	mean := tensor.New(a.Shape)
	average := func(x, y *tensor.Tensor) *tensor.Tensor {
		z := x.Clone()
		for i, v := range y.F32() {
			z.F32()[i] = (z.F32()[i] + v) / 2
		}
		return z
	}
	copy(mean.F32(), average(a, b).F32())
	start := c.Start(a.Shape)
	left := average(c.Left(a, start), c.Left(b, start))
	if e := relative(c.Left(mean, start), left); e > 1e-10 {
		t.Errorf("left factors differ by %v", e)
	}
	if err := Orthonormalize(left); err != nil {
		t.Fatal(err)
	}
	if e := relative(c.Right(mean, left), average(c.Right(a, left), c.Right(b, left))); e > 1e-10 {
		t.Errorf("right factors differ by %v", e)
	}
}

// Every worker of a round starts from the same numbers, and every round from others.
func TestLowRankStart(t *testing.T) {
	s := tensor.Make(tensor.Float32, 6, 8)
	one := LowRank{Rank: 2, Seed: 1, Stream: 1}.Start(s)
	if again := (LowRank{Rank: 2, Seed: 1, Stream: 1}).Start(s); one.Root() != again.Root() {
		t.Error("two workers start differently")
	}
	if other := (LowRank{Rank: 2, Seed: 1, Stream: 2}).Start(s); one.Root() == other.Root() {
		t.Error("two rounds start alike")
	}
}

// A warm start is a power iteration: with the right factor of the round before, the error of a fixed matrix falls to
// that of its best approximation.
func TestLowRankWarmStart(t *testing.T) {
	c := LowRank{Rank: 2, Seed: 3}
	x := normal(8, 60, 40)
	errorOf := func(right *tensor.Tensor) (*tensor.Tensor, float64) {
		left := c.Left(x, right)
		if err := Orthonormalize(left); err != nil {
			t.Fatal(err)
		}
		right = c.Right(x, left)
		y := tensor.New(x.Shape)
		c.product(y, left, right)
		return right, relative(x, y)
	}
	right, first := errorOf(c.Start(x.Shape))
	last := first
	for range 20 {
		var e float64
		if right, e = errorOf(right); e > last+1e-6 {
			t.Fatalf("error rose from %v to %v", last, e)
		}
		last = e
	}
	if last > 0.97*first {
		t.Errorf("error fell from %v to %v only", first, last)
	}
}
