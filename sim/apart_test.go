package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/rollouts"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// Jobs whose units learn from answers that others draw, with policies of different ages.
var (
	atOnce = workload.Size{Rounds: 5, Units: 2, Steps: 2, Segment: 1, Rollout: &train.Rollout{}}
	apart  = workload.Size{Rounds: 5, Units: 2, Steps: 2, Segment: 1, Rollout: &train.Rollout{Staleness: 2}}
	// each unit has a model, and learns from answers of the others, too
	swarm = workload.Size{Rounds: 4, Units: 3, Steps: 2, Segment: 1, Rollout: &train.Rollout{Shared: true}}
	// players answer, criticise and answer again
	game       = workload.Size{Rounds: 3, Units: 2, Steps: 1, Segment: 1, Rollout: &train.Rollout{}, Game: true}
	staleGame  = playing(apart)
	sharedGame = playing(swarm)
	// players criticise answers of other models
	across = criticising(swarm)
)

// criticising is a swarm that plays games about answers of others.
func criticising(z workload.Size) workload.Size {
	z.Game, z.Across = true, true
	return z
}

// playing is a job of another size that plays games.
func playing(z workload.Size) workload.Size {
	z.Game = true
	return z
}

// A worker that forges what it draws is slashed, and the run leads to the state root that the job determines, whichever
// workers lie, crash or never come back.
func TestRollouts(t *testing.T) {
	type lie struct {
		name    string
		size    workload.Size
		acts    map[string]adversary.Attack
		faults  []Fault
		slashed []string
		long    bool // played with -long only
	}
	list := []lie{
		{name: "all are honest", size: apart, long: true},
		{name: "all are honest, at once", size: atOnce, long: true},
		{name: "machines crash", size: apart, faults: []Fault{
			{At: 10e9, For: 6e9, Who: "worker-0"}, {At: 17e9, For: 5e9, Who: w1}, {At: 31e9, For: 4e9, Who: v1}}},
		{name: "three of eight never come back", size: apart, long: true, faults: []Fault{
			{At: 12e9, For: 1e6 * time.Second, Who: "worker-3"}, {At: 14e9, For: 1e6 * time.Second, Who: "worker-5"},
			{At: 19e9, For: 1e6 * time.Second, Who: "worker-7"}}},
		{name: "a worker skips its work", size: apart, long: true, acts: one(w1, adversary.Skips{}), slashed: []string{w1}},
		{name: "a worker learns from other data", size: apart, long: true, acts: one(w1, adversary.WrongData{}),
			slashed: []string{w1}},
	}
	for how, always := range map[rollouts.Forgery]bool{rollouts.OwnAnswers: true, rollouts.EditsReward: false,
		rollouts.OtherPolicy: false, rollouts.CopiesOther: false, rollouts.ChosenPrompt: false} {
		list = append(list, lie{name: "swarm, " + string(how), size: swarm, acts: one(w1, rollouts.Forges{How: how}),
			slashed: []string{w1}, long: !always})
	}
	list = append(list, lie{name: "swarm, with machines that crash", size: swarm, long: true, faults: []Fault{
		{At: 10e9, For: 6e9, Who: "worker-0"}, {At: 17e9, For: 5e9, Who: w1}, {At: 31e9, For: 4e9, Who: v1}}},
		lie{name: "swarm, other data", size: swarm, acts: one(w1, adversary.WrongData{}), slashed: []string{w1}, long: true},
		lie{name: "swarm, wrong operator", size: swarm, acts: one(w1, adversary.Lies{}), slashed: []string{w1}, long: true})
	for how, always := range map[rollouts.Forgery]bool{rollouts.EditsToken: false, rollouts.EditsReward: false,
		rollouts.EndsEarly: false, rollouts.OtherSeed: false, rollouts.ChosenPrompt: false, rollouts.CopiesOther: false,
		rollouts.StalePolicy: false, rollouts.OtherPolicy: true, rollouts.FewerBits: false, rollouts.GoldPrefix: false} {
		size := apart
		if how == rollouts.StalePolicy {
			size.Rounds = 16 // each worker draws in a round that has an older policy
		}
		list = append(list, lie{name: string(how), size: size, acts: one(w1, rollouts.Forges{How: how}),
			slashed: []string{w1}, long: !always})
	}
	list = append(list, lie{name: "token, at once", size: atOnce, long: true, slashed: []string{w1},
		acts: one(w1, rollouts.Forges{How: rollouts.EditsToken})})
	list = append(list, lie{name: "game, last", size: game, acts: one(w1, rollouts.Forges{How: rollouts.EditsLast}),
		slashed: []string{w1}})
	for name, size := range map[string]workload.Size{"game": staleGame, "game of a swarm": sharedGame} {
		list = append(list, lie{name: name, size: size, long: true})
		forgeries := []rollouts.Forgery{rollouts.EditsLast}
		if !size.Rollout.Shared { // the others are as in a swarm without a game
			forgeries = append(forgeries, rollouts.EditsReward, rollouts.OtherPolicy, rollouts.OtherSeed, rollouts.EndsEarly)
		}
		for _, how := range forgeries {
			list = append(list, lie{name: name + ", " + string(how), size: size, acts: one(w1, rollouts.Forges{How: how}),
				slashed: []string{w1}, long: true})
		}
		list = append(list, lie{name: name + ", wrong operator", size: size, acts: one(w1, adversary.Lies{}),
			slashed: []string{w1}, long: true})
	}
	for how, always := range map[rollouts.Forgery]bool{rollouts.OwnAnswers: true, rollouts.EditsToken: false,
		rollouts.EditsReward: false} {
		list = append(list, lie{name: "game across, " + string(how), size: across, long: !always, slashed: []string{w1},
			acts: one(w1, rollouts.Forges{How: how})})
	}
	list = append(list, lie{name: "game across", size: across, long: true},
		lie{name: "game across, wrong operator", size: across, long: true, acts: one(w1, adversary.Lies{}),
			slashed: []string{w1}})
	list = append(list, lie{name: "game of a swarm, own", size: sharedGame, long: true, slashed: []string{w1},
		acts: one(w1, rollouts.Forges{How: rollouts.OwnAnswers})})
	for _, s := range list {
		if s.long && !*long {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			c := sized(t, s.size)
			c.Acts, c.Faults, c.MaxBlocks = s.acts, s.faults, 3000
			if len(s.faults) > 0 {
				c.Workers = 8
			}
			o := played(t, c, check.CoinsConserved{}, &check.PaidOnce{Guilty: s.slashed, Away: c.Away()},
				check.HonestNotSlashed{Guilty: s.slashed, Away: c.Away()}, &check.Lineage{Honest: true})
			if o.Phase != progress.Done || !o.Honest || o.Rounds != c.Job.Task.Spec.Rounds {
				t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v", o.Phase, o.Rounds, o.Why, o.Honest)
			}
			if got := slices.Sorted(maps.Keys(o.Slashed)); !slices.Equal(got, s.slashed) {
				t.Errorf("slashed: %v, want %v", got, s.slashed)
			}
		})
	}
}

