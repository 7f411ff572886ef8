package codec

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

func roundTrip(t *testing.T, c Codec, x *tensor.Tensor) []float32 {
	t.Helper()
	_, y, err := transmit(c, x)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

func TestFieldsArePackedLowBitsFirst(t *testing.T) {
	b := make([]byte, 3)
	putBits(b, 0, 0xABC, 12)
	putBits(b, 12, 0x123, 12)
	if !bytes.Equal(b, []byte{0xBC, 0x3A, 0x12}) {
		t.Fatalf("% X", b)
	}
	for width := 1; width <= 16; width++ {
		b := make([]byte, bytesOf(100, width))
		for i := range 100 {
			putBits(b, i*width, uint32(i*2654435761)>>(32-width), width)
		}
		for i := range 100 {
			if got, want := getBits(b, i*width, width), uint32(i*2654435761)>>(32-width); got != want {
				t.Fatalf("width %d, field %d: %x, want %x", width, i, got, want)
			}
		}
	}
}

func TestTopKKeepsTheLargest(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	for _, c := range []struct{ x, want []float32 }{
		{[]float32{1, -5, 3, 2, 0, 0, 0, 9}, []float32{0, -5, 3, 0, 0, 0, 0, 9}},
		{[]float32{-2, 2, -2, 2, 1, 1, 1, 1}, []float32{-2, 2, 0, 0, 1, 1, 0, 0}}, // ties: the first
		{[]float32{negative, 0, negative, 7, negative, 0, 0, 0}, []float32{negative, 0, 0, 7, negative, 0, 0, 0}},
		{[]float32{1e-45, 1e-44, 0, 0, 3e38, 1, 2, 3}, []float32{1e-45, 1e-44, 0, 0, 3e38, 0, 0, 3}},
	} {
		x := vector(append(slices.Clone(c.x), make([]float32, 56)...)...) // large enough that it does not travel as it is
		got := roundTrip(t, TopK{Chunk: 4, K: 2, Bits: 32}, x)[:8]
		if !slices.Equal(got, c.want) {
			t.Errorf("%v became %v, want %v", c.x, got, c.want)
		}
	}
}

// The threshold is that of a sorted list.
func TestKth(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64, 1000} {
		x := normal(uint64(n), n).F32()
		for i := range x {
			if i%3 == 0 {
				x[i] = float32(math.Round(float64(x[i]))) // with many ties
			}
		}
		sorted := make([]uint32, n)
		for i, v := range x {
			sorted[i] = magnitude(v)
		}
		slices.SortFunc(sorted, func(a, b uint32) int { return int(b) - int(a) })
		for k := 1; k <= n; k++ {
			first := slices.Index(sorted, sorted[k-1])
			if threshold, ties := kth(x, k); threshold != sorted[k-1] || ties != k-first {
				t.Fatalf("%d of %d: %x with %d ties, want %x with %d", k, n, threshold, ties, sorted[k-1], k-first)
			}
		}
	}
}

func TestHostilePositions(t *testing.T) {
	c := TopK{Chunk: 10, K: 2, Bits: 32} // low bits of 2 numbers up to 8, 2 each; then 2 ones and 2 zeros
	s := tensor.Make(tensor.Float32, 20)
	good, err := Compress(c, normal(1, 20))
	if err != nil {
		t.Fatal(err)
	}
	for what, positions := range map[string][2]byte{
		"out of range": {0b1100_0100, 0b0011_0000}, "descending": {0b0011_0001, 0b0011_0000},
		"one":   {0b0001_0000, 0b0011_0000},
		"three": {0b0111_0000, 0b0011_0000}, "in the second chunk": {0b0011_0000, 0b1100_0100},
	} {
		p := bytes.Clone(good)
		p[0], p[1] = positions[0], positions[1]
		if _, err := Restore(c, p, s); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", what, err)
		}
	}
	p := bytes.Clone(good)
	copy(p[2:], []byte{0, 0, 0x80, 0x7f})
	if _, err := Restore(c, p, s); !errors.Is(err, ErrPayload) {
		t.Errorf("infinity: %v", err)
	}
	odd := TopK{Chunk: 10, K: 1, Bits: 2} // 5 bits and 2 bits, both padded
	p, err = Compress(odd, normal(1, 10))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, len(p) - 1} {
		q := bytes.Clone(p)
		q[at] |= 0x80
		if _, err := Restore(odd, q, tensor.Make(tensor.Float32, 10)); !errors.Is(err, ErrPayload) {
			t.Errorf("padding of byte %d: %v", at, err)
		}
	}
}

