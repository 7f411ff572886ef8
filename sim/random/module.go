package random

import (
	"encoding/json"

	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	simtypes "github.com/cosmos/cosmos-sdk/types/simulation"

	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/catalog"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/sim/random/abroad"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/genesis"
	"github.com/starling-network/starling/sim/random/hosts"
)

// simulated is a module of ours as the SDK's simulation sees it.
type simulated struct {
	name      string
	genesis   func(draw.Source) map[string][]entry // its collections, of those that are not empty
	says      []saying
	proposals []simsx.SimMsgFactoryX
	app       *app.App
}

// entry of a collection in a genesis.
type entry struct {
	Key   any `json:"key"`
	Value any `json:"value"`
}

// saying is a kind of message: its weight among the kinds, and the factory that draws its signer and fields.
type saying struct {
	weight uint32
	of     sdk.Msg
	say    func(*msgFactory) error
	app    *app.App
}

// Name implements module.HasName.
func (s simulated) Name() string { return s.name }

// GenerateGenesisState implements module.AppModuleSimulation.
func (s simulated) GenerateGenesisState(state *module.SimulationState) {
	if s.name == market.Name {
		genesis.Holders(state)
	}
	raw, err := json.Marshal(s.genesis(draw.Source{Rand: state.Rand}))
	if err != nil {
		panic(err) // the values of the program itself are wrong
	}
	state.GenState[s.name] = raw
}

// RegisterStoreDecoder implements module.AppModuleSimulation.
func (simulated) RegisterStoreDecoder(simtypes.StoreDecoderRegistry) {}

// WeightedOperations implements module.AppModuleSimulation, in place of which the SDK asks for WeightedOperationsX.
func (simulated) WeightedOperations(module.SimulationState) []simtypes.WeightedOperation { return nil }

// WeightedOperationsX implements simsx.HasWeightedOperationsX.
func (s simulated) WeightedOperationsX(_ simsx.WeightSource, to simsx.Registry) {
	for _, said := range s.says {
		said.app = s.app
		to.Add(said.weight, said)
	}
}

// ProposalMsgsX implements simsx.HasProposalMsgsX. Governance makes a twenty-fifth of the weight.
func (s simulated) ProposalMsgsX(_ simsx.WeightSource, to simsx.Registry) {
	for _, p := range s.proposals {
		to.Add(250, p)
	}
}

// MsgType implements simsx.SimMsgFactoryX.
func (s saying) MsgType() sdk.Msg { return s.of }

// DeliveryResultHandler implements simsx.SimMsgFactoryX.
func (saying) DeliveryResultHandler() simsx.SimDeliveryResultHandler { return refusable }

// ours are our modules, over so many blocks.
func ours(a *app.App, blocks int) (all []module.AppModuleSimulation) {
	for _, s := range []simulated{
		{name: beacon.Name, genesis: beacons(blocks), says: ofBeacon, proposals: beaconProposals},
		{name: registry.Name, genesis: registryGenesis, says: ofRegistry, proposals: registryProposals},
		{name: market.Name, genesis: marketGenesis, says: ofMarket, proposals: marketProposals},
		{name: reward.Name, genesis: rewardGenesis, says: ofReward, proposals: rewardProposals},
		{name: training.Name, genesis: nothing, says: ofTraining, proposals: trainingProposals},
		{name: sale.Name, genesis: nothing, says: ofSale},
		{name: catalog.Name, genesis: nothing, says: ofCatalog},
		{name: arena.Name, genesis: nothing, says: ofArena},
		{name: delegation.Name, genesis: nothing, says: ofDelegation},
		{name: payout.Name, says: ofPayout, genesis: func(d draw.Source) map[string][]entry {
			return map[string][]entry{"params": {{"item", abroad.Params(d)}}}
		}},
		{name: hosting.Name, says: ofHosting, genesis: func(d draw.Source) map[string][]entry {
			return map[string][]entry{"params": {{"item", hosts.Params(d)}}}
		}, proposals: []simsx.SimMsgFactoryX{governed(hosts.Proposed)}},
	} {
		s.app = a
		all = append(all, s)
	}
	return all
}

func nothing(draw.Source) map[string][]entry { return nil }
