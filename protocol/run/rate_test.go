package run

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
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
	all := newTerms()
	all.Units = 14
	g := begin(t, all, members)
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

// A worker that leaves a run of stages, and comes back, has the rate that the rounds have found, and not again the one
// that the registry has: else it slows rounds as often as it likes. Elsewhere rates are not corrected.
func TestWhoComesBackHasTheRateThatWasFound(t *testing.T) {
	for rules, want := range map[progress.Rules]uint64{progress.StagesBySpeed: 5, progress.ReportsExtend: 1 << 40} {
		for _, all := range []terms.Terms{inStages(), newTerms()} {
			s, err := New(all, newMembers(6, 2), 0)
			if err != nil {
				t.Fatal(err)
			}
			s.Rules = rules
			i, _ := s.Index("w0")
			s.Members[i].Rate, s.Members[i].Active, s.Members[i].Why = 5, false, reason.Left
			s, _, err = s.Join(transition.Env{Height: 50}, []crew.Member{{ID: "w0", Role: crew.Worker, Rate: 1 << 40}})
			if err != nil {
				t.Fatal(err)
			}
			if len(all.Pipeline.Flops) == 0 {
				want = 1 << 40
			}
			if m, _ := s.Member("w0"); m.Rate != want {
				t.Errorf("rules %d, %d stages: a rate of %d, wanted %d", rules, len(all.Pipeline.Flops), m.Rate, want)
			}
		}
	}
}
