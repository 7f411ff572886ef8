// Package attack plays networks with adversaries: random mixes of attacks and faults, and an adversary with a quarter
// of all stake. The attacks themselves are those of package adversary.
//
// `go test ./sim/attack -run 'Mix$' -seeds 1000` is the long form; a failure prints the command that replays its seed.
package attack

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Mixer draws networks by seeds, each with its links, faults and adversaries, on the terms of a job on a network whose
// file says nothing of verification. Its jobs are shared: what one network computed the next need not. It is for one
// goroutine.
type Mixer struct {
	Varied bool // the terms are others that a job file can ask for: more audits, or fewer, or of drawn segments

	jobs map[string]*workload.Job
}

// job of a size, made once.
func (m *Mixer) job(z workload.Size) (j *workload.Job, err error) {
	key := fmt.Sprint(z)
	if j = m.jobs[key]; j != nil {
		return j, nil
	}
	if j, err = workload.New(z); err != nil {
		return nil, err
	}
	if m.jobs == nil {
		m.jobs = map[string]*workload.Job{}
	}
	m.jobs[key] = j
	return j, nil
}

// Draw is the network of a seed. Every third one has a job whose units carry a state, and one of those who lie may
// lie about that.
func (m *Mixer) Draw(seed uint64) (sim.Config, error) {
	size := workload.Plain
	if seed%3 == 0 {
		switch size = workload.Carrying; seed % 9 {
		case 0: // and begin from it
			size = workload.Replicating
		case 3: // and continue with it while it is sent
			size = [2]workload.Size{workload.Overlapping, workload.Streaming}[seed/2%2]
		}
	}
	j, err := m.job(size)
	if err != nil {
		return sim.Config{}, err
	}
	c := m.mix(sim.Config{Job: j, Validators: 3, MaxBlocks: 20_000}, seed)
	if seed%3 == 0 {
		carry(&c, seed)
	}
	return c.Seating(spec.Default().Strategy.Verification.Verifiers), nil
}

// carry is what a seed has of its own where units carry a state.
func carry(c *sim.Config, seed uint64) {
	if seed%9 == 0 || seed%9 == 3 {
		c.Slices = 0
	}
	for _, who := range slices.Sorted(maps.Keys(c.Acts)) {
		if strings.HasPrefix(who, "worker") && seed%2 == 0 {
			c.Acts[who] = adversary.CorruptsCarriedState{Withholds: seed%4 == 0}
			break
		}
	}
}

// crooked lists adversaries that a mix draws from.
var crooked = map[crew.Role][]adversary.Attack{
	crew.Worker: {
		adversary.Skips{}, adversary.TrainsLess{Steps: 3}, adversary.WrongData{}, adversary.WrongRate{Factor: 1.01},
		adversary.Copies{},
		adversary.CopiesChanged{}, adversary.FlipsBit{Step: 2, Tensor: 3, Bit: 1}, adversary.Poisons{Factor: 3},
		adversary.Equivocates{},
		adversary.Equivocates{TrueFirst: true}, adversary.GoesSilent{}, adversary.Malforms{}, adversary.Oversizes{},
		adversary.Misattests{}, adversary.ClaimsDivergence{},
		adversary.DelayedAttack{
			Round: 1,
			Then:  adversary.Skips{},
		}, adversary.DelayedAttack{Round: 2, Then: adversary.Poisons{Factor: 2}},
		adversary.Lies{Segment: adversary.First, Step: adversary.Last, Operator: adversary.First, Part: adversary.Last},
		adversary.Lies{Segment: adversary.Last, Step: adversary.First, Operator: adversary.Nowhere, Part: adversary.First},
	},
	crew.Verifier: {
		verifiers.RubberStamps{}, verifiers.CopiesSeal{Of: "any"}, verifiers.ChallengesFalsely{Segment: 1},
		verifiers.ChallengesFalsely{Segment: 2, Manner: verifiers.Inventing},
		verifiers.ChallengesFalsely{
			Segment: 0,
			Manner:  verifiers.Malformed,
		}, verifiers.ChallengesFalsely{Segment: 3, Manner: verifiers.Silently},
		adversary.GoesSilent{}, adversary.Misattests{},
	},
}

