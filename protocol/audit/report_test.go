package audit

import (
	"math"
	"math/big"
	"testing"

	"github.com/starling-network/starling/canon"
)

// A seal of a finding is that of one verifier, of one audit, of one finding and under one salt.
func TestSealOfAFindingBindsAllOfIt(t *testing.T) {
	f, salt := Finding{DistancePPM: 880, CosinePPM: 999_990, End: canon.Sum("end")}, Salt(canon.Sum("secret"), vic)
	seen := map[canon.Digest]bool{f.Seal(vic, salt): true}
	for name, seal := range map[string]canon.Digest{
		"another verifier": f.Seal(Subject{"v", vic.Job, 1, 2, 3, 0}, salt),
		"another attempt":  f.Seal(Subject{vic.Verifier, vic.Job, 1, 2, 4, 0}, salt),
		"another distance": Finding{881, f.CosinePPM, f.End}.Seal(vic, salt),
		"another cosine":   Finding{f.DistancePPM, 999_989, f.End}.Seal(vic, salt),
		"another end":      Finding{f.DistancePPM, f.CosinePPM, canon.Sum("other")}.Seal(vic, salt),
		"another salt":     f.Seal(vic, Salt(canon.Sum("other"), vic)),
	} {
		if seen[seal] {
			t.Errorf("%s: the seal is the same", name)
		}
		seen[seal] = true
	}
}

func TestDeposit(t *testing.T) {
	for _, c := range []struct {
		price uint64
		rate  uint32
		want  uint64
	}{{0, Certain, 0}, {100, 0, 0}, {27, Certain, 64}, {27, 500_000, 129}, {math.MaxUint64, 1000, math.MaxUint64},
		{5, 1, math.MaxUint64}} {
		if got := Deposit(c.price, c.rate); got != c.want {
			t.Errorf("Deposit(%d, %d) = %d, want %d", c.price, c.rate, got, c.want)
		}
	}
}

// A tolerant faker has m faked units in a round, after any honest history, a quarter of all draws falls on its
// accomplices, and each accomplice in a panel saves its deposit, and where it is alone its pay. Its best expected gain
// is below zero for every m, at every rate that the rules allow: so is that of every sequence of such rounds, and
// under other names. The pay of a unit that two of the panel find outside is not counted as lost.
func TestNoStrategyOfATolerantFakerGainsAgainstTheDeposit(t *testing.T) {
	for _, price := range []uint64{1, 59_000, 1 << 40} {
		for _, rate := range []uint32{TolerantPPM, 700_000, Certain} {
			honest := big.NewRat(Certain-CollusionPPM, Certain)
			found := big.NewRat(int64(rate), Certain)
			for range Panel {
				found.Mul(found, honest)
			}
			missed := new(big.Rat).Sub(big.NewRat(1, 1), found)
			deposit := new(big.Rat).SetInt(new(big.Int).SetUint64(Deposit(price, rate)))
			all := big.NewRat(1, 1)
			for m := int64(1); m <= 64; m++ {
				all.Mul(all, missed)
				gain := new(big.Rat).Mul(all, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(m), new(big.Int).SetUint64(price))))
				lost := new(big.Rat).Mul(new(big.Rat).Sub(big.NewRat(1, 1), all), deposit)
				if gain.Cmp(lost) >= 0 {
					t.Fatalf("price %d, rate %d, %d units: gains %v, loses %v", price, rate, m, gain.FloatString(3),
						lost.FloatString(3))
				}
			}
		}
	}
}
