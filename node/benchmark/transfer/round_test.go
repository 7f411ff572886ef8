package transfer

import (
	"math"
	"testing"
	"time"

	"github.com/starling-network/starling/sim/forecast"
)

// Under virtual time, with the protocol and the roles as they are, rounds take as long as the formula says, also where
// the exchange is most of it.
func TestRound(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	short := forecast.Round{Workers: 8, Verifiers: 1, Inner: 30 * time.Second, Finish: time.Second,
		Combine: 2 * time.Second, Update: 5.5e6, Link: roundLink, Block: 2 * time.Second}
	few := short
	few.Workers, few.Inner = 4, 10*time.Second
	for _, r := range []forecast.Round{few, short} {
		p, _, err := play(t.Context(), r, 2, 0, failure{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v in inner steps of %d workers: formula %.4f, virtual time %.4f, %.0f bytes received", r.Inner, r.Workers,
			r.Utilisation(), p.utilisation, p.received)
		if math.Abs(p.utilisation-r.Utilisation()) > 0.03 {
			t.Errorf("more than 3 points apart")
		}
	}
}
