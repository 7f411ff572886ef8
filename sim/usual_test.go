package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
)

// usually is a network on the terms of a job whose file says nothing of verification: with more verifiers than have a
// seat.
func usually(t testing.TB) Config {
	c := small(t).Usual()
	c.Verifiers, c.MaxBlocks = 3, 20_000
	return c
}

// Every adversary that docs/security.md names plays on the terms of a job on a network. A party that lies is slashed or
// paid nothing, no other loses stake, no unit is paid twice, and the model is that of honest work.
func TestAdversariesOnTheTermsOfAJob(t *testing.T) {
	friends := []string{keyOf(w1).Address()}
	for _, s := range []struct {
		name    string
		acts    map[string]adversary.Attack
		lowest  bool     // the adversary offers at the lowest price
		slices  uint32   // in which rounds are reduced
		slashed []string // at least these
		unpaid  []string // at least these
		long    bool     // played with -long only
	}{
		{name: "liar", acts: one(w1, adversary.Skips{}), slashed: []string{w1}, unpaid: []string{w1}},
		{name: "poisoner", long: true,
			acts: one(w1, adversary.Poisons{Factor: -10}), slashed: []string{w1}, unpaid: []string{w1}},
		{name: "silent one", long: true, acts: one(w1, adversary.GoesSilent{}), unpaid: []string{w1}},
		{name: "lazy verifier", long: true, acts: one("verifier-0", verifiers.RubberStamps{}),
			unpaid: []string{"verifier-0"}},
		{name: "copying verifier", long: true, acts: one("verifier-0", verifiers.CopiesSeal{Of: "any"}),
			unpaid: []string{"verifier-0"}},
		{name: "false accuser", acts: one("verifier-0", verifiers.ChallengesFalsely{Segment: 1}),
			slashed: []string{"verifier-0"}, unpaid: []string{"verifier-0"}},
		{name: "pair at the lowest price", long: true, lowest: true, slashed: []string{w1}, unpaid: []string{w1},
			acts: map[string]adversary.Attack{w1: adversary.Skips{}, "verifier-0": verifiers.Colludes{With: friends}}},
		{name: "lying reducer", long: true, slices: 3, acts: one(w1, adversary.FakesSlices{})},
		{name: "rollback pump", lowest: true, slashed: []string{w1}, // its honest first round is paid
			acts: map[string]adversary.Attack{
				w1:           adversary.DelayedAttack{Round: 1, Then: adversary.Poisons{Factor: 3}},
				"verifier-0": verifiers.Colludes{With: friends},
			}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := usually(t)
			c.Acts, c.Slices = s.acts, s.slices
			if s.lowest {
				c.Machines = map[string]Machine{}
				for name := range s.acts {
					c.Machines[name] = Machine{Link: c.Link, Unit: c.Unit, Price: 1}
				}
			}
			guilty := slices.Collect(maps.Keys(s.acts))
			o := played(t, c.Seating(2), check.CoinsConserved{}, &check.PaidOnce{Guilty: guilty},
				check.HonestNotSlashed{Guilty: guilty})
			if o.Phase != progress.Done || !o.Honest {
				t.Errorf("the run ends in phase %d after %d rounds: %s; honest: %t", o.Phase, o.Rounds, o.Why, o.Honest)
			}
			for _, name := range s.slashed {
				if o.Slashed[name] == 0 {
					t.Errorf("%s is not slashed", name)
				}
			}
			for _, name := range s.unpaid {
				if o.Earned[name] > 0 {
					t.Errorf("%s earns %d uzen", name, o.Earned[name])
				}
			}
		})
	}
}
