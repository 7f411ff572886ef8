package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Where rounds overlap, updates travel while workers train: of links that are nearly as slow as the machines much less
// is waited for.
func TestUpdatesTravelWhileWorkersTrain(t *testing.T) {
	onlyLong(t)
	jobs := map[string]workload.Size{
		"one after the other": {Rounds: 8, Units: 4, Steps: 6, Segment: 3, Rate: 1e-2},
		"overlapping":         {Rounds: 8, Units: 4, Steps: 6, Segment: 3, Rate: 1e-2, Carry: 8, Overlap: true},
	}
	share := map[string]float64{}
	for name, size := range jobs {
		c := sized(t, size)
		c.AuditPPM, c.Deadline, c.Machines = 0, 100, map[string]Machine{}
		alike := Machine{Link: link.Link{Latency: 50 * time.Millisecond, Up: 3e3, Down: 1e6}, Unit: 20 * time.Second}
		for _, name := range c.Names() {
			c.Machines[name] = alike
		}
		s := &since{rounds: size.Rounds}
		if o := played(t, c, s, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{},
			&check.Lineage{Honest: true}); o.Phase != progress.Done ||
			!o.Honest {
			t.Errorf("%s: %+v", name, o)
		}
		share[name] = float64(size.Rounds) * alike.Unit.Seconds() / (s.over - s.dealt).Seconds()
		t.Logf("%s: %v for %d rounds of %v, %.2f of the time in units", name, s.over-s.dealt, size.Rounds, alike.Unit,
			share[name])
	}
	if alone, both := share["one after the other"], share["overlapping"]; alone > 0.65 || both < 0.8 {
		t.Errorf("workers are in units for %.2f of the time when rounds overlap, %.2f when they do not", both, alone)
	}
}

// Rounds that overlap lead to the state root that the job determines, whichever worker lies, is lost, or withholds its
// update.
func TestOverlap(t *testing.T) {
	for _, s := range []struct {
		name    string
		size    workload.Size
		acts    map[string]adversary.Attack
		faults  []Fault
		slashed []string
		long    bool // played with -long only
	}{
		{name: "a worker lies about its carried state of fragments", long: true, size: workload.Streaming,
			acts: one(w1, adversary.CorruptsCarriedState{}), slashed: []string{w1}},
		{name: "a worker skips its work", long: true, size: workload.Overlapping, acts: one(w1, adversary.Skips{}),
			slashed: []string{w1}},
		{name: "a worker lies from the second round on", size: workload.Overlapping,
			acts: one(w1, adversary.DelayedAttack{Round: 1, Then: adversary.Poisons{Factor: -10}}), slashed: []string{w1}},
		{name: "a worker lies about its carried state", long: true, size: workload.Overlapping,
			acts:    one(w1, adversary.CorruptsCarriedState{}),
			slashed: []string{w1}},
		{name: "and does not show it", long: true, size: workload.Overlapping,
			acts:    one(w1, adversary.CorruptsCarriedState{Withholds: true}),
			slashed: []string{w1}},
		{name: "a worker commits to an update that it cannot send", long: true, size: workload.Overlapping,
			acts:    one(w1, adversary.Copies{}),
			slashed: []string{w1}},
		{name: "machines crash", long: true, size: workload.Overlapping, faults: []Fault{
			{At: 10e9, For: 6e9, Who: "worker-0"}, {At: 17e9, For: 5e9, Who: w1}, {At: 25e9, For: 40e9, Who: "worker-2"},
			{At: 31e9, For: 4e9, Who: v1}}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := sized(t, s.size)
			c.Acts, c.Faults, c.MaxBlocks = s.acts, s.faults, 1500
			o := played(
				t,
				c,
				check.CoinsConserved{},
				&check.PaidOnce{Guilty: s.slashed, Away: c.Away()},
				check.HonestNotSlashed{Guilty: s.slashed, Away: c.Away()},
				&check.Lineage{Honest: true},
			)
			if o.Phase != progress.Done || !o.Honest || o.Rounds != c.Job.Task.Spec.Rounds {
				t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v", o.Phase, o.Rounds, o.Why, o.Honest)
			}
			if got := slices.Sorted(maps.Keys(o.Slashed)); !slices.Equal(got, s.slashed) {
				t.Errorf("slashed: %v, want %v", got, s.slashed)
			}
		})
	}
}
