package attack

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/verifiers"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
)

// Quarter is a network on the terms of a job whose file says nothing of verification. One adversary holds a quarter
// of all stake, of workers and of verifiers, and offers them at the lowest price; its verifiers pass whatever its
// workers commit to.
type Quarter struct {
	Seed      uint64
	Job       *workload.Job // of QuarterJob
	Plan      Plan
	Unwatched bool // the other verifiers look at what is drawn for them, and at nothing else
	Seated    bool // there are no other verifiers: as where the seats of a job decide who audits it
}

// SeatedWins is a seed with which Plans[1] wins where its verifiers have all seats: they pass no planted fault.
const SeatedWins = 2

// Plan is what an adversary does with its workers and its votes.
type Plan struct {
	Name   string
	Lies   *adversary.DelayedAttack    // with its workers; nil: they are honest
	Forges *adversary.ForgesCheckpoint // with its votes; nil: they are honest
}

// Parties of a quarter: of each four one is the adversary's.
const (
	quarterWorkers   = 8
	quarterVerifiers = 4
	quarterPay       = 12_000_000 // uzen for a unit: as for 12 * 10^12 operations at the default price
	trusted          = 10         // rounds after which an adversary is hardly audited any more
	quarterRounds    = 20
)

// Plans of an adversary. The first is to be honest, with which the others are compared. A worker that
// poisons an update has trained, and its verifiers can open the seals with which they pass it; of an invented update
// they cannot.
var Plans = []Plan{
	{Name: "is honest"},
	{Name: "poisons every unit", Lies: &adversary.DelayedAttack{Then: adversary.Poisons{Factor: -1}}},
	{Name: "fakes every unit", Lies: &adversary.DelayedAttack{Then: adversary.Skips{}}},
	{Name: "fakes every unit once it is trusted", Lies: &adversary.DelayedAttack{Round: trusted, Then: adversary.Skips{}}},
	{Name: "poisons every unit once it is trusted",
		Lies: &adversary.DelayedAttack{Round: trusted, Then: adversary.Poisons{Factor: -1}}},
	{Name: "poisons the units of every fourth round once it is trusted",
		Lies: &adversary.DelayedAttack{Round: trusted, Every: 4, Then: adversary.Poisons{Factor: -1}}},
	{Name: "signs a checkpoint of its own", Forges: &adversary.ForgesCheckpoint{Round: trusted, By: 1}},
}

// QuarterJob is the job of a Quarter: of units that are quickly computed, and paid like large ones.
func QuarterJob() (*workload.Job, error) {
	return workload.New(workload.Size{Rounds: quarterRounds, Units: 4, Steps: 2, Segment: 1})
}

// Quartered is what came of it.
type Quartered struct {
	Gain            int64    // uzen that the adversary has at the end, with its stake, and had not at the beginning
	Faked           int64    // of them, what is not pay for honest work and for audits: what faking units has brought
	Honest, Wrong   int      // units that were paid: of honest work, and of invented work
	Attested, Final int      // checkpoints that updates do not lead to: that were attested, and that stayed
	Trained, Looked uint64   // inner steps that workers took, and verifiers
	Convicted       []string // of the adversary's
}

// Play plays the network until its run is done.
func (q Quarter) Play() (o Quartered, err error) {
	c, ours := q.config()
	seen := &attested{}
	w, err := sim.New(c, check.CoinsConserved{}, check.HonestNotSlashed{Guilty: ours}, seen)
	if err != nil {
		return o, err
	}
	if _, err := w.Play(); err != nil {
		return o, fmt.Errorf("sim: seed %d, who %s: %w", q.Seed, q.Plan.Name, err)
	}
	s, err := w.State()
	if err == nil && s.Phase != progress.Done {
		err = fmt.Errorf("sim: seed %d, who %s: the run ends in phase %d after %d rounds: %s",
			q.Seed, q.Plan.Name, s.Phase, s.Base.Round, s.Why)
	}
	o.Attested, o.Final = len(seen.wrong), seen.final
	for i, name := range c.Names() {
		if steps := w.Usage(name).Steps; i < c.Workers {
			o.Trained += steps
		} else {
			o.Looked += steps
		}
	}
	return o, errors.Join(err, q.settle(w, ours, &o))
}

