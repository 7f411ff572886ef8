package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
)

// tolerant is a network whose workers compute with stacks of their own.
func tolerant(t *testing.T) Config {
	c := small(t)
	c.Verifiers = 4
	c.Tolerance = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	c.Acts = map[string]adversary.Attack{}
	for i, name := range c.Names()[:c.Workers] {
		c.Acts[name] = adversary.NondeterministicStack{Bits: 6 + i}
	}
	return c
}

// In a tolerant run honest noise passes; work outside the tolerance is withheld, and costs a deposit. No worker is
// convicted for that, but a liar may get an exact attempt, and is slashed if it lies there too.
func TestTolerantStories(t *testing.T) {
	for _, s := range []struct {
		name   string
		who    string
		act    adversary.Attack
		unpaid []string
		out    []string
		lies   bool // in exact attempts too
		loses  bool // a deposit, and nothing else
		second bool // found where a second verifier is drawn: in one of ten networks at least
		long   bool // played with -long only
	}{
		{name: "every worker has a stack of its own", long: true},
		{name: "one worker has none", long: true, who: w1, act: adversary.Equivocates{TrueFirst: true}},
		{name: "skips its work", who: w1, act: adversary.Skips{}, unpaid: []string{w1}, out: []string{w1}, lies: true},
		{name: "trains fewer steps", long: true,
			who: w1, act: adversary.TrainsLess{Steps: 3}, unpaid: []string{w1}, out: []string{w1},
			lies: true},
		{name: "trains on other data", long: true,
			who: w1, act: adversary.WrongData{}, unpaid: []string{w1}, out: []string{w1},
			lies: true},
		{name: "trains at another rate", long: true, who: w1, act: adversary.WrongRate{Factor: 1.5}, unpaid: []string{w1},
			out: []string{w1}, lies: true},
		{name: "trains at nearly the right rate", long: true, who: w1, act: adversary.WrongRate{Factor: 1.01}, lies: true},
		{name: "copies an update and changes it", long: true, who: w1, act: adversary.CopiesChanged{}, unpaid: []string{w1},
			out: []string{w1}, lies: true},
		{name: "poisons its update", long: true,
			who: w1, act: adversary.Poisons{Factor: -10}, unpaid: []string{w1}, out: []string{w1},
			lies: true},
		{name: "poisons its update a little", long: true,
			who: w1, act: adversary.Poisons{Factor: 1.2}, unpaid: []string{w1},
			out: []string{w1}, lies: true},
		{name: "its stack has too few bits", long: true,
			who: w1, act: adversary.NondeterministicStack{Bits: 21}, unpaid: []string{w1},
			out: []string{w1}, loses: true},
		{name: "commits and goes silent", long: true,
			who: w1, act: adversary.GoesSilent{}, unpaid: []string{w1}, out: []string{w1},
			loses: true},
		{name: "is honest for two rounds, and then sends the last outer step again", who: w1,
			act: adversary.Rescales{After: 2, Factor: 0.5}, out: []string{w1}, loses: true},
		{name: "a verifier reports what it has not looked at", second: true, long: true, who: v1,
			act: verifiers.RubberStamps{}, out: []string{v1}},
		{name: "a verifier says that all work is outside", long: true, who: v1, act: verifiers.Denies{}, out: []string{v1},
			unpaid: []string{v1}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := tolerant(t)
			if s.who != "" {
				c.Acts[s.who] = s.act
			}
			var guilty []string
			if s.lies || s.loses {
				guilty = []string{s.who}
			}
			play := func() Outcome {
				return played(t, c, check.CoinsConserved{}, &check.PaidOnce{Guilty: guilty},
					check.HonestNotSlashed{Guilty: guilty}, &check.Lineage{})
			}
			o := play()
			for s.second && len(o.Out) == 0 && c.Seed < 10 {
				c.Seed++
				o = play()
			}
			if o.Phase != progress.Done || o.Rounds != c.Job.Task.Spec.Rounds {
				t.Errorf("the run ends in phase %d after %d rounds: %s", o.Phase, o.Rounds, o.Why)
			}
			if deposits := o.Slashed[s.who]; s.loses != (deposits > 0) && !s.lies {
				t.Errorf("%s loses %d uzen", s.who, deposits)
			}
			var unpaid []string
			for i, name := range c.Names() {
				// Verifiers may draw no unit in three rounds, and one that is found may have been paid before.
				if o.Earned[name] == 0 && (i < c.Workers || name == s.who && !s.second) {
					unpaid = append(unpaid, name)
				}
			}
			out := slices.Sorted(maps.Keys(o.Out))
			convicted := s.lies && slices.Equal(out, guilty) // in an attempt that had to be exact
			if !slices.Equal(unpaid, s.unpaid) || !slices.Equal(out, s.out) && !convicted {
				t.Errorf("not paid are %v, want %v; out are %v, want %v", unpaid, s.unpaid, out, s.out)
			}
		})
	}
}
