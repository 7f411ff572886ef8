package codec

import (
	"errors"
	"math/big"
	"math/bits"
	"slices"
	"testing"
)

// Every choice of k of n elements comes back, and of all bits of that size no others are read: a choice is written in
// one way only.
func TestPlacesOfAllChoices(t *testing.T) {
	for n := range 9 {
		for k := range n + 1 {
			p := placesOf(n, k)
			written := map[string]bool{}
			for choice := range 1 << n {
				if bits.OnesCount(uint(choice)) != k {
					continue
				}
				b := make([]byte, bytesOf(3+p.bits(), 1)) // not at the start of a byte
				var want, got []int
				for i := range n {
					if choice>>i&1 == 1 {
						p.put(b, 3, len(want), i)
						want = append(want, i)
					}
				}
				if err := p.get(b, 3, func(i int) { got = append(got, i) }); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%v of %d came back as %v: %v", want, n, got, err)
				}
				written[string(b)] = true
			}
			for word := range 1 << p.bits() {
				b := make([]byte, bytesOf(3+p.bits(), 1))
				putBits(b, 3, uint32(word), p.bits())
				if err := p.get(b, 3, func(int) {}); (err == nil) != written[string(b)] || err != nil &&
					!errors.Is(err, ErrPayload) {
					t.Fatalf("%d of %d as %b: %v", k, n, word, err)
				}
			}
		}
	}
}

// No code for all choices takes fewer bits than the logarithm of their number; this one takes up to 0.7 bits a position
// more.
func TestSizesOfPlaces(t *testing.T) {
	for _, c := range []struct{ n, k, want int }{
		{4096, 64, 510}, {4096, 1, 13}, {4096, 4095, 4096}, {4096, 4096, 0}, {4096, 2048, 4096}, {64, 1, 7}, {1, 1, 0},
		{0, 0, 0}, {1 << 16, 1 << 15, 1 << 16},
	} {
		if got := placesOf(c.n, c.k).bits(); got != c.want {
			t.Errorf("%d of %d: %d bits, want %d", c.k, c.n, got, c.want)
		}
	}
	for k := 1; k < 4096; k += 13 {
		least := new(big.Float).SetInt(new(big.Int).Binomial(4096, int64(k)))
		log := float64(least.MantExp(nil))
		if got := float64(placesOf(4096, k).bits()); got < log-1 || k < 1024 && got > log+0.71*float64(k)+2 {
			t.Errorf("%d of 4096: %v bits, and %v are needed", k, got, log)
		}
	}
}