// settle counts what was paid, and what the adversary has.
func (q Quarter) settle(w *sim.Network, ours []string, o *Quartered) error {
	ctx := context.Background()
	receipts, err := w.Receipts()
	if err != nil {
		return err
	}
	for _, r := range receipts {
		switch mine := slices.Contains(ours, w.Name(r.Who)); {
		case r.Kind == reward.Slash && mine && r.Amount > 0 && !slices.Contains(o.Convicted, w.Name(r.Who)):
			o.Convicted = append(o.Convicted, w.Name(r.Who))
		case r.Kind == reward.Audit && mine:
			o.Faked -= int64(r.Amount)
		case r.Kind != reward.Work || r.Amount == 0:
		case mine && q.Plan.Lies != nil && q.Plan.Lies.Lies(r.Round):
			o.Wrong++
		case mine:
			o.Faked -= int64(r.Amount)
			o.Honest++
		default:
			o.Honest++
		}
	}
	participants, err := w.Chain().Registry.Participants(ctx)
	for _, p := range participants {
		if slices.Contains(ours, w.Name(p.ID)) {
			o.Gain += int64(p.Stake) - int64(w.Genesis().Stake)
		}
	}
	for _, name := range ours {
		held, failed := w.Chain().Coins.Balance(ctx, w.ID(name))
		err = errors.Join(err, failed)
		o.Gain += int64(held) - sim.Funds
	}
	o.Faked += o.Gain
	return err
}

// config of the network, and the names of the adversary's accounts.
func (q Quarter) config() (c sim.Config, ours []string) {
	c = sim.Config{
		Seed: q.Seed, Job: q.Job, Workers: quarterWorkers, Verifiers: quarterVerifiers, Validators: 1, MaxBlocks: 20_000,
		Link: link.Link{Latency: 50 * time.Millisecond, Up: 1e7, Down: 1e7}, Unit: 2 * time.Second,
		Acts: map[string]adversary.Attack{}, Machines: map[string]sim.Machine{},
	}.Usual()
	defaults := spec.Default()
	if q.Seated {
		c.Verifiers = defaults.Strategy.Verification.Verifiers
	}
	terms := c.Terms()
	high, low := bits.Mul64(quarterPay, 1_000_000_000_000_000)
	ask, _ := bits.Div64(high, low, terms.UnitFlops)
	n := defaults.Strategy.Workers
	c.Order = &market.Order{
		ID: c.Job.ID(), Budget: 4 * quarterPay * uint64(terms.Rounds) * uint64(terms.Units), PriceCap: ask, Terms: terms,
		Workers:   market.Workers{Min: uint32(n.Min), Target: uint32(n.Target), Max: uint32(n.Max)},
		Verifiers: uint32(defaults.Strategy.Verification.Verifiers),
	}
	names := c.Names()
	workers := names[quarterWorkers*3/4 : quarterWorkers]
	auditors := names[quarterWorkers:]
	if !q.Seated {
		auditors = auditors[quarterVerifiers*3/4:]
	}
	ours = slices.Concat(workers, auditors)
	for _, name := range names {
		m := sim.Machine{Link: c.Link, Unit: c.Unit, Price: ask}
		if slices.Contains(ours, name) {
			m.Price = 1
			if act := q.act(workers, slices.Contains(workers, name)); len(act) > 0 {
				c.Acts[name] = act
			}
		} else if q.Unwatched && slices.Contains(names[quarterWorkers:], name) {
			c.Acts[name] = verifiers.Idle{}
		}
		c.Machines[name] = m
	}
	return c, ours
}

// act is what one of the adversary's does.
func (q Quarter) act(workers []string, works bool) (act adversary.Together) {
	switch {
	case q.Plan.Lies != nil && works:
		act = append(act, *q.Plan.Lies)
	case q.Plan.Lies != nil:
		friends := make([]string, len(workers))
		for i, name := range workers {
			friends[i] = sim.AccountOf(name)
		}
		act = append(act, verifiers.Colludes{With: friends})
	}
	if q.Plan.Forges != nil {
		act = append(act, *q.Plan.Forges)
	}
	return act
}

// attested looks at every checkpoint that is attested, and at those that stay.
type attested struct {
	wrong []terms.Checkpoint
	final int
}

// Block implements check.Checker.
func (a *attested) Block(w check.World) error {
	s, err := w.State()
	if err == nil && s.Base.Round > 0 && !w.Genesis().Job.Right(s.Base.Root) && !slices.Contains(a.wrong, s.Base) {
		a.wrong = append(a.wrong, s.Base)
	}
	return nil // it may not have begun
}

// End implements check.Checker.
func (a *attested) End(w check.World) error {
	s, err := w.State()
	for round := uint32(1); err == nil && round <= s.Base.Round; round++ {
		e, failed := w.Chain().Training.Lineage(context.Background(), w.Genesis().Job.ID(), round)
		if err = failed; err == nil && !w.Genesis().Job.Right(e.Attestation.Checkpoint.Root) {
			a.final++
		}
	}
	return err
}
