package receipt

import (
	"testing"
)

func TestVerdict(t *testing.T) {
	for _, c := range [][3]string{{"worker_lied", "recomputed", "worker lied (recomputed)"}, {"moot", "", "moot"}} {
		if got := Verdict(c[0], c[1]); got != c[2] {
			t.Errorf("%q, wanted %q", got, c[2])
		}
	}
}
