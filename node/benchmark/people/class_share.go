package people

import (
	"context"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// The networks in which machines of one class are due more than they do: a verifier that executes all units of four
// workers of its speed again, and two generators that draw all answers for two workers which learn from them in a
// fraction of the time. The verifier has two hours of work in a round, and each generator four.
const (
	classRound  = 2 * time.Hour
	learnTime   = classRound / 20
	learners    = 2
	drawing     = 2
	wholly      = 1_000_000 // parts per million of the units are audited
	verifierOne = "verifier-"
	// until then machines wait for the first units, or draw the first answers, of which learners draw some: a machine of
	// the class is not yet due more than it does
	starting = 2 * classRound
)

// busyIn plays a network until its time is over, and returns the share of the time since its start is over in which its
// machines of a class compute.
func busyIn(ctx context.Context, class busy.Class, seed uint64, until time.Duration) (Busy, error) {
	z := workload.Size{Rounds: uint32(2 + until/learnTime), Units: 4, Steps: 6, Segment: 3}
	c := sim.Config{Seed: seed, Workers: 4, Verifiers: 1, Validators: 1, Link: link.Profiles["home"], Unit: classRound / 4,
		Forgets: true, Machines: map[string]sim.Machine{}, MaxBlocks: int64(until/block) + 100}
	of := verifierOne
	if class == busy.Generation {
		z.Units, z.Steps, z.Segment, z.Rollout = learners, 2, 1, &train.Rollout{Staleness: 2}
		c.Workers, c.Generators, c.Verifiers = learners+drawing, drawing, 2
		of = "worker-"
	}
	b := Busy{Class: class, Units: z.Units}
	var err error
	if c.Job, err = workload.New(z); err != nil {
		return b, err
	}
	c = c.Usual()
	c.BlockTime = block
	if class == busy.Verification {
		c.AuditPPM, c.Drawn = wholly, false
	}
	measured := map[string]bool{}
	for i, name := range c.Names() {
		m := sim.Machine{Link: c.Link, Unit: c.Unit, Draw: classRound, Price: price}
		switch {
		case class == busy.Generation && i < learners:
			m.Unit = learnTime
		case class == busy.Generation && i >= c.Workers:
			m.Unit, m.Draw = learnTime, learnTime
		case strings.HasPrefix(name, of):
			measured[name] = true
		}
		c.Machines[name] = m
	}
	n := uint32(c.Workers)
	c.Order = &market.Order{ID: c.Job.ID(), Budget: 500_000_000_000, PriceCap: price,
		Workers: market.Workers{Min: n, Target: n, Max: n}, Generators: uint32(c.Generators),
		Verifiers: uint32(c.Verifiers), Terms: c.Terms()}
	before := map[string]time.Duration{}
	r := &rig{until: until, looks: []look{{starting, func(w *sim.Network) error {
		for name := range measured {
			before[name] = w.Usage(name).Worked
		}
		return nil
	}}}}
	w, err := r.playOn(ctx, c)
	if err != nil {
		return b, err
	}
	var worked time.Duration
	for name := range measured {
		worked += r.worked[name] - before[name]
	}
	b.Share = float64(worked) / float64(len(measured)) / float64(w.Now()-starting)
	return b, nil
}
