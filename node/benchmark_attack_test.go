package node

import (
	"testing"
	"time"

	"github.com/starling-network/starling/node/benchmark/attack"
	"github.com/starling-network/starling/node/benchmark/flood"
)

// A small measurement of everything: the counts are there, and all bars that do not depend on the machine are met.
func TestBenchAttack(t *testing.T) {
	onlyLong(t)
	r, err := attack.Measure(t.Context(), attack.Options{
		Seeds: 1, Mixes: 2, First: 1, Rounds: 10,
		Flood:        flood.Flood{Orders: 200, Pools: 40, Disputes: 30, Free: 500, Asking: 1, Blocks: 8},
		HostilePeers: attack.HostilePeers{Peers: 10, Streams: 4, Round: time.Second, Rounds: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Bars {
		t.Logf("%s: %g of %g: %t", b.Name, b.Value, b.Bar, b.Holds)
	}
	for _, p := range r.Plans {
		t.Logf("%+v", p)
		if p.Honest == 0 || p.Attested+p.Final > 0 || p.Convicted > 0 && p.Faked >= 0 {
			t.Errorf("%+v", p)
		}
	}
	t.Logf("%+v, %+v, %+v, %g s", r.Mixes, r.Overhead, *r.Flood, r.Seconds)
	if m := r.Mixes; m.Played != 2 || len(m.Wronged)+len(m.Broken) > 0 {
		t.Errorf("mixes: %+v", m)
	}
	if f := r.Flood; f.Moves == 0 || f.Free == 0 || f.Asked == 0 || f.Quiet < 0.5 {
		t.Errorf("flood: %+v", f)
	}
	if o := r.Overhead; o.Units < 10_000 || o.Looked == 0 || len(r.Bars) != 11 {
		t.Errorf("%d bars; overhead: %+v", len(r.Bars), o)
	}
}
