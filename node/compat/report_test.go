package compat

import (
	"strings"
	"testing"
)

// A check whose tool or files are missing does not hold, and its line names them.
func TestWhatIsMissingDoesNotHold(t *testing.T) {
	r, tree := &Report{}, t.TempDir()
	if err := r.wallets(t.Context(), tree, nil); err != nil {
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
