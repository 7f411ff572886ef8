package philox

import (
	"math"
	"testing"
)

// TestVectors are the known answers published with Random123 (kat_vectors, philox4x32-10).
func TestVectors(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		word := func(lo, hi uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }
		got := Block(word(c.key[0], c.key[1]), word(c.counter[2], c.counter[3]), word(c.counter[0], c.counter[1]))
		if got != c.want {
			t.Errorf("counter %x key %x: got %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

func TestReader(t *testing.T) {
	p, words := New(5, 6), []uint32{}
	for i := range uint64(4) {
		w := Block(5, 6, i)
		words = append(words, w[:]...)
	}
	for i, want := range words[:10] {
		if got := p.Uint32(); got != want {
			t.Fatalf("word %d is %x, want %x", i, got, want)
		}
	}
	p.Next = 3
	if got, want := p.Uint64(), uint64(words[4])<<32|uint64(words[3]); got != want {
		t.Errorf("Uint64 at 3 is %x, want %x", got, want)
	}
	var count [7]int
	for range 70000 {
		count[p.Uint64n(7)]++
	}
	for v, n := range count {
		if n < 9500 || n > 10500 {
			t.Errorf("Uint64n(7) gave %d %d times of 70000", v, n)
		}
	}
	if n := uint64(1<<63 + 1); p.Uint64n(n) >= n {
		t.Error("Uint64n is not below its bound")
	}
}

func TestNormalTo(t *testing.T) {
	dst := make([]float32, 1<<20)
	NormalTo(dst, 1, 2)
	var sum, square, fourth float64
	for _, x := range dst {
		if !(math.Abs(float64(x)) < 6.8) {
			t.Fatalf("normal number %v", x)
		}
		s := float64(x) * float64(x)
		sum, square, fourth = sum+float64(x), square+s, fourth+s*s
	}
	n := float64(len(dst))
	if math.Abs(sum/n) > 0.004 || math.Abs(square/n-1) > 0.006 || math.Abs(fourth/n-3) > 0.04 {
		t.Errorf("moments %v %v %v, want 0 1 3", sum/n, square/n, fourth/n)
	}
	for n := range 12 { // element i does not depend on the length
		short := make([]float32, n)
		NormalTo(short, 1, 2)
		for i, x := range short {
			if x != dst[i] {
				t.Errorf("element %d of %d differs", i, n)
			}
		}
	}
}

func TestBlocksTo(t *testing.T) {
	stream := &Reader{Seed: 5, Stream: 6, Next: 4 * 7}
	got := make([]uint32, 11)
	BlocksTo(got, 5, 6, 7)
	for i, word := range got {
		if want := stream.Uint32(); word != want {
			t.Errorf("word %d is %x, want %x", i, word, want)
		}
	}
}
