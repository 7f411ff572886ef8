package sim

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// Rounds that are reduced in slices lead to the state root of those that are not, whichever member breaks the rules
// about slices; and no member is slashed on the word of a quorum alone.
func TestSlices(t *testing.T) {
	for _, s := range []struct {
		name     string
		auditPPM uint32
		slices   uint32
		acts     map[string]adversary.Attack
		faults   []Fault
		slashed  []string
		out      []string
		long     bool // played with -long only
		longer   bool // of six rounds, in each of which one of the five workers has no unit
	}{
		{name: "all are honest", long: true, auditPPM: 1_000_000, slices: 5},
		{name: "all are honest, and nothing is audited", long: true, slices: 3},
		{name: "one slice", long: true, slices: 1},
		{name: "a reducer is silent", long: true, auditPPM: 200_000, slices: 3, acts: one(w1, adversary.SkipsReduction{})},
		{name: "a reducer seals and is silent", long: true, slices: 3, acts: one(w1, adversary.SkipsReduction{Seals: true})},
		{name: "a reducer lies", slices: 5, acts: one(w1, adversary.FakesSlices{}), out: []string{w1}},
		{name: "a verifier lies as a reducer", long: true,
			slices: 5, acts: one(v1, adversary.FakesSlices{}), out: []string{v1}},
		{name: "two reducers lie alike, and are audited", long: true, auditPPM: 1_000_000, slices: 6,
			out:  []string{"worker-0", w1},
			acts: map[string]adversary.Attack{"worker-0": adversary.FakesSlices{}, w1: adversary.FakesSlices{}}},
		// It is out after three missed deadlines in a row.
		{name: "a worker withholds a slice of its updates", long: true, longer: true, slices: 4,
			acts: one(w1, adversary.WithholdsPiece{Slice: 2}), out: []string{w1}},
		{name: "a worker skips its work, and its round is rolled back", auditPPM: 1_000_000, slices: 4,
			acts: one(w1, adversary.Skips{}), slashed: []string{w1}, out: []string{w1}},
		{name: "machines crash", long: true, auditPPM: 200_000, slices: 4, faults: []Fault{
			{At: 10e9, For: 6e9, Who: "worker-0"}, {At: 17e9, For: 5e9, Who: w1}, {At: 25e9, For: 8e9, Who: "worker-2"},
			{At: 31e9, For: 4e9, Who: v1}}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := small(t)
			if s.longer {
				z := workload.Plain
				z.Rounds = 6
				c = sized(t, z)
			}
			c.Workers, c.Verifiers, c.MaxBlocks = 5, 2, 1500
			c.AuditPPM, c.Slices, c.Acts, c.Faults = s.auditPPM, s.slices, s.acts, s.faults
			o := played(
				t,
				c,
				check.CoinsConserved{},
				&check.PaidOnce{Guilty: s.slashed},
				check.HonestNotSlashed{Guilty: s.slashed},
				&check.Lineage{Honest: true},
			)
			if o.Phase != progress.Done || !o.Honest || o.Rounds != c.Job.Task.Spec.Rounds {
				t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v", o.Phase, o.Rounds, o.Why, o.Honest)
			}
			if got := slices.Sorted(maps.Keys(o.Slashed)); !slices.Equal(got, s.slashed) {
				t.Errorf("slashed: %v, want %v", got, s.slashed)
			}
			if got := slices.Sorted(maps.Keys(o.Out)); s.faults == nil && !slices.Equal(got, s.out) {
				t.Errorf("out: %v, want %v", got, s.out)
			}
		})
	}
}
