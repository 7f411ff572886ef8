package learner

import (
	"math"
	"testing"

	"github.com/starling-network/starling/exchange/dpsgd"
)

// The noise of a plan is the least, in hundredths, that keeps its epsilon.
func TestLeastNoise(t *testing.T) {
	p := Plan{Terms: dpsgd.Terms{Clip: 1, Lot: 10}, Rounds: 10, Steps: 100}.For(2.1079, 1000, 1e-5) // of noise 1: 2.1078
	if p.Noise != 1 || p.at(99).Epsilon(1000, 1e-5) <= 2.1079 {
		t.Errorf("%+v", p)
	}
}

// The more a distribution is concentrated, the fewer digits an owner has.
func TestOwnersDiffer(t *testing.T) {
	count := func(alpha float64) (digits int) {
		for _, data := range Owners(alpha, Size{Owners: 20, Examples: 100}) {
			has := map[int]bool{}
			for _, e := range data {
				has[e.Digit] = true
			}
			digits += len(has)
		}
		return digits
	}
	if few, more := count(0.1), count(0.5); few > 100 || more < few+20 || more > 180 {
		t.Errorf("20 owners have %d and %d digits", few, more)
	}
}

// A model that tells members from others by chance has an area of one half.
func TestMembershipOfStrangers(t *testing.T) {
	m, err := New(1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Membership(Drawn(1, 300), Drawn(2, 300))
	if err != nil || math.Abs(a-0.5) > 0.07 {
		t.Errorf("%v, %v", a, err)
	}
	if a, err = m.Membership(Drawn(1, 100), Drawn(1, 100)); err != nil || math.Abs(a-0.5) > 0.01 {
		t.Errorf("of the same examples: %v, %v", a, err)
	}
}
