package sim

import (
	"testing"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"

	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/ledger"
)

// penniless is a network on the terms of a job whose file says nothing of verification, which workers without coins
// join. Their machines are slow, and proofs short.
func penniless(t *testing.T, workers ...string) Config {
	c := churning(t).Usual()
	c.Verifiers, c.MaxBlocks, c.Registers = 3, 20_000, true
	c.Genesis = func(doc *cmttypes.GenesisDoc) error {
		p := registry.DefaultParams()
		p.Earning.Rate, p.Earning.Bits, p.BeatBlocks, p.EpochBlocks = 100_000_000, 4, 5, 60
		return ledger.SetParams(doc, chainregistry.Name, p)
	}
	c.Machines = map[string]Machine{}
	for i, name := range workers {
		c.Machines[name] = Machine{Link: c.Link, Unit: c.Unit, Rate: 1_000_000_000}
		c.Joins = append(c.Joins, Newcomer{Name: name, Role: crew.Worker, At: time.Duration(2+3*i) * time.Second,
			Earns: true})
	}
	return c
}

// held is what a worker has, in uzen: coins and stake.
func held(t *testing.T, w *Network, name string) (coins, stake uint64) {
	t.Helper()
	coins = must(w.Chain().Coins.Balance(t.Context(), keyOf(name).Address()))(t)
	p := must(w.Chain().Registry.Participant(t.Context(), keyOf(name).Address()))(t)
	return coins, p.Stake
}

// A worker that never had coins registers, is measured, joins the run and is paid: all of it becomes its stake.
func TestAWorkerWithoutCoinsIsPaid(t *testing.T) {
	c := penniless(t, "poor")
	w := must(New(c.Seating(2), check.CoinsConserved{}, &check.PaidOnce{}, check.HonestNotSlashed{}))(t)
	must(w.Play())(t)
	o := must(w.Outcome())(t)
	coins, stake := held(t, w, "poor")
	if o.Phase != progress.Done || !o.Honest || o.Earned["poor"] == 0 || coins != 0 || stake != o.Earned["poor"] {
		t.Errorf("it earned %d uzen, and has %d and a stake of %d: %+v", o.Earned["poor"], coins, stake, o)
	}
}

// A person makes many accounts without coins, all of which lie. None gets anything, one of them is found in a run,
// after which no other joins it, no honest party loses stake, and the model is that of honest work.
func TestAFarmOfFreshAccountsGainsNothing(t *testing.T) {
	farm := []string{"farm-0", "farm-1", "farm-2", "farm-3", "farm-4", "farm-5"}
	c := penniless(t, farm...)
	c.Acts = map[string]adversary.Attack{}
	for _, name := range farm {
		c.Acts[name] = adversary.Skips{}
	}
	w := must(New(c.Seating(2), check.CoinsConserved{}, &check.PaidOnce{Guilty: farm},
		check.HonestNotSlashed{Guilty: farm}))(t)
	must(w.Play())(t)
	o := must(w.Outcome())(t)
	if o.Phase != progress.Done || !o.Honest {
		t.Errorf("the run ends in phase %d after %d rounds: %s; honest: %t", o.Phase, o.Rounds, o.Why, o.Honest)
	}
	convicted := 0
	for _, name := range farm {
		if coins, stake := held(t, w, name); coins+stake > 0 || o.Earned[name] > 0 {
			t.Errorf("%s has %d uzen and a stake of %d, and earned %d", name, coins, stake, o.Earned[name])
		}
		if p := must(w.Chain().Registry.Participant(t.Context(), keyOf(name).Address()))(t); p.Jailed {
			convicted++
		}
	}
	if convicted != 1 {
		t.Errorf("%d of them were convicted in one run", convicted)
	}
}