// mix draws a network: its size, its links, its faults and its adversaries. Fewer than a third of the members lie, and
// an honest verifier is among them.
func (m *Mixer) mix(c sim.Config, seed uint64) sim.Config {
	c = c.Usual()
	r := rand.New(rand.NewPCG(seed, 1))
	between := func(low, high int) int { return low + r.IntN(high-low+1) }
	c.Seed, c.Workers, c.Verifiers = seed, between(3, 6), between(2, 4)
	c.Link = link.Link{Latency: time.Duration(between(5, 300)) * time.Millisecond, Up: float64(between(1, 100)) * 1e5,
		Down: float64(between(1, 100)) * 1e5, Loss: r.Float64() * 0.05}
	c.Unit = time.Duration(between(500, 4000)) * time.Millisecond
	names := c.Names()
	c.Acts = map[string]adversary.Attack{}
	for range between(0, (len(names)-1)/3) {
		i := r.IntN(len(names))
		role := crew.Worker
		if i >= c.Workers {
			role = crew.Verifier
			i = c.Workers // one of them may lie
		}
		c.Acts[names[i]] = crooked[role][r.IntN(len(crooked[role]))]
	}
	if r.IntN(4) == 0 {
		c.Withhold = []int{r.IntN(c.Validators)}
	}
	for range between(0, 3) {
		f := sim.Fault{At: time.Duration(between(12, 120)) * time.Second, For: time.Duration(between(1, 8)) * time.Second,
			Who: names[r.IntN(len(names))]}
		if other := names[r.IntN(len(names))]; r.IntN(2) == 0 && other != f.Who {
			f.From = other
		}
		c.Faults = append(c.Faults, f)
	}
	if r.IntN(3) == 0 {
		c.Slices = uint32(between(1, 6))
		if len(c.Acts) > 0 && r.IntN(2) == 0 { // one of those who lie lies about slices
			liar := slices.Min(slices.Collect(maps.Keys(c.Acts)))
			c.Acts[liar] = []adversary.Attack{adversary.SkipsReduction{}, adversary.SkipsReduction{Seals: true},
				adversary.FakesSlices{}}[r.IntN(3)]
		}
	}
	if r.IntN(2) == 0 {
		churn(&c, r)
	}
	if m.Varied {
		c.AuditPPM, c.Drawn = []uint32{1_000_000, 100_000, 50_000}[r.IntN(3)], r.IntN(4) == 0
	}
	for _, name := range names {
		if _, lies := c.Acts[name]; !lies && r.IntN(4) == 0 {
			c.Pauses = append(c.Pauses, sim.Pause{At: time.Duration(between(8, 120)) * time.Second,
				For: time.Duration(between(2, 60)) * time.Second, Who: name, Known: r.IntN(2) == 0})
		}
	}
	return c
}

// churn lets machines come and go: honest ones leave, new ones join, some are switched off for longer than anybody
// waits for them, or cut off from the chain, and come back. Enough stay that the run need not end.
func churn(c *sim.Config, r *rand.Rand) {
	seconds := func(low, high int) time.Duration { return time.Duration(low+r.IntN(high-low+1)) * time.Second }
	c.Most, c.Leaves = c.Workers+r.IntN(3), map[string]time.Duration{}
	for i := range r.IntN(3) {
		c.Joins = append(c.Joins, sim.Newcomer{Name: fmt.Sprint("new-", i),
			Role: []crew.Role{crew.Worker, crew.Worker, crew.Verifier}[r.IntN(3)], At: seconds(4, 100)})
	}
	for _, name := range c.Names()[1:c.Workers] {
		if _, lies := c.Acts[name]; lies {
			continue
		}
		switch r.IntN(5) {
		case 0:
			c.Leaves[name] = seconds(12, 120)
		case 1:
			c.Faults = append(c.Faults, sim.Fault{At: seconds(12, 120), For: seconds(30, 150), Who: name})
		case 2:
			c.Faults = append(c.Faults, sim.Fault{At: seconds(12, 120), For: seconds(5, 60), Who: name, From: sim.Chain})
		}
	}
}

// Mixed is what came of a mix.
type Mixed struct {
	sim.Outcome
	Wronged []string // names of those who lost stake, and neither broke a rule nor were away when it was their move
}

// PlayMix plays a network that Draw has drawn. An error that is not of the context says what did not hold: money was
// made or lost, work was paid twice or not at all, a checkpoint is not signed or, where everything is audited, not that
// of honest work, or the run did not end.
func PlayMix(c sim.Config) (m Mixed, err error) {
	guilty, away := slices.Collect(maps.Keys(c.Acts)), c.Away()
	w, err := sim.New(c, check.CoinsConserved{}, &check.PaidOnce{Guilty: guilty, Away: away},
		&check.Lineage{Honest: c.AuditPPM == 1_000_000 && !c.Drawn})
	if err != nil {
		return m, err
	}
	_, failed := w.Play()
	if m.Wronged, err = (check.HonestNotSlashed{Guilty: guilty, Away: away}).Wronged(w); err != nil || failed != nil {
		return m, errors.Join(failed, err)
	}
	if m.Outcome, err = w.Outcome(); err == nil && m.Phase != progress.Done {
		err = fmt.Errorf("the run ends in phase %d after %d rounds: %s", m.Phase, m.Rounds, m.Why)
	}
	return m, err
}
