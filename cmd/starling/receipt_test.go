package main

import (
	"testing"

	"github.com/starling-network/starling/cmd/starling/receipt"
)

// A verdict is shown with its reason, if it has one.
func TestVerdict(t *testing.T) {
	for _, c := range [][3]string{{"worker_lied", "recomputed", "worker lied (recomputed)"}, {"moot", "", "moot"}} {
		if got := receipt.Verdict(c[0], c[1]); got != c[2] {
			t.Errorf("%q, wanted %q", got, c[2])
		}
	}
}
