package sim

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
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

// A run whose members delete the blobs of final rounds goes as one whose members keep them, event by event, also when a
// worker lies near its end.
func TestDeletedBlobsChangeNothing(t *testing.T) {
	c := sized(t, workload.Size{Rounds: 12, Units: 3, Steps: 2, Segment: 1})
	c.Workers, c.Verifiers, c.Validators, c.MaxBlocks = 3, 2, 1, 1000
	c.Acts = one("worker-1", adversary.DelayedAttack{Round: 9, Then: adversary.Poisons{Factor: -10}})
	play := func() (canon.Digest, int) {
		w := must(New(c, check.CoinsConserved{}))(t)
		digest := must(w.Play())(t)
		if o := must(w.Outcome())(t); o.Phase != progress.Done || !o.Honest || o.Slashed["worker-1"] == 0 {
			t.Fatalf("%+v", o)
		}
		blobs := 0
		s := must(w.State())(t)
		for round := uint32(1); round <= s.Base.Round; round++ {
			e := must(w.Chain().Training.Lineage(t.Context(), s.Terms.Job, round))(t)
			if _, err := bundle.LoadCheckpoint(t.Context(), e.Attestation.Checkpoint, w.Blob); err == nil {
				blobs++
			}
		}
		return digest, blobs
	}
	whole, all := play()
	c.Forgets = true
	if digest, left := play(); digest != whole || all != 12 || left >= 9 {
		t.Errorf("%s with %d checkpoints, and %s with %d", whole.Short(), all, digest.Short(), left)
	}
}
