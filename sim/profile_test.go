package sim

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/starling-network/starling/network/tally"
)

func TestParseLink(t *testing.T) {
	l, err := ParseLink("up=8,latency=20ms,loss=0.5")
	if want := (Link{Latency: 20 * time.Millisecond, Up: 1e6, Down: Profiles["home"].Down, Loss: 0.5}); err != nil ||
		l != want {
		t.Errorf("%+v, %v; want %+v", l, err, want)
	}
	if l, err := ParseLink("metro"); err != nil || l != Profiles["metro"] {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{"", "moon", "up", "up=0", "up=-1", "up=NaN", "down=1e9", "latency=5", "latency=-1s",
		"loss=1", "loss=NaN", "loss=-0.1", "up=1,,"} {
		if _, err := ParseLink(text); !errors.Is(err, ErrLink) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A machine sends one blob after the other, and receives so.
func TestTransfersWaitForOneAnother(t *testing.T) {
	w := &Network{random: rand.New(rand.NewPCG(1, 1))}
	machine := func(up, down float64) *process {
		return &process{link: Link{Up: up, Down: down}, line: &tally.Line{}, delivered: map[string]*tally.Peer{}}
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
		w.clock.start(func() {
			if err := w.transfer(x.from, x.to, x.bytes); err != nil || w.clock.now.Seconds() != x.seconds {
				t.Errorf("transfer %d takes %v, not %v s: %v", i, w.clock.now, x.seconds, err)
			}
			over++
		})
	}
	for w.clock.step() {
	}
	if over != 4 {
		t.Errorf("%d transfers are over", over)
	}
}
