// Package app wires the modules of the SDK and our own into one application for CometBFT: accounts, coins, staking,
// slashing, governance and fees are the SDK's, the rest is chain/x. It decides which modules exist and in which order
// they run. It has no rules and starts no process.
package app

import (
	"context"
	"encoding/json"
	"fmt"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	"github.com/cosmos/cosmos-sdk/baseapp"
	"github.com/cosmos/cosmos-sdk/runtime"
	pruning "github.com/cosmos/cosmos-sdk/store/v2/pruning/types"
	"github.com/cosmos/cosmos-sdk/store/v2/snapshots"
	snapshottypes "github.com/cosmos/cosmos-sdk/store/v2/snapshots/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/x/auth"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/cosmos/cosmos-sdk/x/bank"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/cosmos-sdk/x/consensus"
	consensustypes "github.com/cosmos/cosmos-sdk/x/consensus/types"
	"github.com/cosmos/cosmos-sdk/x/distribution"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	"github.com/cosmos/cosmos-sdk/x/evidence"
	evidencetypes "github.com/cosmos/cosmos-sdk/x/evidence/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	feegrantmodule "github.com/cosmos/cosmos-sdk/x/feegrant/module"
	"github.com/cosmos/cosmos-sdk/x/genutil"
	genutiltypes "github.com/cosmos/cosmos-sdk/x/genutil/types"
	"github.com/cosmos/cosmos-sdk/x/gov"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	"github.com/cosmos/cosmos-sdk/x/slashing"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	"github.com/cosmos/cosmos-sdk/x/staking"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"
	"github.com/cosmos/ibc-go/v11/modules/apps/transfer"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	ibc "github.com/cosmos/ibc-go/v11/modules/core"
	ibcexported "github.com/cosmos/ibc-go/v11/modules/core/exported"
	tendermint "github.com/cosmos/ibc-go/v11/modules/light-clients/07-tendermint"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/app/absent"
	"github.com/starling-network/starling/chain/app/lane"
	"github.com/starling-network/starling/chain/app/queries"
	"github.com/starling-network/starling/chain/app/signature"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/wire"
	_ "github.com/starling-network/starling/chain/wire/ibc" // its messages
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
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/chain/x/upgrade"
)

// Validator holds the keys with which an application extends the votes of its validator. An application without them
// executes the chain and adds nothing to votes.
type Validator struct {
	Address []byte             // consensus address, 20 bytes
	VRF     ed25519.PrivateKey // key for the beacon
}

// Config configures an application.
type Config struct {
	ChainID   string         // must be that of the genesis
	Validator Validator      // zero: adds nothing to votes
	Referee   works.Referee  // part of the rules, the same for all validators of a chain; nil: the referee that recomputes
	Home      string         // where an application that is too old records the upgrade that it waits for
	Snapshots *Snapshots     // for nodes that join later; nil: none are taken
	Upgrades  []Upgrade      // nil: Upgrades
	Deposits  payout.Watcher // sees deposits on other chains, for the votes of the validator; nil: none
	GasPrice  sdk.DecCoins   // price of a unit of gas for entering the pool; nil: none
	Governed  bool           // the price set by governance also applies, if it is higher

	// Simulated is for processes with many applications, or with much other work. Old versions of the state are pruned
	// at once, not by goroutines of the stores, which never end (iavl v1.2.8) and keep the whole state in memory; and
	// few nodes of the trees stay in memory.
	Simulated bool
}

// Snapshots say how often snapshots of the state are taken, and where they are stored.
type Snapshots struct {
	Store    *snapshots.Store
	Interval uint64 // blocks
	Keep     uint32
}

// App is the application.
type App struct {
	*baseapp.BaseApp
	*wire.Encoding

	chain  string // chain ID
	stores map[string]*storetypes.KVStoreKey
	// kept is a *keepers, which keepersOf returns. Every package that reads the type of a field compiles the generic code
	// of the SDK's collections in it again: with the type of the keepers here, 40 MB in each of 16 packages.
	kept       any
	modules    *module.Manager
	basics     module.BasicManager
	signatures signature.Memory
	asked      queries.Turns
	simulated  queries.Turns
	reads      *queries.Store
	passing    sdk.AnteHandler
	governed   bool // asks at least the gas price set by governance
	lane       *lane.Lane
	// extends the vote of this validator, except during ExtendVoteOf
	voter  sdk.ExtendVoteHandler
	voters map[string]sdk.ExtendVoteHandler // used by ExtendVoteOf, by address
}

// cachedNodes is the number of tree nodes of each module that stay in memory, of about half a KiB each. With the SDK's
// default, 500,000, a validator grows by gigabytes in its first days.
const cachedNodes = 20_000

