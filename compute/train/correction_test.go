package train

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/train/schedule"
)

// power is beta^t as it is specified: multiplied t times.
func power(beta float64, t uint32) float64 {
	p := 1.0
	for range t {
		p *= beta
	}
	return p
}

func TestCorrectionStopsWhereThePowerDoes(t *testing.T) {
	for _, beta := range []float64{0, 0.1, 0.5, 0.9, 0.95, 0.999} {
		for _, n := range []uint32{1, 2, 10, 1000, 30_000, 1_000_000} {
			if got, want := schedule.Correction(beta, n), float32(1/(1-power(beta, n))); got != want {
				t.Errorf("schedule.Correction(%v, %d) = %v, wanted %v", beta, n, got, want)
			}
		}
	}
	begin := time.Now()
	for range 1000 {
		if c := schedule.Correction(1, math.MaxUint32); !math.IsInf(float64(c), 1) {
			t.Fatal(c)
		}
		if c := schedule.Correction(0.5, math.MaxUint32); c != 1 {
			t.Fatal(c)
		}
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("%v for 2000 corrections that have an end", took)
	}
}

func TestMomentsThatLastTooLongAreRefused(t *testing.T) {
	s := &Spec{Steps: 1 << 16, Exchange: Exchange{Moments: true, Carry: 256}}
	if err := wrap(s.Exchange.Check(s.Units, s.Steps)); !errors.Is(err, ErrSpec) {
		t.Errorf("moments through %d steps: %v", 1<<24, err)
	}
	s.Exchange.Carry = 16
	if err := wrap(s.Exchange.Check(s.Units, s.Steps)); err != nil {
		t.Error(err)
	}
}
