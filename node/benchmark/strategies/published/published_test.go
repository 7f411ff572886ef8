package published

import (
	"math"
	"testing"
)

// The published tables follow from the formulas, to a step of the grid, with any arguments.
func TestPublishedUtilisation(t *testing.T) {
	if n, same, away := BandwidthSteps(); n != 75 || same < 50 || away > 1 {
		t.Errorf("of %d entries %d are the same, the worst %v steps away", n, same, away)
	}
	if p := IntellectPoints(); !(p < 0.5) {
		t.Errorf("INTELLECT-1: %v points away", p)
	}
	one := layered{layers: 1, step: 3, bits: 30, steps: 10, fragments: 1}
	if u := one.utilisation(10); math.Abs(u-30./33) > 1e-12 {
		t.Errorf("one layer waits for all of its exchange: %v", u)
	}
	if one.delay = 3; one.utilisation(10) != 1 {
		t.Errorf("an exchange that has the time of a step: %v", one.utilisation(10))
	}
}