// simulatedNodes is that number where an application is one part of a simulation: the collector looks through all of
// them each time, and so often that they took two fifths of the time of one.
const simulatedNodes = 1_000

// New opens the application over a database, which closes with the application.
func New(logger log.Logger, db dbm.DB, c Config) (*App, error) {
	e, err := wire.NewEncoding()
	if err != nil {
		return nil, err
	}
	options := []func(*baseapp.BaseApp){
		baseapp.SetChainID(c.ChainID), baseapp.SetMinGasPrices(c.GasPrice.String()),
		baseapp.SetPruning(pruning.NewCustomPruningOptions(100, 100)), baseapp.SetQueryGasLimit(QueryGas),
		baseapp.SetIAVLCacheSize(cachedNodes),
	}
	if c.Simulated {
		options = append(options, baseapp.SetIAVLSyncPruning(true), baseapp.SetIAVLCacheSize(simulatedNodes))
	}
	if s := c.Snapshots; s != nil {
		options = append(options, baseapp.SetSnapshot(s.Store, snapshottypes.NewSnapshotOptions(s.Interval, s.Keep)))
	}
	a := &App{Encoding: e, chain: c.ChainID, asked: make(queries.Turns, answered),
		simulated: make(queries.Turns, simulations), governed: c.Governed, lane: lane.New(),
		BaseApp: baseapp.NewBaseApp(wire.Name, logger, db, e.Tx.TxDecoder(), options...)}
	a.reads = &queries.Store{MultiStore: a.CommitMultiStore()}
	a.SetQueryMultiStore(a.reads)
	a.SetVersion(wire.Version)
	a.SetInterfaceRegistry(e.Registry)
	a.SetTxEncoder(e.Tx.TxEncoder())
	if c.Referee == nil {
		c.Referee = recompute
	}
	a.stores = storetypes.NewKVStoreKeys(storeNames...)
	keepers, err := newKeepers(a, a.stores, logger, c)
	if err != nil {
		return nil, err
	}
	a.kept = keepers
	a.SetParamStore(keepers.consensus.ParamsStore)
	a.MountKVStores(a.stores)
	a.arrange()
	configurator := module.NewConfigurator(e.Codec, a.MsgServiceRouter(), a.GRPCQueryRouter())
	if err := a.modules.RegisterServices(configurator); err != nil {
		return nil, err
	}
	absent.Register(a.GRPCQueryRouter(), keepers.bank, keepers.reward, keepers.registry)
	a.handle(c.Validator)
	if err := a.upgrades(c, configurator); err != nil {
		return nil, err
	}
	return a, a.LoadLatestVersion()
}

// Early verifies the signature of a transaction before its CheckTx, so that CheckTx takes less time. Unlike the calls
// of CometBFT, it may be called at any time, concurrently and with any bytes.
func (a *App) Early(transaction []byte) { a.signatures.Early(a.chain, transaction) }

// ExtendVoteOf extends the vote of another validator whose keys are in the same process: for tests in which one
// application stands for all validators of a chain. No other call may run meanwhile.
func (a *App) ExtendVoteOf(ctx context.Context, v Validator,
	req *abci.RequestExtendVote) (*abci.ResponseExtendVote, error) {
	other := a.voters[string(v.Address)]
	if other == nil {
		other = keepersOf(a).beacon.ExtendVote(v.VRF, v.Address, a.sights)
		if a.voters == nil {
			a.voters = map[string]sdk.ExtendVoteHandler{}
		}
		a.voters[string(v.Address)] = other
	}
	own := a.voter
	a.voter = other
	defer func() { a.voter = own }()
	return a.ExtendVote(ctx, req)
}

