package node

import (
	"testing"

	"github.com/starling-network/starling/node/benchmark/chain"
)

// The chain executes every commitment that is measured, and the same blocks to the same state when it is measured
// again.
func TestBenchChain(t *testing.T) {
	onlyLong(t)
	r, err := chain.Measure(t.Context(), chain.Options{Registered: []int{100, 500}, Blocks: 1,
		Random: chain.RandomOptions{Seeds: 1, Blocks: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Repeats || len(r.Table) != 2 || len(r.Bars) != 7 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Table {
		if c.PerSecond <= 0 || c.Slowest <= 0 {
			t.Errorf("%+v", c)
		}
	}
	for _, b := range r.Bars[5:] {
		if !b.Holds {
			t.Errorf("%+v", b)
		}
	}
	t.Logf("%+v", r)
}
