package bench

import (
	"bytes"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/strategies"
	"github.com/starling-network/starling/node/compat"
)

// A part that was not played is not shown as zero.
func TestStrategiesWithoutACrowd(t *testing.T) {
	for crowd, want := range map[*strategies.ScaleRow]bool{nil: false, {Runs: 625}: true} {
		var b bytes.Buffer
		if err := printStrategies(&b, &strategies.Result{Note: "losses: none", ScaleModel: crowd}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "losses: none") || strings.Contains(b.String(), "modelled workers") != want {
			t.Errorf("of the crowd %v:\n%s", crowd, b.String())
		}
	}
}

// A figure that a bench could not measure is no zero.
func TestBenchAllNamesWhatIsMissing(t *testing.T) {
	var shown strings.Builder
	err := printBenches(&shown, "table", []benchmark.Done{{Name: "compat",
		Bars: []compat.Bar{{Name: "findings", Bar: 1, Missing: "a browser"}}}})
	if err != nil || !strings.Contains(shown.String(), "missing: a browser") {
		t.Errorf("%v: %s", err, shown.String())
	}
}
