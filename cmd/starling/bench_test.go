package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
)

// What was not played is not shown as nothing.
func TestStrategiesWithoutACrowd(t *testing.T) {
	for runs, want := range map[int]bool{0: false, 625: true} {
		var b bytes.Buffer
		if err := printStrategies(&b, &benchmark.StrategiesResult{Note: "losses: none", Crowd: benchmark.CrowdRow{Runs: runs}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "losses: none") || strings.Contains(b.String(), "modelled workers") != want {
			t.Errorf("of a crowd of %d runs:\n%s", runs, b.String())
		}
	}
}
