package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
)

// Six of eight members attest to a checkpoint of their own making, which is a quorum. One of the two others shows the
// chain a tile of it: the six are slashed and out, the round is attested again, and the model is the one that the job
// determines.
func TestMostForgeACheckpoint(t *testing.T) {
	c := small(t)
	c.Workers, c.Verifiers = 5, 3
	c.Acts = map[string]adversary.Attack{}
	for _, name := range []string{"worker-1", "worker-2", "worker-3", "worker-4", "verifier-1", "verifier-2"} {
		c.Acts[name] = adversary.ForgesCheckpoint{Round: 1, By: 0.5}
	}
	guilty := slices.Sorted(maps.Keys(c.Acts))
	o := played(
		t,
		c,
		check.CoinsConserved{},
		&check.PaidOnce{Guilty: guilty},
		check.HonestNotSlashed{Guilty: guilty},
		&check.Lineage{Honest: true},
	)
	if o.Phase != progress.Done || o.Rounds != c.Job.Task.Spec.Rounds || !o.Honest {
		t.Errorf("the run ends in phase %d after %d rounds: %s; honest: %v", o.Phase, o.Rounds, o.Why, o.Honest)
	}
	if got := slices.Sorted(maps.Keys(o.Slashed)); !slices.Equal(got, guilty) {
		t.Errorf("%v are slashed", got)
	}
	if got := slices.Sorted(maps.Keys(o.Out)); !slices.Equal(got, guilty) {
		t.Errorf("%v are out", got)
	}
}
