// Package attack measures what attacks cost their victims: floods of a chain, mixes of adversaries, and peers that
// stall the transfers of a worker. The effect of attacks on a loss is measured by package strategies.
package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/chain/garbage"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/flood"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/sim/attack"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/scale"
	"github.com/starling-network/starling/sim/workload"
)

// Options say how thoroughly attacks are played.
type Options struct {
	Seeds        uint64 // of networks in which one adversary has a quarter of all stake, for each of its plans
	Mixes        uint64 // random networks
	First        uint64 // the seed of the first of them
	Rounds       uint32 // of a thousand workers, in which what verification costs is counted
	Flood        flood.Flood
	HostilePeers HostilePeers
}

// Quick takes less than a minute on an idle machine. Thorough plays the bars of docs/performance.md.
var (
	Quick = Options{
		Seeds: 1, Mixes: 2, First: 1, Rounds: 10,
		Flood:        flood.Flood{Orders: 1000, Pools: 200, Disputes: 30, Free: 500, Asking: 1, Blocks: 8},
		HostilePeers: HostilePeers{Peers: 100, Streams: 16, Round: 2 * time.Second, Rounds: 6},
	}
	Thorough = Options{
		Seeds: 96, Mixes: 1000, First: 1, Rounds: 60,
		Flood:        flood.Flood{Orders: 10_000, Pools: 2000, Disputes: 1000, Free: 50_000, Asking: 8, Blocks: 60},
		HostilePeers: HostilePeers{Peers: 100, Streams: 16, Round: 2 * time.Second, Rounds: 30},
	}
)

// Report holds the results of all attacks.
type Report struct {
	Bars     []benchmark.Bar `json:"bars"`
	Plans    []PlanRow       `json:"plans"`
	Mixes    MixesReport     `json:"mixes"`
	Overhead OverheadRow     `json:"overhead"`
	Flood    *flood.Report   `json:"flood"`
	Seconds  float64         `json:"seconds"`
}

// PlanRow is the result of one plan of an adversary that has a quarter of all stake, over runs with different seeds.
type PlanRow struct {
	Plan      string  `json:"plan"`
	Watched   bool    `json:"watched"` // verifiers of other owners also audit units that are not drawn for them
	Runs      int     `json:"runs"`
	Gain      float64 `json:"gain_zen"`     // of a run, on average: coins at the end less coins at the start
	Faked     float64 `json:"faked_zen"`    // of Gain, the part that is not pay for honest work
	Beside    float64 `json:"beside_zen"`   // of a run, less what honest work earns in the same network
	Honest    int     `json:"honest_units"` // that were paid
	Wrong     int     `json:"wrong_units"`
	Convicted int     `json:"convicted"` // accounts
	Attested  int     `json:"attested"`  // checkpoints that are not what their updates lead to
	Final     int     `json:"final"`     // of them
}

// MixesReport is what came of random networks.
type MixesReport struct {
	First       uint64   `json:"first_seed"`
	Played      uint64   `json:"played"`
	Adversaries int      `json:"adversaries"`
	Slashed     int      `json:"slashed"`
	Wronged     []string `json:"wronged"` // honest parties that lost stake, by seed
	Broken      []string `json:"broken"`  // what else did not hold, by seed
}

// OverheadRow is the cost of verification in relation to the work.
type OverheadRow struct {
	Units  int `json:"units"`  // executed by workers with a long history
	Looked int `json:"looked"` // that verifiers were asked to execute, but for second looks

	// Watched is the units that verifiers execute per unit of the workers, including proactive audits in idle time.
	Watched float64 `json:"watched"`
}

// Measure plays the adversaries of docs/security.md under virtual time on the default terms of verification, and
// measures the chain and a worker's host under a flood.
func Measure(ctx context.Context, o Options) (*Report, error) {
	defer garbage.CollectLess()()
	begin := time.Now()
	r := &Report{Mixes: MixesReport{First: o.First}}
	for _, part := range []struct {
		name string
		do   func(context.Context, Options) error
	}{
		{"flood", r.flood}, {"hostile peers", r.hostilePeers},
		{"a quarter of all stake", r.quarter}, {"overhead", r.overhead}, {"mixes", r.mixes},
	} {
		if err := part.do(ctx, o); err != nil {
			return nil, fmt.Errorf("benchmark: %s: %w", part.name, err)
		}
	}
	r.Seconds = benchmark.Rounded(time.Since(begin).Seconds(), 1)
	return r, nil
}

