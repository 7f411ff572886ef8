package audit

import (
	"math"
	"math/big"
	"testing"
)

func TestBond(t *testing.T) {
	for _, c := range []struct {
		price uint64
		rate  uint32
		want  uint64
	}{{0, 100_000, 0}, {100, 0, 0}, {75, Certain, 100}, {3, 100_000, 40}, {1, 100_000, 14},
		{math.MaxUint64, 1, math.MaxUint64}} {
		if got := Bond(c.price, c.rate); got != c.want {
			t.Errorf("Bond(%d, %d) = %d, want %d", c.price, c.rate, got, c.want)
		}
	}
}

// A faker has m results open together at the floor of the rate, a quarter of its auditors are its own, and a conviction
// takes the bond and what is open. Its best expected gain is below zero, for every m that a window of rounds allows,
// exactly reckoned: so is that of any sequence of such steps, honest ones before them included, and of doing it again
// under new names.
func TestNoStrategyOfAFakerGainsAgainstTheBond(t *testing.T) {
	for _, price := range []uint64{1, 59_000, 1 << 40} {
		for _, rate := range []uint32{1, 1_000, 10_000, 50_000, 100_000, 200_000, 500_000, Certain} {
			caught := big.NewRat(int64(rate)*(Certain-CollusionPPM), Certain*Certain)
			missed := new(big.Rat).Sub(big.NewRat(1, 1), caught)
			bond := new(big.Rat).SetInt(new(big.Int).SetUint64(Bond(price, rate)))
			all := big.NewRat(1, 1) // missed^m
			for m := int64(1); m <= 64; m++ {
				all.Mul(all, missed)
				gain := new(big.Rat).Mul(all, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(m), new(big.Int).SetUint64(price))))
				lost := new(big.Rat).Mul(new(big.Rat).Sub(big.NewRat(1, 1), all), bond)
				if gain.Cmp(lost) >= 0 {
					t.Fatalf("price %d, rate %d, %d results open: gains %v, loses %v", price, rate, m, gain.FloatString(3),
						lost.FloatString(3))
				}
			}
		}
	}
}