// Answers that no program can have drawn make no learner fail, and do not end a run, also where their worker drew
// honestly until it is audited least.
func TestImpossibleRollouts(t *testing.T) {
	late := swarm
	late.Rounds = 16
	lateGame, lateAcross := sharedGame, across
	lateGame.Rounds, lateAcross.Rounds = 12, 8
	for _, how := range []rollouts.Forgery{rollouts.NoTokens, rollouts.WildScores, rollouts.WildRewards} {
		for _, size := range []workload.Size{late, apart, lateGame, lateAcross} {
			if always := !size.Game && size.Rounds < late.Rounds; !always && !*long {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d rounds", how, size.Rounds), func(t *testing.T) {
				c := sized(t, size)
				c.Acts, c.MaxBlocks = one(w1, rollouts.Forges{How: how, After: uint32(size.Rounds) / 2}), 3000
				c.AuditPPM = 100_000
				o := played(t, c, check.CoinsConserved{}, check.HonestNotSlashed{Guilty: []string{w1}})
				if delete(o.Out, w1); o.Phase != progress.Done || len(o.Out) > 0 {
					t.Errorf("the run ends in phase %s after %d rounds: %s; out: %v, slashed: %v", o.Phase, o.Rounds, o.Why,
						o.Out, o.Slashed)
				}
			})
		}
	}
}

// A worker that does not serve its answers is not paid for those that others need, misses a deadline in each round, and
// is out after some. The run leads to the same state root.
func TestWithheldRollouts(t *testing.T) {
	onlyLong(t)
	size := apart
	size.Rounds = 8
	c := sized(t, size)
	c.Unit = time.Minute // the others wait for answers for 20 seconds
	c.Acts, c.MaxBlocks = one(w1, rollouts.Withholds{}), 3000
	if testing.Verbose() {
		c.Log = func(line string) { t.Log(line) }
	}
	w := must(New(c, check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{},
		&check.Lineage{Honest: true}))(t)
	must(w.Play())(t)
	o := must(w.Outcome())(t)
	if o.Phase != progress.Done || !o.Honest || o.Rounds != c.Job.Task.Spec.Rounds || len(o.Slashed) > 0 {
		t.Errorf("the run ends in phase %d after %d rounds: %s, honest: %v, slashed: %v", o.Phase, o.Rounds, o.Why,
			o.Honest, o.Slashed)
	}
	receipts, err := w.Receipts()
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range receipts {
		if w.Name(r.Who) == w1 && r.Kind == reward.Work && r.Unit >= apart.Units && r.Amount == 0 &&
			r.Reason == reward.Unavailable {
			refused++
		}
	}
	if refused < 3 || o.Out[w1] != reason.Unavailable || len(o.Out) > 1 {
		t.Errorf("%d units are not paid, out: %v", refused, o.Out)
	}
}
