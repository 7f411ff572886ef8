package main

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/plan"
)

// A job that no offer matches now is no success.
func TestQuoteWithoutPlacement(t *testing.T) {
	for q, want := range map[*plan.Quote]int{
		nil: 0, {Matched: true}: 0, {Why: "conditions_unmet"}: 7, {Why: "too_few_workers"}: 7, {Why: "budget_below_round"}: 6,
	} {
		if err := quote.Placed(q); terminal.ExitCode(err) != want || want != 0 && terminal.Problems(err)[0].Why == "" {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// A plan says how much memory is left, or missing.
func TestRoom(t *testing.T) {
	for want, at := range map[string]*api.Placement{
		"":                       nil,
		"1.00 GB to spare of 3":  {MemoryBytes: 2e9, FreeBytes: 3e9, Fits: "yes"},
		"500 MB more than the 1": {MemoryBytes: 15e8, FreeBytes: 1e9, Fits: "no"},
		"is not known":           {MemoryBytes: 15e8, Fits: "unknown"},
	} {
		if got := quote.Room(at); !strings.Contains(got, want) || at == nil && got != "" {
			t.Errorf("%+v: %q lacks %q", at, got, want)
		}
	}
}
