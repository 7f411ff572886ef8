package node

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/benchmark/transfer"
	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/link"
)

// Under virtual time, with the protocol and the roles as they are, rounds take as long as the formula says, also where
// the exchange is most of it.
func TestBenchRound(t *testing.T) {
	onlyLong(t)
	short := forecast.Round{Workers: 8, Verifiers: 1, Inner: 30 * time.Second, Finish: time.Second,
		Combine: 2 * time.Second, Update: 5.5e6, Block: 2 * time.Second,
		Link: link.Link{Latency: 100 * time.Millisecond, Up: 11.5e6, Down: 11.5e6}}
	few := short
	few.Workers, few.Inner = 4, 10*time.Second
	for _, r := range []forecast.Round{few, short} {
		played, err := transfer.Utilisation(t.Context(), r, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v in inner steps of %d workers: formula %.4f, virtual time %.4f", r.Inner, r.Workers,
			r.Utilisation(), played)
		if math.Abs(played-r.Utilisation()) > 0.03 {
			t.Errorf("more than 3 points apart")
		}
	}
}

// TestBenchNetwork checks that everything is measured, not how fast it is, except under virtual time: there units of
// two minutes take as long as the formula says. A slow machine would take more, and a block is made in each second of
// it.
func TestBenchNetwork(t *testing.T) {
	onlyLong(t)
	r, err := transfer.Measure(t.Context(), transfer.Options{Bytes: 4 * blob.LeafBytes, Repeat: 1,
		Link: 200 * time.Millisecond, Training: 2, Inner: 2 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Bars) != 9 || len(r.MBps) != 4 || len(r.Control) != 6 {
		t.Fatalf("measured: %+v", r)
	}
	for _, b := range r.Bars {
		if b.Value <= 0 || b.Name == "" || b.Bar <= 0 {
			t.Errorf("bar %+v", b)
		}
		if strings.HasPrefix(b.Name, "between that and the formula") && !b.Holds {
			t.Errorf("%+v", b)
		}
	}
	for name, ms := range r.Control {
		if ms < 40 {
			t.Errorf("%s: a round trip of %v ms on a link of 40", name, ms)
		}
	}
}

func BenchmarkNetwork(b *testing.B) {
	for b.Loop() {
		r, err := transfer.Measure(b.Context(), transfer.Quick)
		if err != nil {
			b.Fatal(err)
		}
		for name := range r.MBps {
			unit := strings.ReplaceAll(name, ", ", "-") // without a space, which no unit may have
			b.ReportMetric(r.MBps[name], unit+"-MB/s")
			b.ReportMetric(r.CPU[name], unit+"-MB/cpu-s")
		}
	}
}
