package transfer

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
)

// TestNetwork checks that everything is measured, not how fast it is, except under virtual time: there units of two
// minutes take as long as the formula says. A slow machine would take more, and a block is made in each second of it.
func TestNetwork(t *testing.T) {
	if !*long {
		t.Skip("measured with -long")
	}
	r, err := Measure(t.Context(), Options{Bytes: 4 * blob.LeafBytes, Repeat: 1, Link: 200 * time.Millisecond,
		Training: 2, Inner: 2 * time.Minute})
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
		r, err := Measure(b.Context(), Quick)
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
