package people

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Place compares the bytes that members of a run get from other regions with those where no machine declares its
// region.
type Place struct {
	Regions    int     `json:"regions"`
	Seats      int     `json:"seats"`      // of workers
	Bytes      uint64  `json:"bytes"`      // that members receive from each other
	Far        uint64  `json:"far"`        // those of them from other regions
	Undeclared uint64  `json:"undeclared"` // bytes from other regions where no machine declares its region
	Ratio      float64 `json:"ratio"`      // Far over Undeclared
}

// The network of places: machines that offer, and an order for a few of them.
const (
	regions    = 5
	offering   = 50 // workers
	checking   = 10 // verifiers
	seats      = 8
	placeBlock = time.Second
)

// place plays an order of some rounds on a network of five regions, with regions declared, and without.
func place(ctx context.Context, seed uint64, rounds uint32) (Place, error) {
	p := Place{Regions: regions, Seats: seats}
	var err error
	if p.Far, p.Bytes, err = placed(ctx, seed, rounds, true); err != nil {
		return p, err
	}
	if p.Undeclared, _, err = placed(ctx, seed, rounds, false); err != nil {
		return p, err
	}
	p.Ratio = float64(p.Far) / float64(p.Undeclared)
	return p, nil
}

// placed plays an order to the end of its run, and returns the bytes that members received from other regions, and from
// all others.
func placed(ctx context.Context, seed uint64, rounds uint32, declared bool) (far, all uint64, err error) {
	job, err := workload.New(workload.Size{Rounds: rounds, Units: seats, Steps: 6, Segment: 3})
	if err != nil {
		return 0, 0, err
	}
	home := link.Profiles["home"]
	c := sim.Config{Seed: seed, Job: job, Workers: offering, Verifiers: checking, Validators: 1, Link: home,
		Unit: 10 * time.Second, Machines: map[string]sim.Machine{}, MaxBlocks: 2000, OrderAt: 5 * placeBlock}.Usual()
	c.BlockTime = placeBlock
	names := c.Names()
	for i, name := range names {
		m := sim.Machine{Link: home, Unit: c.Unit, Price: price, Place: fmt.Sprint("region-", i%regions)}
		if declared {
			m.Hardware = registry.Hardware{Region: m.Place}
		}
		c.Machines[name] = m
	}
	c.Order = &market.Order{ID: job.ID(), Budget: 500_000_000_000, PriceCap: price,
		Workers: market.Workers{Min: seats, Target: seats, Max: seats}, Verifiers: 2, Terms: c.Terms()}
	w, err := sim.New(c, stopper{ctx}, check.CoinsConserved{})
	if err != nil {
		return 0, 0, err
	}
	if _, err := w.Play(); err != nil {
		return 0, 0, err
	}
	s, err := w.State()
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		if _, member := s.Member(w.ID(name)); member { // others open the job, as they might join
			u := w.Usage(name)
			far, all = far+u.Far, all+u.Received
		}
	}
	return far, all, nil
}
