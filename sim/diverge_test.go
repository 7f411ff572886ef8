package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// A job whose weights become no numbers ends with that reason, whatever its members do: the workers are paid, the rest
// of the budget returns, and only a member that denies the divergence is slashed.
func TestDivergingJob(t *testing.T) {
	job, err := workload.New(workload.Size{Rounds: 3, Units: 4, Steps: 30, Segment: 10, Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		name            string
		acts            map[string]adversary.Attack
		auditPPM        uint32
		slices          uint32
		slashed, unpaid []string
		long            bool // played with -long only
	}{
		{name: "all are honest", long: true, auditPPM: 1_000_000},
		{name: "few audits", auditPPM: 10_000},
		{name: "no audits", long: true},
		{name: "a round in slices", long: true, auditPPM: 1_000_000, slices: 2},
		{name: "a worker hides it", auditPPM: 1_000_000, acts: one(w1, adversary.HidesDivergence{}), slashed: []string{w1},
			unpaid: []string{w1}},
		{name: "a verifier denies it", auditPPM: 1_000_000, acts: one(v1, verifiers.ChallengesFalsely{Segment: 4}),
			slashed: []string{v1}, unpaid: []string{v1}},
		{name: "a verifier denies a state", auditPPM: 1_000_000, acts: one(v1, verifiers.ChallengesFalsely{Segment: 2}),
			slashed: []string{v1}, unpaid: []string{v1}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := small(t)
			c.Job, c.Acts, c.AuditPPM, c.Slices = job, s.acts, s.auditPPM, s.slices
			guilty := slices.Collect(maps.Keys(s.acts))
			o := played(
				t,
				c,
				check.CoinsConserved{},
				&check.PaidOnce{Guilty: guilty},
				check.HonestNotSlashed{Guilty: guilty},
				&check.Lineage{Honest: true},
			)
			var unpaid []string
			for _, name := range c.Names()[:c.Workers] {
				if o.Earned[name] == 0 {
					unpaid = append(unpaid, name)
				}
			}
			if s.acts[v1] != nil && o.Earned[v1] == 0 {
				unpaid = append(unpaid, v1)
			}
			if o.Phase != progress.Halted || o.Why != reason.Diverged || o.Rounds != 0 {
				t.Errorf("the run ends in phase %d after %d rounds: %s", o.Phase, o.Rounds, o.Why)
			}
			if slashed := slices.Sorted(maps.Keys(o.Slashed)); !slices.Equal(slashed, s.slashed) ||
				!slices.Equal(unpaid, s.unpaid) {
				t.Errorf("slashed are %v, want %v; not paid are %v, want %v", slashed, s.slashed, unpaid, s.unpaid)
			}
		})
	}
}
