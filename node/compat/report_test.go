package compat

import (
	"strings"
	"testing"
)

// What nothing is there to measure with does not hold, and says what is missing.
func TestWhatIsMissingDoesNotHold(t *testing.T) {
	r, tree := &Report{}, t.TempDir()
	if err := r.wallets(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if err := r.dashboard(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if len(r.Bars) != len(versions)+1 {
		t.Errorf("%d bars", len(r.Bars))
	}
	for _, b := range r.Bars {
		if b.Holds || b.Value != nil || !strings.Contains(b.Missing, "install") && !strings.Contains(b.Missing, "npm ci") {
			t.Errorf("%+v", b)
		}
	}
}
