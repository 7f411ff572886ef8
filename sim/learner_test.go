package sim

import (
	"testing"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary/rollouts"
	"github.com/starling-network/starling/sim/check"
)

// A worker of a swarm that draws and learns as it should until it is audited least, and then learns from its own
// answers alone, is not found in every run. Its losses in the others are more than its pay in all of them.
func TestLearnersThatLieGainNothing(t *testing.T) {
	onlyLong(t)
	late := swarm
	late.Rounds = 12
	var earned, lost, found uint64
	const seeds = 6
	for seed := range uint64(seeds) {
		c := sized(t, late)
		c.Acts, c.MaxBlocks = one(w1, rollouts.Forges{How: rollouts.OwnAnswers, After: late.Rounds / 2}), 3000
		c.AuditPPM, c.Seed = spec.Default().Strategy.Verification.AuditPPM(), seed
		o := played(t, c, check.CoinsConserved{}, check.HonestNotSlashed{Guilty: []string{w1}})
		if o.Phase != progress.Done {
			t.Errorf("seed %d: the run ends in phase %s: %s", seed, o.Phase, o.Why)
		}
		earned, lost = earned+o.Earned[w1], lost+o.Slashed[w1]
		if o.Slashed[w1] > 0 {
			found++
		}
	}
	t.Logf("found in %d of %d runs: it is paid %d uzen, and loses %d", found, seeds, earned, lost)
	if found == 0 || lost <= earned {
		t.Errorf("found in %d of %d runs: it is paid %d uzen, and loses %d", found, seeds, earned, lost)
	}
}
