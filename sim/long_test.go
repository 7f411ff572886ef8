package sim

import (
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// A state that units carry through many rounds leads to the state root that the job determines, also when a worker lies
// near the end of them: all that it did in them is audited again then, by verifiers that have the time for it and keep
// their places.
func TestLongGroups(t *testing.T) {
	onlyLong(t)
	const liar, rounds = "worker-1", uint32(84)
	c := sized(t, workload.Size{Rounds: rounds, Units: 3, Steps: 1, Segment: 1, Carry: rounds - 4, Moments: true})
	c.Workers, c.Verifiers, c.Validators, c.Deadline, c.MaxBlocks = 3, 2, 1, 100, 4000
	c.Acts = one(liar, adversary.DelayedAttack{Round: rounds - 12, Then: adversary.Poisons{Factor: -10}})
	o := played(t, c, check.CoinsConserved{}, &check.Lineage{Honest: true})
	if o.Phase != progress.Done || !o.Honest || o.Rounds != rounds {
		t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v", o.Phase, o.Rounds, o.Why, o.Honest)
	}
	if _, ok := o.Slashed[liar]; !ok || len(o.Slashed) != 1 || len(o.Out) != 1 {
		t.Errorf("slashed: %v, out: %v", o.Slashed, o.Out)
	}
}
