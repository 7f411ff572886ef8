package people

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// The simulated network. A block takes minutes, so that a week has five thousand of them.
const (
	block = 2 * time.Minute
	day   = 24 * time.Hour
	pace  = 10_000_000            // operations a second of a machine that takes twelfth for a twelfth of a round
	price = 1_000_000_000_000_000 // uzen for 10^15 operations: units of the small model cost thousands of uzen
	few   = 12                    // units of a round, where a machine is due one to six
	many  = 48                    // where it is due four times as many
	whole = few * time.Hour       // of a round, on one machine of pace
)

// rig is a network of machines that train one job which outlasts the time that is played.
type rig struct {
	rates map[string]uint64 // of workers, by name, in operations a second
	cards map[string]uint64 // memory of the GPUs of those that have one, in MiB; nil: the network has no classes of GPUs
	late  map[string]time.Duration
	until time.Duration
	units uint32 // of a round
	seed  uint64
	looks []look

	worked map[string]time.Duration // of each party when the time was over, with the unit under way
}

// look does something once, after the first block after a time.
type look struct {
	at time.Duration
	do func(w *sim.Network) error
}

// errOver ends a network that was played for long enough.
var errOver = errors.New("people: the time to play is over")

// Block implements check.Checker.
func (r *rig) Block(v check.World) error {
	w, now := v.(*sim.Network), v.Latest().Now
	for len(r.looks) > 0 && now >= r.looks[0].at {
		do := r.looks[0].do
		if r.looks = r.looks[1:]; do != nil {
			if err := do(w); err != nil {
				return err
			}
		}
	}
	if now >= r.until {
		for name := range r.worked {
			r.worked[name] = w.Usage(name).Worked
		}
		return errOver
	}
	return nil
}

// End implements check.Checker.
func (*rig) End(check.World) error { return nil }

// config is the network. Only measured workers are matched, so that all of them are measured before the run begins.
func (r *rig) config() (sim.Config, error) {
	rounds := uint32(2 + r.until/time.Hour)
	job, err := workload.New(workload.Size{Rounds: rounds, Units: r.units, Steps: 6, Segment: 3})
	if err != nil {
		return sim.Config{}, err
	}
	home := link.Profiles["home"]
	c := sim.Config{
		Seed: r.seed, Job: job, Verifiers: 3, Validators: 1, Link: home, Unit: block, Registers: true, Forgets: true,
		Machines: map[string]sim.Machine{}, MaxBlocks: int64(r.until/block) + 100,
	}.Usual()
	c.BlockTime = block
	for _, name := range slices.Sorted(maps.Keys(r.rates)) {
		rate := r.rates[name]
		c.Machines[name] = sim.Machine{Link: home, Rate: rate, Price: price,
			Hardware: kind{rate, r.cards[name]}.hardware(),
			Unit:     time.Duration(float64(whole) / float64(r.units) * pace / float64(rate))}
		if at, ok := r.late[name]; ok {
			c.Joins = append(c.Joins, sim.Newcomer{Name: name, Role: crew.Worker, At: at})
		} else {
			c.Workers++
		}
	}
	for i := range c.Verifiers {
		c.Machines[fmt.Sprint("verifier-", i)] = sim.Machine{Link: home, Unit: block, Price: price}
	}
	n := uint32(c.Workers)
	c.Order = &market.Order{ID: job.ID(), Budget: 500_000_000_000, PriceCap: price,
		Workers:   market.Workers{Min: n, Target: n, Max: n + uint32(len(c.Joins))},
		Verifiers: 1, Conditions: market.Conditions{Classes: []registry.Class{registry.Processor}}, Terms: c.Terms()}
	if r.cards != nil {
		c.Genesis = classed
		c.Order.Conditions.Classes = append(c.Order.Conditions.Classes, registry.Consumer, registry.Professional)
	}
	return c, nil
}

// play plays the network until its time is over.
func (r *rig) play(ctx context.Context) (*sim.Network, error) {
	c, err := r.config()
	if err != nil {
		return nil, err
	}
	return r.playOn(ctx, c)
}

// playOn plays a network until its time is over.
func (r *rig) playOn(ctx context.Context, c sim.Config) (*sim.Network, error) {
	r.worked = map[string]time.Duration{}
	for _, name := range c.Names() {
		r.worked[name] = 0
	}
	w, err := sim.New(c, r, stopper{ctx}, check.CoinsConserved{})
	if err != nil {
		return nil, err
	}
	if _, err := w.Play(); !errors.Is(err, errOver) {
		return nil, errors.Join(err, fmt.Errorf("people: the run was over after %v", w.Now()))
	}
	return w, nil
}

// stopper ends a network when a context ends.
type stopper struct{ context.Context }

// Block implements check.Checker.
func (s stopper) Block(check.World) error { return s.Err() }

// End implements check.Checker.
func (stopper) End(check.World) error { return nil }

// earned is the pay of a worker for units in the blocks after a height, in uzen.
func earned(receipts []reward.Receipt, id string, after int64) (sum uint64) {
	for _, r := range receipts {
		if r.Who == id && r.Height > after && r.Kind == reward.Work && r.Role == crew.Worker {
			sum += r.Amount
		}
	}
	return sum
}
