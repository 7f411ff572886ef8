package link

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	l, err := Parse("up=8,latency=20ms,loss=0.5")
	if want := (Link{Latency: 20 * time.Millisecond, Up: 1e6, Down: Profiles["home"].Down, Loss: 0.5}); err != nil ||
		l != want {
		t.Errorf("%+v, %v; want %+v", l, err, want)
	}
	l, err = Parse("jitter=3ms,noise=0.25")
	want := Profiles["home"]
	if want.Jitter, want.Noise = 3*time.Millisecond, 0.25; err != nil || l != want {
		t.Errorf("%+v, %v; want %+v", l, err, want)
	}
	if l, err := Parse("jitter=0s"); err != nil || l.Jitter != 1 {
		t.Errorf("without jitter: %+v, %v", l, err)
	}
	for _, l := range Profiles {
		l.Loss, l.Noise, l.Jitter = 0.01, 0.5, time.Millisecond
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Errorf("%v is read as %+v: %v", l, again, err)
		}
	}
	if l, err := Parse("metro"); err != nil || l != Profiles["metro"] {
		t.Errorf("%+v, %v", l, err)
	}
	for _, text := range []string{"", "moon", "up", "up=0", "up=-1", "up=NaN", "down=1e9", "latency=5", "latency=-1s",
		"loss=1", "loss=NaN", "loss=-0.1", "up=1,,", "jitter=-1s", "jitter=5", "noise=1", "noise=-0.1", "noise=NaN"} {
		if _, err := Parse(text); !errors.Is(err, ErrLink) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The same seed gives the same noise, within its bounds; a link without noise draws nothing.
func TestNoise(t *testing.T) {
	l := Link{Latency: time.Second, Jitter: time.Millisecond, Up: 100, Noise: 0.5}
	a, b, c := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	least, most := 100.0, 0.0
	for range 1000 {
		x := l.Noisy(a, l.Up)
		if y := l.Noisy(b, l.Up); x != y || x > 100 || x <= 50 {
			t.Fatalf("%v and %v", x, y)
		}
		least, most = min(least, x), max(most, x)
	}
	if least > 52 || most < 98 {
		t.Errorf("rates lie between %v and %v", least, most)
	}
	if (Link{}).Noisy(c, 7) != 7 || c.Uint64() != rand.New(rand.NewPCG(1, 1)).Uint64() {
		t.Error("a link without noise draws")
	}
	for range 1000 {
		if d := l.Delay(a, 0); d < time.Second || d > time.Second+time.Millisecond {
			t.Fatal(d)
		}
	}
}
