package sim

import (
	"testing"

	cmttypes "github.com/cometbft/cometbft/types"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/ledger"
	"github.com/starling-network/starling/sim/workload"
)

// inNumerics are the parameters of a market in which a version of the numerics is in force, and another one from a
// height on.
func inNumerics(version, next uint32, height int64) func(*cmttypes.GenesisDoc) error {
	return func(doc *cmttypes.GenesisDoc) error {
		p := market.DefaultParams()
		p.Numerics, p.NextNumerics, p.NumericsHeight = version, next, height
		return ledger.SetParams(doc, chainmarket.Name, p)
	}
}

// A job of each version is trained to the end, while the next version comes into force, and a worker that computes in
// the other version is convicted: the chain recomputes a part of an operator in the version of the job.
func TestAWorkerThatComputesInAnotherVersionIsConvicted(t *testing.T) {
	for _, version := range []uint32{kernel.Version1, kernel.Version2} {
		c := sized(t, workload.Size{Rounds: 3, Units: 4, Steps: 6, Segment: 3, Numerics: version})
		c.Genesis = inNumerics(version, 3-version, 12)
		c.Acts = map[string]adversary.Attack{"worker-1": adversary.OtherNumerics{}}
		guilty := []string{"worker-1"}
		o := played(t, c, check.CoinsConserved{}, &check.PaidOnce{Guilty: guilty}, check.HonestNotSlashed{Guilty: guilty},
			&check.Lineage{Honest: true})
		if o.Phase != progress.Done || !o.Honest || o.Slashed["worker-1"] == 0 {
			t.Errorf("version %d: the run ends in phase %d, honest: %v, slashed: %v", version, o.Phase, o.Honest, o.Slashed)
		}
	}
}

// An order of the version that is in force at its height is placed, and none of another one. Governance schedules a
// change for a later height, and changes nothing at once.
func TestNumericsChangeAtTheirHeight(t *testing.T) {
	const height = 12
	s := newState(t, inNumerics(kernel.Version1, kernel.Version2, height), "citizen")
	citizen := keyOf("citizen")
	order := func(name string) *marketpb.MsgOrder { return asked(name, citizen.Address(), 100, 1, 1) }
	s.does(citizen, order("before")) // every opening is of version 1 here
	for s.Height < height {
		s.next()
	}
	s.fails(chainmarket.Name, 18, citizen, order("after"))

	now := must(s.Queries.Market.Params(t.Context()))(t)
	for name, p := range map[string]market.Params{
		"version 1 at once":         {Numerics: 1},
		"version 1 from its past":   {Numerics: 2, NextNumerics: 1, NumericsHeight: 3},
		"a change without a height": {Numerics: 2, NextNumerics: 1},
		"a version of no build":     {Numerics: 2, NextNumerics: kernel.Newest + 1, NumericsHeight: s.Height + 100},
	} {
		p.FeePPM, p.PauseBlocks = now.FeePPM, now.PauseBlocks
		if p.Validate() == nil && p.Follows(now, s.Height) == nil {
			t.Errorf("%s: the parameters govern", name)
		}
	}
	p := now
	p.Numerics, p.NextNumerics, p.NumericsHeight = 2, 1, s.Height+100
	if err := p.Follows(now, s.Height); err != nil || p.NumericsAt(s.Height+99) != 2 || p.NumericsAt(s.Height+100) != 1 {
		t.Errorf("a change in 100 blocks: %v", err)
	}
	silent := p
	silent.NextNumerics, silent.NumericsHeight = 0, 0
	if err := silent.Follows(p, s.Height); err == nil {
		t.Error("parameters that name no change drop the one that is scheduled")
	}
	keep := p
	keep.NextNumerics = 2
	if err := keep.Follows(p, s.Height); err != nil {
		t.Errorf("a change to the version in force: %v", err)
	}
}