func recompute(spec canon.Digest, opening []byte, numerics uint32) (works.Case, error) {
	r, err := referee.Open(spec, opening, numerics)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// arrange makes the modules and sets the orders in which they run.
func (a *App) arrange() {
	k, cdc := keepersOf(a), a.Codec
	a.modules = module.NewManager(
		auth.NewAppModule(cdc, k.accounts.AccountKeeper, nil, nil),
		bank.NewAppModule(cdc, k.bank, k.accounts, nil),
		staking.NewAppModule(cdc, k.staking, k.accounts, k.bank, nil),
		distribution.NewAppModule(cdc, k.distribution, k.accounts, k.bank, k.staking, nil),
		slashing.NewAppModule(cdc, k.slashing, k.accounts, k.bank, k.staking, nil, a.Registry),
		gov.NewAppModule(cdc, k.gov, k.accounts, k.bank, nil),
		consensus.NewAppModule(cdc, k.consensus),
		feegrantmodule.NewAppModule(cdc, k.accounts, k.bank, k.feegrant, a.Registry),
		evidence.NewAppModule(*k.evidence),
		upgrade.NewModule(k.upgrade, runtime.NewKVStoreService(a.stores[upgradetypes.StoreKey])),
		ibc.NewAppModule(k.ibc), transfer.NewAppModule(k.transfer), tendermint.NewAppModule(k.tendermint),
		genutil.NewAppModule(k.accounts, k.staking, a, a.Tx),
		beacon.NewModule(k.beacon), registry.NewModule(k.registry), market.NewModule(k.market), reward.NewModule(k.reward),
		training.NewModule(k.training), sale.NewModule(k.sale), payout.NewModule(k.payout), catalog.NewModule(k.catalog),
		hosting.NewModule(k.hosting), arena.NewModule(k.arena), delegation.NewModule(k.delegation),
	)
	a.basics = module.NewBasicManagerFromManager(a.modules, map[string]module.AppModuleBasic{
		genutiltypes.ModuleName: genutil.NewAppModuleBasic(genutiltypes.DefaultMessageValidator),
	})
	a.basics.RegisterInterfaces(a.Registry)
	// The rules of an upgrade hold from its block on.
	a.modules.SetOrderPreBlockers(upgradetypes.ModuleName, authtypes.ModuleName)
	a.modules.SetOrderBeginBlockers(distrtypes.ModuleName, slashingtypes.ModuleName, evidencetypes.ModuleName,
		stakingtypes.ModuleName, ibcexported.ModuleName)
	// The SDK requires bank first. A run starts in the block in which its order is matched.
	a.modules.SetOrderEndBlockers(banktypes.ModuleName, govtypes.ModuleName, stakingtypes.ModuleName, feegrant.ModuleName,
		registry.Name, delegation.Name, market.Name, training.Name, reward.Name, sale.Name, hosting.Name, arena.Name)
	// Genesis transactions need all other modules.
	order := []string{authtypes.ModuleName, banktypes.ModuleName, distrtypes.ModuleName, stakingtypes.ModuleName,
		slashingtypes.ModuleName, govtypes.ModuleName, consensustypes.ModuleName, feegrant.ModuleName,
		evidencetypes.ModuleName, upgradetypes.ModuleName,
		ibcexported.ModuleName, transfertypes.ModuleName, tendermint.ModuleName,
		beacon.Name, registry.Name, market.Name, reward.Name, training.Name, sale.Name, payout.Name, catalog.Name,
		hosting.Name, arena.Name, delegation.Name, genutiltypes.ModuleName}
	a.modules.SetOrderInitGenesis(order...)
	a.modules.SetOrderExportGenesis(order...)
}

// handle sets the handlers that CometBFT calls.
func (a *App) handle(v Validator) {
	keepers := keepersOf(a)
	a.passing = a.ante()
	a.SetAnteHandler(a.passing)
	a.SetInitChainer(func(ctx sdk.Context, req *abci.RequestInitChain) (*abci.ResponseInitChain, error) {
		var state map[string]json.RawMessage
		if err := json.Unmarshal(req.AppStateBytes, &state); err != nil {
			return nil, fmt.Errorf("genesis: %w", err)
		}
		a.format(ctx, feegrant.StoreKey, evidencetypes.StoreKey, beacon.Name, registry.Name, market.Name, reward.Name,
			training.Name, sale.Name, payout.Name, catalog.Name, hosting.Name, arena.Name, delegation.Name)
		if err := keepers.upgrade.SetModuleVersionMap(ctx, a.modules.GetVersionMap()); err != nil {
			return nil, err
		}
		r, err := a.modules.InitGenesis(ctx, a.Codec, state)
		if err != nil {
			return nil, err
		}
		return r, keepers.accounts.Renumber(ctx)
	})
	a.SetPreBlocker(func(ctx sdk.Context, req *abci.RequestFinalizeBlock) (*sdk.ResponsePreBlock, error) {
		for _, tx := range req.Txs {
			a.lane.Drop(tx)
		}
		if err := keepers.beacon.PreBlock(ctx, req); err != nil {
			return nil, err
		}
		return a.modules.PreBlock(ctx)
	})
	a.SetBeginBlocker(a.modules.BeginBlock)
	a.SetEndBlocker(a.modules.EndBlock)
	a.voter = keepers.beacon.ExtendVote(v.VRF, v.Address, a.sights)
	a.SetExtendVoteHandler(func(ctx sdk.Context, req *abci.RequestExtendVote) (*abci.ResponseExtendVote, error) {
		return a.voter(ctx, req)
	})
	a.SetVerifyVoteExtensionHandler(keepers.beacon.VerifyVote)
	a.SetPrepareProposal(proposals{a}.prepare)
	a.SetProcessProposal(proposals{a}.process)
}