func (r *Report) flood(ctx context.Context, o Options) error {
	f, err := o.Flood.Flooded(ctx)
	r.Flood = &f
	const text = "blocks under %d open orders, %d pools, %d moves of disputes, simulations and free transactions, / " +
		"without"
	name := fmt.Sprintf(text, o.Flood.Orders, o.Flood.Pools, f.Moves)
	r.Bars = append(r.Bars, benchmark.Below(name, f.Flooded/f.Quiet, 1.5))
	return err
}

func (r *Report) hostilePeers(ctx context.Context, o Options) error {
	ratio, err := o.HostilePeers.delivered(ctx)
	name := fmt.Sprintf(
		"updates delivered in time by a worker under %d hostile peers, of those without",
		o.HostilePeers.Peers,
	)
	r.Bars = append(r.Bars, benchmark.AtLeast(name, ratio, 0.9))
	return err
}

// each calls do for every index below n, on all processors; make gives each processor a job of its own.
func each[T any](ctx context.Context, n int, make func() (T, error), do func(own T, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(kernel.Cores, n) {
		g.Go(func() error {
			own, err := make()
			for err == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err = ctx.Err(); err == nil {
					err = do(own, i)
				}
			}
			return err
		})
	}
	return g.Wait()
}

// quarter plays every plan with as many seeds, watched and not.
func (r *Report) quarter(ctx context.Context, o Options) error {
	seeds, plans := int(o.Seeds), len(attack.Plans)
	played := make([]attack.Quartered, 2*plans*seeds)
	err := each(ctx, len(played), attack.QuarterJob, func(j *workload.Job, i int) (err error) {
		q := attack.Quarter{Seed: uint64(i % seeds), Job: j, Plan: attack.Plans[i/seeds%plans], Unwatched: i/seeds >= plans}
		played[i], err = q.Play()
		return err
	})
	if err != nil {
		return err
	}
	for i := range 2 * plans {
		first := i / plans * plans // to be honest
		these, honest := played[i*seeds:][:seeds], played[first*seeds:][:seeds]
		r.Plans = append(r.Plans, row(attack.Plans[i%plans].Name, i < plans, these, honest))
	}
	var trained, looked uint64
	for _, q := range played[:seeds] {
		trained, looked = trained+q.Trained, looked+q.Looked
	}
	r.Overhead.Watched = benchmark.Rounded(float64(looked)/float64(trained), 3)
	r.judge()
	return r.canary()
}

const zen = 1e6

func row(name string, watched bool, played, honest []attack.Quartered) PlanRow {
	p := PlanRow{Plan: name, Watched: watched, Runs: len(played)}
	for i, q := range played {
		p.Gain += float64(q.Gain) / zen
		p.Faked += float64(q.Faked) / zen
		p.Beside += float64(q.Gain-honest[i].Gain) / zen
		p.Honest, p.Wrong, p.Convicted = p.Honest+q.Honest, p.Wrong+q.Wrong, p.Convicted+len(q.Convicted)
		p.Attested, p.Final = p.Attested+q.Attested, p.Final+q.Final
	}
	n := float64(p.Runs)
	p.Gain, p.Faked, p.Beside = benchmark.Rounded(p.Gain/n, 3), benchmark.Rounded(p.Faked/n, 3),
		benchmark.Rounded(p.Beside/n, 3)
	return p
}

