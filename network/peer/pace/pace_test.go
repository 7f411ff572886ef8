package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// path is a bottleneck with a queue of 300 ms and 256 KiB, and a sender that always has something to send, and waits
// when the queue is full.
type path struct {
	capacity float64 // bytes a second
	trip     time.Duration
	jitter   time.Duration // added at random
	spikes   int           // one message in so many is late by 100 ms, for a reason other than a queue
	late     time.Duration // every message is, for such a reason, with as much again at random

	now           time.Duration
	sent, arrived float64
}

// drive sends for a time, as fast as the pace says, with a control message after every answer and at least every 20 ms.
// It returns the round trips and the share of the path that was used.
func (x *path) drive(p *Pace, length time.Duration) (trips []time.Duration, used float64) {
	random := rand.New(rand.NewPCG(1, 1))
	late := func() time.Duration {
		if x.late == 0 {
			return 0
		}
		return x.late + time.Duration(random.Int64N(int64(x.late)))
	}
	end, before := x.now+length, x.arrived
	for n := 1; x.now < end; n++ {
		queue := time.Duration((x.sent - x.arrived) / x.capacity * float64(time.Second))
		trip := x.trip + queue + late()
		if x.jitter > 0 {
			trip += time.Duration(random.Int64N(int64(x.jitter)))
		}
		if x.spikes > 0 && n%x.spikes == 0 {
			trip += 100 * time.Millisecond
		}
		step := max(trip, time.Millisecond)
		if !p.Starting {
			step = max(step, 20*time.Millisecond)
		}
		x.now += step
		x.sent += min(p.Rate*step.Seconds(), x.arrived+x.capacity*(step.Seconds()+0.3)+256<<10-x.sent)
		x.arrived = min(x.sent, x.arrived+x.capacity*step.Seconds())
		p.Sample(Echo{At: x.now, Trip: trip, Sent: uint64(x.sent), Arrived: uint64(x.arrived)})
		trips = append(trips, trip)
		if p.Unsure() {
			x.now += queue + 3*(x.trip+late())
			x.arrived = x.sent
			p.Unloaded(x.now, x.trip+min(late(), late(), late()))
		}
	}
	return trips, (x.arrived - before) / x.capacity / length.Seconds()
}

func percentile(trips []time.Duration, share float64) time.Duration {
	s := slices.Sorted(slices.Values(trips))
	return s[int(share*float64(len(s)-1))]
}

// TestPace drives paths of the internet: control messages stay near their round trip on an empty path, and most of the
// path is used.
func TestPace(t *testing.T) {
	for name, x := range map[string]path{
		"home uplink":   {capacity: 2.5e6, trip: 30 * time.Millisecond, jitter: 4 * time.Millisecond},
		"100 Mbit/s":    {capacity: 12.5e6, trip: 40 * time.Millisecond, jitter: 4 * time.Millisecond},
		"long and fat":  {capacity: 125e6, trip: 150 * time.Millisecond, jitter: 10 * time.Millisecond},
		"spiky":         {capacity: 12.5e6, trip: 40 * time.Millisecond, spikes: 7},
		"modem":         {capacity: 100e3, trip: 100 * time.Millisecond},
		"local network": {capacity: 118e6, trip: 300 * time.Microsecond},
	} {
		p := New()
		x.drive(p, time.Minute) // the start, in which it looks for the capacity
		quiet := x.trip + x.jitter
		if x.spikes > 0 {
			quiet += 100 * time.Millisecond
		}
		trips, used := x.drive(p, 2*time.Minute)
		worst := percentile(trips, 0.99)
		t.Logf("%s: p50 %v, p99 %v, %.0f %% used", name, percentile(trips, 0.5), worst, used*100)
		if bound := max(2*quiet, quiet+25*time.Millisecond); worst > bound {
			t.Errorf("%s: p99 of control messages is %v, %v on an empty path", name, worst, quiet)
		}
		if used < 0.75 {
			t.Errorf("%s: %.2f of the path is used", name, used)
		}
	}
}

// TestPaceOfMemory drives a path that is never full, such as loopback: what is late for other reasons does not slow it
// down.
func TestPaceOfMemory(t *testing.T) {
	p := New()
	x := path{capacity: 2e9, trip: 100 * time.Microsecond, spikes: 5}
	x.drive(p, 300*time.Millisecond)
	if p.Rate < 1e9 {
		t.Errorf("after 300 ms the pace is %.0f MB/s", p.Rate/1e6)
	}
}

// TestPaceOfBusyMachine drives paths between machines whose processors others use, so that every message is late by
// more than a delay that shows a queue: most of the path is used all the same.
func TestPaceOfBusyMachine(t *testing.T) {
	for name, x := range map[string]path{
		"loopback":      {capacity: 2e9, trip: 100 * time.Microsecond},
		"local network": {capacity: 118e6, trip: 300 * time.Microsecond},
		"100 Mbit/s":    {capacity: 12.5e6, trip: 40 * time.Millisecond},
	} {
		for _, late := range []time.Duration{10, 30, 100} {
			p := New()
			x.drive(p, time.Second) // a message comes in time
			x.late = late * time.Millisecond
			_, used := x.drive(p, 20*time.Second)
			t.Logf("%s, late by %v: %.0f %% used", name, x.late, used*100)
			if used < 0.6 {
				t.Errorf("%s, late by %v: %.2f of the path is used", name, x.late, used)
			}
		}
	}
}

// TestPaceFollows cuts the capacity of a path to a tenth and gives it back.
func TestPaceFollows(t *testing.T) {
	p := New()
	x := path{capacity: 10e6, trip: 50 * time.Millisecond}
	x.drive(p, 20*time.Second)
	x.capacity = 1e6
	x.drive(p, 15*time.Second)
	if p.Rate > 1.3e6 {
		t.Errorf("the pace is %.1f MB/s on a path of 1 MB/s", p.Rate/1e6)
	}
	x.capacity = 10e6
	x.drive(p, 70*time.Second)
	if p.Rate < 7e6 {
		t.Errorf("the pace is %.1f MB/s on a path of 10 MB/s", p.Rate/1e6)
	}
}

// A peer that answers nonsense gets some pace, and no other effect.
func FuzzPace(f *testing.F) {
	f.Add(uint64(1e6), uint64(1e6), int64(1e6), int64(1e9))
	f.Add(uint64(0), uint64(math.MaxUint64), int64(0), int64(1))
	f.Fuzz(func(t *testing.T, sent, arrived uint64, trip, step int64) {
		if trip < 0 || step <= 0 || step > int64(time.Hour) {
			return
		}
		p := New()
		for n := range uint64(20) {
			p.Sample(Echo{At: time.Duration(step * int64(n+1)), Trip: time.Duration(trip), Sent: sent * n,
				Arrived: arrived * (n % 3)})
			if !(p.Rate >= paceLeast) || math.IsInf(p.Rate, 0) {
				t.Fatalf("pace of %v", p.Rate)
			}
		}
	})
}
