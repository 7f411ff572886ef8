package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// deals is a checker that notes the workers of the units of the last round that was dealt.
type deals struct{ workers []string }

func (d *deals) Block(w check.World) error {
	state, err := w.State()
	if err != nil || state.Phase != progress.Train {
		return nil // it has not begun, or no worker trains
	}
	d.workers = d.workers[:0]
	for _, u := range state.Units {
		d.workers = append(d.workers, w.Name(u.Worker))
	}
	return nil
}

func (*deals) End(check.World) error { return nil }

// paced is small with a job of overlapping rounds whose units are made for machines of the speeds of Liu et al. (2024):
// 0.58, 0.75, 1.51 and 3.33 s a step.
func paced(t testing.TB) Config {
	t.Helper()
	c := sized(t, workload.Size{Rounds: 5, Units: 4, Steps: 40, Segment: 2, Carry: 3, Overlap: true,
		Sizes: []uint32{20, 15, 7, 3}})
	c.MaxBlocks, c.Deadline, c.Machines = 1500, 100, map[string]Machine{}
	for i, name := range []string{"worker-0", "worker-1", "worker-2", "worker-3"} {
		step := []time.Duration{1510, 580, 3330, 750}[i] * time.Millisecond
		c.Machines[name] = Machine{Link: c.Link, Unit: 40 * step}
	}
	return c
}

// Units that are made for machines of different speeds lead to the state root that the job determines, also if a worker
// lies in the smallest of them, or is lost with the largest. An honest worker gets the unit that fits its speed.
func TestPaces(t *testing.T) {
	const slowest, fastest = "worker-2", "worker-1"
	for _, s := range []struct {
		name    string
		acts    map[string]adversary.Attack
		faults  []Fault
		drawn   bool
		slashed []string
		long    bool // played with -long only
	}{
		{name: "everybody is honest", long: true},
		{name: "the slowest lies in a unit of three segments",
			acts:    one(slowest, adversary.DelayedAttack{Round: 2, Then: adversary.FlipsBit{Step: 5}}),
			slashed: []string{slowest}},
		{name: "the slowest makes its update up", long: true,
			acts:    one(slowest, adversary.DelayedAttack{Round: 1, Then: adversary.Poisons{Factor: -10}}),
			slashed: []string{slowest}},
		{name: "the slowest makes all up, and segments are drawn", long: true,
			acts: one(slowest, adversary.Skips{}), drawn: true,
			slashed: []string{slowest}},
		{name: "the fastest is lost for a while", long: true, faults: []Fault{{At: 150e9, For: 60e9, Who: fastest}}},
	} {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := paced(t)
			c.Acts, c.Faults, c.Drawn = s.acts, s.faults, s.drawn
			look := &deals{}
			o := played(
				t,
				c,
				look,
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
			if want := []string{"worker-1", "worker-3", "worker-0", slowest}; s.slashed == nil && s.faults == nil &&
				!slices.Equal(look.workers, want) {
				t.Errorf("the last units go to %v, want %v", look.workers, want)
			}
		})
	}
}

// since is a checker that only looks: at when a round was dealt, and when the last was attested.
type since struct {
	round, rounds uint32
	dealt, over   time.Duration
}

func (s *since) Block(w check.World) error {
	state, err := w.State()
	if err != nil {
		return nil // it has not begun
	}
	if s.dealt == 0 && state.Round == s.round && state.Phase == progress.Train {
		s.dealt = w.Latest().Now
	}
	if s.over == 0 && state.Round == s.rounds {
		s.over = w.Latest().Now
	}
	return nil
}

func (*since) End(check.World) error { return nil }

// Machines of different speeds take nine tenths of the steps that they could take without waiting, once they are
// measured: of rounds of 200 steps of the fastest, whether these overlap or not, and whether groups end on the way or
// not.
func TestPacesTakeNineTenthsOfAllSteps(t *testing.T) {
	onlyLong(t)
	for _, z := range []workload.Size{{Carry: 4, Overlap: true}, {Carry: 8, Moments: true}, {Carry: 8, Overlap: true}} {
		z.Rounds, z.Units, z.Steps, z.Segment, z.Sizes = 8, 4, 40, 2, []uint32{20, 15, 7, 3}
		c := sized(t, z)
		c.AuditPPM, c.MaxBlocks, c.Deadline, c.Machines = 0, 3000, 1000, map[string]Machine{}
		c.BlockTime = 3 * time.Second // of rounds that take minutes
		var together float64          // steps a second
		for i, seconds := range []float64{1.51, 0.58, 3.33, 0.75} {
			c.Machines["worker-"+string(rune('0'+i))] = Machine{Link: c.Link,
				Unit: time.Duration(200 * seconds * float64(time.Second))}
			together += 1 / seconds
		}
		s := &since{round: 2, rounds: 8}
		played(t, c, s, check.CoinsConserved{}, &check.PaidOnce{}, &check.Lineage{Honest: true})
		done := 6 * 200 * (20 + 15 + 7 + 3) / 20.
		share := done / (together * (s.over - s.dealt).Seconds())
		t.Logf("%+v: %.0f steps in %v: %.3f of the speeds together", z, done, s.over-s.dealt, share)
		if share < 0.9 || share > 1 {
			t.Errorf("%+v: %.3f of the speeds together", z, share)
		}
	}
}
