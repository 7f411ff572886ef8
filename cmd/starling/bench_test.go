package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/bench"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/strategies"
)

// Every measurement can be had in less than a minute.
func TestEveryBenchIsQuick(t *testing.T) {
	for _, cmd := range bench.Command(new(terminal.Console)).Commands() {
		if f := cmd.Flags().Lookup("quick"); f == nil || f.Usage != "take less than a minute" {
			t.Errorf("%s has no --quick", cmd.Name())
		}
	}
	if !*long {
		return
	}
	for _, args := range [][]string{{"matmul"}, {"train", "--preset", "llama-10m"}, {"generate", "--preset", "llama-10m"},
		{"operations"}} {
		if code, stdout, stderr := starling(t,
			append(append([]string{"bench"}, args...), "--quick", "-o", "json")...); code != 0 || len(stdout) == 0 {
			t.Errorf("%v: exit %d\n%s", args, code, stderr)
		}
	}
}

// Each bench runs in a process of its own; one that fails keeps no other from running, and gives all its exit code.
func TestBenchAll(t *testing.T) {
	onlyLong(t)
	code, stdout, stderr := starling(t, "bench", "all", "--quick", "--only", "matmul,operations", "-o", "json")
	var all struct {
		Benches []struct {
			Name   string
			Report map[string]any
		}
	}
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if b := all.Benches; len(b) != 2 || b[0].Name != "matmul" || b[0].Report["gflops"] == nil ||
		b[1].Name != "operations" {
		t.Errorf("%s", stdout)
	}
	if code, _, stderr := starling(t, "bench", "all", "--only", "weather"); code != 2 || !strings.Contains(stderr,
		"weather") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// A part that was not played is not shown as zero.
func TestStrategiesWithoutACrowd(t *testing.T) {
	for crowd, want := range map[*strategies.ScaleRow]bool{nil: false, {Runs: 625}: true} {
		var b bytes.Buffer
		if err := bench.PrintStrategies(&b, &strategies.Result{Note: "losses: none", ScaleModel: crowd}); err != nil {
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
	err := bench.PrintBenches(&shown, "table", []benchmark.Done{{Name: "compat",
		Bars: []benchmark.OptionalBar{{Name: "findings", Bar: 1, Missing: "a browser"}}}})
	if err != nil || !strings.Contains(shown.String(), "missing: a browser") {
		t.Errorf("%v: %s", err, shown.String())
	}
}
