// Package genesis makes the parts of the first state of a random play that the SDK's simulation does not make as the
// chain needs them: plain accounts, coins of orders, and modules that print nothing.
package genesis

import (
	"encoding/binary"
	"encoding/json"

	sdkmath "cosmossdk.io/math"
	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	ibcexported "github.com/cosmos/ibc-go/v11/modules/core/exported"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/sim/random/draw"
)

// quiet is a module that simulates itself, but for its genesis, which is the default: those of IBC print what they
// draw.
type quiet struct {
	proposer
}

type proposer interface {
	module.AppModuleSimulation
	simsx.HasLegacyProposalMsgs
}

// GenerateGenesisState implements module.AppModuleSimulation.
func (quiet) GenerateGenesisState(*module.SimulationState) {}

// Hush replaces the modules that print.
func Hush(all []module.AppModuleSimulation) {
	for i, m := range all {
		if m, ok := m.(proposer); ok && (m.(module.HasName).Name() == ibcexported.ModuleName ||
			m.(module.HasName).Name() == transfertypes.ModuleName) {
			all[i] = quiet{m}
		}
	}
}

// Accounts of the genesis are plain ones. Those of the SDK's simulation vest, for which the chain has no module.
func Accounts(s *module.SimulationState) (all authtypes.GenesisAccounts) {
	for _, a := range s.Accounts {
		all = append(all, authtypes.NewBaseAccountWithAddress(a.Address))
	}
	return all
}

// Foreign are coins in which accounts order and stake, besides the network's own.
var Foreign = []coin.Registered{
	{Coin: coin.Coin{Denom: "ausdc", Symbol: "usdc", Exponent: 6}, Waiting: 1000},
	{Coin: coin.Coin{Denom: "adai", Symbol: "dai", Exponent: 18}, Waiting: 1_000_000},
}

// Holders gives every account of a genesis some of each coin, and a part of a grain that no order can hold.
func Holders(state *module.SimulationState) {
	var bank banktypes.GenesisState
	state.Cdc.MustUnmarshalJSON(state.GenState[banktypes.ModuleName], &bank)
	for i := range bank.Balances {
		for _, c := range Foreign {
			more := sdk.NewCoin(c.Denom, adapter.CoinsOf(c.Coin, 1_000_000_000)[0].Amount.Add(sdkmath.NewInt(int64(i))))
			bank.Balances[i].Coins = bank.Balances[i].Coins.Add(more)
			bank.Supply = bank.Supply.Add(more)
		}
	}
	state.GenState[banktypes.ModuleName] = json.RawMessage(state.Cdc.MustMarshalJSON(&bank))
}

// Start holds the first draws of the engine, in place of those that it would make from the seed: how often evidence is
// about a block long past, how many accounts there are, and how often there is any. By its own draws validators are
// soon gone in half of all seeds.
func Start(seed int64) []byte {
	var b []byte
	draw := uint64(seed)
	for _, bits := range []uint64{
		draw * 0x9e3779b97f4a7c15 >> 11,        // a part of one in 53 bits
		(40 + draw%60 - 2) << 32,               // accounts above two, in the high half
		(draw * 0xd1342543de82ef95 >> 11) / 50, // a part of one, at most a fiftieth
	} {
		b = binary.BigEndian.AppendUint64(b, bits)
	}
	return b
}

// Schedule draws a schedule of the emission.
func Schedule(d draw.Source) reward.Schedule {
	base := uint32(d.Intn(500_000))
	work := uint32(d.Intn(1_000_000 - int(base)))
	return reward.Schedule{PerEpoch: d.Below(10_000_000), Halving: uint32(d.Intn(20)), BasePPM: base, WorkPPM: work,
		BandwidthPPM: 1_000_000 - base - work}
}