// A wave is one frequency: the codec sends it whole.
func TestDCTSendsAWave(t *testing.T) {
	c := DCT{Side: 64, K: 1, Bits: 32}
	s := tensor.Make(tensor.Float32, 64, 64)
	y := make([]float32, 4096)
	y[5*64+9] = 3
	x := c.Synthesize(y, s)
	p, err := Compress(c, x)
	if err != nil {
		t.Fatal(err)
	}
	z, err := Restore(c, p, s)
	if err != nil || relative(x, z) > 1e-10 {
		t.Fatalf("error %v, %v", relative(x, z), err)
	}
	f, err := c.Frequencies(p, s)
	if err != nil || math.Abs(float64(f[5*64+9])-3) > 1e-4 || f[0] != 0 {
		t.Fatalf("frequency %v, %v", f[5*64+9], err)
	}
	if _, err := c.Frequencies(p[1:], s); !errors.Is(err, ErrPayload) {
		t.Errorf("a short payload: %v", err)
	}
	small := vector(1, 2, 3)
	c.K = 3
	p, err = Compress(c, small) // travels as it is
	if err != nil {
		t.Fatal(err)
	}
	if f, err = c.Frequencies(p, small.Shape); err != nil || relative(small, c.Synthesize(f, small.Shape)) > 1e-12 {
		t.Errorf("frequencies %v, %v", f, err)
	}
}

func TestRandomKTakesEveryElementInTurn(t *testing.T) {
	const n, every = 103, 5
	seen := make([]int, n)
	for round := range uint32(every) {
		last := -1
		c := RandomK{Every: every, Seed: 4, Round: round}
		c.Positions(n, func(k, i int) {
			if i/every != k || i <= last {
				t.Fatalf("element %d is number %d", i, k)
			}
			last = i
			seen[i]++
		})
	}
	for i, s := range seen[:n-n%every] {
		if s != 1 {
			t.Errorf("element %d was sent %d times", i, s)
		}
	}
}

// A name says one codec, and a codec has one name.
func TestNamesOfTopK(t *testing.T) {
	for _, c := range []TopK{{sparseChunk, 1, 2}, {sparseChunk, 82, 8}, {sparseChunk, 4096, 32}} {
		if got, ok := ByName(TopKName(c.K, c.Bits)); !ok || got != Codec(c) {
			t.Errorf("%s is %v, %v", TopKName(c.K, c.Bits), got, ok)
		}
	}
	x := normal(5, 300, 400)
	a, errA := Encode(Sparse, x)
	b, errB := Encode(TopKName(64, 2), x)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("64 of 4096 in 2 bits has two forms: %v, %v", errA, errB)
	}
	for _, name := range []string{"topk/", "topk/64", "topk/64/2/", "topk/064/2", "topk/+64/2", "topk/0/2", "topk/-1/2",
		"topk/4097/2", "topk/64/9",
		"topk/64/64", "topk/ 64/2", "topk/64/2 ", "topk/99999999999999999999/2", "dct/32/16"} {
		if c, ok := ByName(name); ok {
			t.Errorf("%q is %v", name, c)
		}
	}
}

func TestRandomNames(t *testing.T) {
	c := RandomK{Every: 32, Bits: 16, Seed: 1<<64 - 1, Stream: 4, Round: 9}
	if got, ok := ByName(RandomName(c)); !ok || got != c {
		t.Errorf("%q is %v, %v", RandomName(c), got, ok)
	}
	for _, bad := range []string{"random", "random/32/16/1/2", "random/0/16/1/2/3", "random/32/12/1/2/3",
		"random/032/16/1/2/3", "random/32/16/1/2/3/", "random/-2/16/1/2/3", "random/32/16/1/2/4294967296"} {
		if Known(bad) {
			t.Errorf("%q is the name of a codec", bad)
		}
	}
}

// A tensor that is not sent has no bytes.
func TestNothing(t *testing.T) {
	x := tensor.New(tensor.Make(tensor.Float32, PartElements+5))
	philox.NormalTo(x.F32(), 1, 2)
	m, err := MakingOf(Skip, x.Shape)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := Encode(Skip, x)
	if err != nil || len(payload) != 0 || len(made(t, m, x)) != 0 {
		t.Fatalf("%d bytes (%v)", len(payload), err)
	}
}
