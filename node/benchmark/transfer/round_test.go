package transfer

import (
	"math"
	"testing"
	"time"

	"github.com/starling-network/starling/sim/forecast"
)

// Under virtual time, with the protocol and the roles as they are, rounds take as long as the formula says: when a unit
// takes minutes, and when the exchange is most of it; and a worker that fails costs little more than it is away for.
func TestRound(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	slow := forecast.Round{Workers: 8, Verifiers: 1, Inner: 480 * time.Second, Finish: time.Second,
		Combine: 2 * time.Second,
		Update:  11e6, Link: roundLink, Block: 5 * time.Second}
	short := slow
	short.Inner, short.Update, short.Block = 30*time.Second, 5.5e6, 2*time.Second
	few := short
	few.Workers, few.Inner = 4, 10*time.Second
	whole := slow
	whole.Block = time.Second
	for _, r := range []forecast.Round{few, short, whole} {
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
	// The worker also loses its work since the last draft, and the others wait for it.
	p, _, err := play(t.Context(), slow, 7, 0, roundFails)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("one fails: %.4f", p.utilisation)
	if lost := slow.Utilisation()/p.utilisation - 1; lost <= 0 ||
		lost > 2*(roundFails.away+30*time.Second).Seconds()/(3*slow.Inner).Seconds() {
		t.Errorf("a failing worker takes %.3f of the time", lost)
	}
}
