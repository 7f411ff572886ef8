package tally

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWaits(t *testing.T) {
	const trip, second = 10 * time.Millisecond, time.Second
	for name, c := range map[string]struct {
		bytes      int
		took, trip time.Duration
		timed      bool
	}{
		"a long one":                       {4 << 20, second, trip, true},
		"of few bytes":                     {1<<20 - 1, second, trip, false},
		"of few round trips":               {4 << 20, 319 * time.Millisecond, trip, false},
		"of just enough":                   {1 << 20, 320 * time.Millisecond, trip, true},
		"of who does not answer":           {4 << 20, 7 * second, 0, false},
		"of who does not answer, for long": {4 << 20, 8 * second, 0, true},
		"of who says that it is far away":  {4 << 20, 8 * second, time.Hour, true},
	} {
		var l Line
		var p Peer
		l.Begin(&p, time.Hour)
		l.Begin(&p, time.Hour) // by two
		l.Add(&p, c.bytes)
		l.End(&p, time.Hour+c.took/2, c.trip)
		l.End(&p, time.Hour+c.took, c.trip)
		want := Reading{Bytes: uint64(c.bytes)}
		if c.timed {
			want.Timed, want.Waited = want.Bytes, c.took
		}
		if got := l.Read(&p); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// Over a line of 100 bytes a second, of which each of two has half while both deliver, the fast one is measured at the
// whole, and the slow one, for which alone one waits in the end, at little more than it gives.
func TestLast(t *testing.T) {
	l := Line{Any: true}
	var fast, slow Peer
	l.Begin(&fast, 0)
	l.Begin(&slow, 0)
	l.Add(&fast, 100)
	l.End(&fast, 2*time.Second, 0)
	l.Add(&slow, 100)
	l.End(&slow, 10*time.Second, 0)
	if got, want := l.Read(&fast), (Reading{100, 100, time.Second}); got != want {
		t.Errorf("the fast one: %+v, want %+v", got, want)
	}
	if got, want := l.Read(&slow), (Reading{100, 100, 9 * time.Second}); got != want {
		t.Errorf("the slow one: %+v, want %+v", got, want)
	}
}

// However waits overlap, their times add up to the time in which a caller waited, except for rounding, and no peer is
// charged for longer than callers waited for it.
func FuzzShares(f *testing.F) {
	f.Add(uint64(1), uint8(20))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		x := rand.New(rand.NewPCG(seed, 0))
		l := Line{Any: true}
		var peers [5]Peer
		var waits [5]int
		var own [5]time.Duration
		var now, somebody time.Duration
		pass := func(d time.Duration) {
			somewhere := false
			for i := range waits {
				if waits[i] > 0 {
					own[i] += d
					somewhere = true
				}
			}
			if now += d; somewhere {
				somebody += d
			}
		}
		for range steps {
			pass(time.Duration(x.Int64N(int64(time.Second))))
			if i := x.IntN(len(peers)); waits[i] > 0 && x.IntN(2) == 0 {
				waits[i]--
				l.End(&peers[i], now, 0)
			} else {
				waits[i]++
				l.Begin(&peers[i], now)
				l.Add(&peers[i], 1)
			}
		}
		pass(time.Second)
		var sum time.Duration
		for i := range peers {
			for ; waits[i] > 0; waits[i]-- {
				l.End(&peers[i], now, 0)
			}
			r := l.Read(&peers[i])
			if sum += r.Waited; r.Waited > own[i] || r.Timed != r.Bytes {
				t.Fatalf("peer %d: %+v, waited for %v", i, r, own[i])
			}
		}
		if lost := somebody - sum; lost < 0 || lost > time.Duration(int(steps)+1)*time.Duration(len(peers)*len(peers)) {
			t.Fatalf("somebody waited for %v, the peers are charged %v", somebody, sum)
		}
	})
}
