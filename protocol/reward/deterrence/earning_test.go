package deterrence

import (
	"math"
	"testing"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/registry"
)

// farm is what an account is expected to gain that registered without a stake. A unit pays 1, and computing it costs
// its owner cost. Before its first unit the account computes one on trial, without pay. After n passed audits it
// holds n; it may take that out after as many audits as the rule says, and go. A lie saves the cost; an accomplice
// audits it with the probability that the rules allow for, else all is lost. lies says whether it may lie at a unit.
func farm(cost float64, units int, lies func(n int) bool, honest func(n int) bool) float64 {
	const accomplice = float64(audit.CollusionPPM) / 1e6
	needed := int(registry.DefaultEarning().Audits)
	after := 0.0
	for n := units; n >= 0; n-- {
		best := 0.0
		if n >= needed {
			best = float64(n)
		}
		if n < units {
			if honest(n) {
				best = max(best, after-cost)
			}
			if lies(n) {
				best = max(best, accomplice*after)
			}
		}
		after = best
	}
	return after - cost
}

// An account that computes nothing loses the unit on trial, and gains less in return, at any cost of a unit above a
// thousandth of its price. One that lies at some units gains no more than by computing all, or by staying away.
func TestFreshAccountsThatLieGainNothing(t *testing.T) {
	always, never := func(int) bool { return true }, func(int) bool { return false }
	for cost := 0.001; cost <= 1; cost += 0.001 {
		for _, units := range []int{8, 16, 200} {
			if got := farm(cost, units, always, never); got > 0 {
				t.Errorf("%d units that cost %v are lied about: gains %v", units, cost, got)
			}
			work := math.Max(0, farm(cost, units, never, always))
			for _, choice := range []struct {
				name string
				lies func(int) bool
			}{{"any", always}, {"the first", func(n int) bool { return n == 0 }},
				{"the last before it goes", func(n int) bool { return n == 7 }}} {
				honest := func(n int) bool { return choice.name == "any" || !choice.lies(n) }
				if got := farm(cost, units, choice.lies, honest); got > work+1e-9 {
					t.Errorf("%d units that cost %v, a lie at %s: %v, and %v for work", units, cost, choice.name, got, work)
				}
			}
		}
	}
}
