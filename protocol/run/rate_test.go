package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Members keep the rate that they had when they took their seat, and the first round is dealt by it. A run of earlier
// rules stores no rate of members that join.
func TestSeatsHaveRates(t *testing.T) {
	members := newMembers(3, 1)
	for i := range members {
		if members[i].Role == crew.Worker {
			members[i].Rate = 1 << (20 + members[i].ID[1] - '0')
		}
	}
	terms := newTerms()
	terms.Units = 14
	g := begin(t, terms, members)
	g.tick(1)
	if a, b, c := len(g.s.Work("w0")), len(g.s.Work("w1")), len(g.s.Work("w2")); a != 2 || b != 4 || c != 8 {
		t.Errorf("workers of one rate, twice and four times that have %d, %d and %d units", a, b, c)
	}
	for rules := range progress.NewestRules + 1 {
		s := g.s
		s.Rules = rules
		s, _, err := s.Join(transition.Env{Height: 50}, []crew.Member{{ID: "late", Role: crew.Worker, Rate: 77}})
		if err != nil {
			t.Fatal(err)
		}
		if m, _ := s.Member("late"); (m.Rate == 77) != (rules >= progress.RatesCount) {
			t.Errorf("rules %d: %+v", rules, m)
		}
	}
}