// judge compares the plans with their limits: each plan alone while other verifiers audit proactively, as they do by
// default, and all plans together while verifiers audit only the units drawn for them.
func (r *Report) judge() {
	faked, beside, wrong := math.Inf(-1), math.Inf(-1), 0.0
	unwatched, final := 0.0, 0
	for i, p := range r.Plans {
		final += p.Final
		switch fakes := attack.Plans[i%len(attack.Plans)].Lies != nil; {
		case fakes && p.Watched:
			faked, beside = max(faked, p.Faked), max(beside, p.Beside)
			wrong = max(wrong, 1000*float64(p.Wrong)/float64(p.Honest))
		case fakes:
			unwatched += p.Faked
		}
	}
	const who = "a quarter of all stake at the lowest price: "
	r.Bars = append(r.Bars,
		benchmark.AtMost(who+"wrong units paid for 1,000 honest ones, its best plan", wrong, 1),
		benchmark.Below(who+"ZEN that a run of faking brings, its best plan", faked, 0),
		benchmark.Below(who+"ZEN that a run brings more than one of honest work, its best plan", beside, 0),
		benchmark.Below(who+"ZEN that faking brings without unasked audits, a run of each plan", unwatched, 0),
		benchmark.AtMost(who+"wrong checkpoints attested that are final", float64(final), 0),
	)
}

// canary plays rules by which the seats of a run decide which verifier audits it: under those the same adversary must
// win.
func (r *Report) canary() error {
	j, err := attack.QuarterJob()
	if err != nil {
		return err
	}
	q, err := attack.Quarter{Seed: attack.SeatedWins, Job: j, Plan: attack.Plans[1], Seated: true}.Play()
	const name = "canary: wrong units paid to an adversary whose own verifiers are the only ones"
	r.Bars = append(r.Bars, benchmark.AtLeast(name, float64(q.Wrong), 1))
	return err
}

// overhead counts the units that verifiers are asked to execute per unit of the workers, for audits of members with a
// long history.
func (r *Report) overhead(ctx context.Context, o Options) error {
	v, w := spec.Default().Strategy.Verification, spec.Default().Strategy.Workers
	c, err := scale.Model{
		Seed: 1, Workers: 1000, Run: w.Target, Verifiers: v.Verifiers, Rounds: o.Rounds, AuditPPM: v.AuditPPM(),
		Block: time.Second, Unit: 10 * time.Second,
		Link: link.Link{Latency: 50 * time.Millisecond, Up: 12.5e6, Down: 12.5e6}, Update: 100_000,
	}.Play(ctx)
	if err != nil {
		return err
	}
	r.Overhead.Units, r.Overhead.Looked = c.Trained, c.Looked
	cost := float64(c.Looked) / float64(c.Trained) * (1 + audit.SecondPPM/1e6) // a crowd plays no second looks
	r.Bars = append(r.Bars, benchmark.AtMost("operations that verifiers are asked for, with the part of second "+
		"looks added, of those of workers", cost, 0.12))
	return nil
}

// mixes plays random networks.
func (r *Report) mixes(ctx context.Context, o Options) error {
	m := &r.Mixes
	var all sync.Mutex
	mixer := func() (*attack.Mixer, error) { return &attack.Mixer{}, nil }
	err := each(ctx, int(o.Mixes), mixer, func(own *attack.Mixer, i int) error {
		seed := o.First + uint64(i)
		c, err := own.Draw(seed)
		if err != nil {
			return err
		}
		mixed, err := attack.PlayMix(c)
		all.Lock()
		defer all.Unlock()
		m.Played, m.Adversaries, m.Slashed = m.Played+1, m.Adversaries+len(c.Acts), m.Slashed+len(mixed.Slashed)
		for _, name := range mixed.Wronged {
			m.Wronged = append(m.Wronged, fmt.Sprintf("seed %d: %s", seed, name))
		}
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			m.Broken = append(m.Broken, fmt.Sprintf("seed %d: %v", seed, err))
		}
		return nil
	})
	r.Bars = append(r.Bars,
		benchmark.AtMost(fmt.Sprintf("honest parties slashed in %d mixes", m.Played), float64(len(m.Wronged)), 0),
		benchmark.AtMost("mixes in which another promise did not hold", float64(len(m.Broken)), 0),
	)
	return err
}
