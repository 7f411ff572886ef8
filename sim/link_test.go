package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/network/tally"
	"github.com/starling-network/starling/sim/link"
)

// A machine sends one blob after the other, and receives so.
func TestTransfersWaitForOneAnother(t *testing.T) {
	w := &Network{random: rand.New(rand.NewPCG(1, 1))}
	machine := func(up, down float64) *process {
		return &process{link: link.Link{Up: up, Down: down}, line: &tally.Line{}, delivered: map[string]*tally.Peer{}}
	}
	a, b, c, d := machine(100, 100), machine(1000, 50), machine(1000, 1000), machine(1000, 1000)
	over := 0
	for i, x := range []struct {
		from, to *process
		bytes    int
		seconds  float64
	}{
		{a, b, 100, 2},  // as slow as the way down of b
		{a, c, 100, 2},  // after the first has left a
		{c, b, 50, 3},   // after the first has reached b
		{c, d, 0, 0.05}, // after the last has left c
	} {
		w.clock.Start(func() {
			if err := w.transfer(x.from, x.to, x.bytes); err != nil || w.clock.Now.Seconds() != x.seconds {
				t.Errorf("transfer %d takes %v, not %v s: %v", i, w.clock.Now, x.seconds, err)
			}
			over++
		})
	}
	for w.clock.Step() {
	}
	if over != 4 {
		t.Errorf("%d transfers are over", over)
	}
}
