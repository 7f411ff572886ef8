package app

import (
	"errors"

	corestore "cosmossdk.io/core/store"
	"cosmossdk.io/log/v2"
	"github.com/cosmos/cosmos-sdk/runtime"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	bankkeeper "github.com/cosmos/cosmos-sdk/x/bank/keeper"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	consensuskeeper "github.com/cosmos/cosmos-sdk/x/consensus/keeper"
	consensustypes "github.com/cosmos/cosmos-sdk/x/consensus/types"
	distrkeeper "github.com/cosmos/cosmos-sdk/x/distribution/keeper"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	evidencekeeper "github.com/cosmos/cosmos-sdk/x/evidence/keeper"
	evidencetypes "github.com/cosmos/cosmos-sdk/x/evidence/types"
	"github.com/cosmos/cosmos-sdk/x/feegrant"
	feegrantkeeper "github.com/cosmos/cosmos-sdk/x/feegrant/keeper"
	govkeeper "github.com/cosmos/cosmos-sdk/x/gov/keeper"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	govbeta "github.com/cosmos/cosmos-sdk/x/gov/types/v1beta1"
	slashingkeeper "github.com/cosmos/cosmos-sdk/x/slashing/keeper"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingkeeper "github.com/cosmos/cosmos-sdk/x/staking/keeper"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	upgradekeeper "github.com/cosmos/cosmos-sdk/x/upgrade/keeper"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"
	"github.com/cosmos/ibc-go/v11/modules/apps/transfer"
	transferkeeper "github.com/cosmos/ibc-go/v11/modules/apps/transfer/keeper"
	transfertypes "github.com/cosmos/ibc-go/v11/modules/apps/transfer/types"
	transferv2 "github.com/cosmos/ibc-go/v11/modules/apps/transfer/v2"
	porttypes "github.com/cosmos/ibc-go/v11/modules/core/05-port/types"
	ibcapi "github.com/cosmos/ibc-go/v11/modules/core/api"
	ibcexported "github.com/cosmos/ibc-go/v11/modules/core/exported"
	ibckeeper "github.com/cosmos/ibc-go/v11/modules/core/keeper"
	tendermint "github.com/cosmos/ibc-go/v11/modules/light-clients/07-tendermint"

	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/chain/app/account"
	"github.com/starling-network/starling/chain/app/delegate"
	"github.com/starling-network/starling/chain/app/room"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/chain/wire"
	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/chain/x/catalog"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/chain/x/training"
)

// storeNames are the stores of the application. The name of a store is the name of its module.
var storeNames = []string{
	authtypes.StoreKey, banktypes.StoreKey, stakingtypes.StoreKey, distrtypes.StoreKey, slashingtypes.StoreKey,
	govtypes.StoreKey, consensustypes.StoreKey, feegrant.StoreKey, evidencetypes.StoreKey, upgradetypes.StoreKey,
	ibcexported.StoreKey, transfertypes.StoreKey, beacon.Name, registry.Name, market.Name, reward.Name, training.Name,
	sale.Name, payout.Name, catalog.Name, hosting.Name, arena.Name, delegation.Name,
}

// permissions are the rights of the module accounts.
var permissions = map[string][]string{
	authtypes.FeeCollectorName:     nil,
	distrtypes.ModuleName:          nil,
	stakingtypes.BondedPoolName:    {authtypes.Burner, authtypes.Staking},
	stakingtypes.NotBondedPoolName: {authtypes.Burner, authtypes.Staking},
	govtypes.ModuleName:            {authtypes.Burner},
	transfertypes.ModuleName:       {authtypes.Minter, authtypes.Burner}, // vouchers for coins of other chains
	registry.Name:                  nil,                                  // holds all stakes of participants
	market.Name:                    nil,                                  // holds all budgets of jobs
	sale.Name:                      nil,                                  // holds prices and bonds of sales of files
	catalog.Name:                   nil,                                  // holds shares of models that are offered
	payout.Name:                    {authtypes.Minter, authtypes.Burner}, // holds ZEN that are tokens on other chains
	hosting.Name:                   nil,                                  // holds bonds of providers, and channels
	arena.Name:                     nil,                                  // holds prizes of contests, and bonds
	delegation.Name:                nil,                                  // holds delegated stake, and its pay
	reward.Name:                    {authtypes.Minter},                   // holds the emission, shares of models, revenue
}

// keepers are the keepers of all modules.
type keepers struct {
	accounts     account.Keeper
	bank         bankkeeper.BaseKeeper
	staking      *stakingkeeper.Keeper
	distribution distrkeeper.Keeper
	slashing     slashingkeeper.Keeper
	gov          *govkeeper.Keeper
	consensus    consensuskeeper.Keeper
	feegrant     feegrantkeeper.Keeper
	evidence     *evidencekeeper.Keeper
	upgrade      *upgradekeeper.Keeper
	ibc          *ibckeeper.Keeper
	transfer     *transferkeeper.Keeper
	tendermint   tendermint.LightClientModule

	beacon   *beacon.Keeper
	registry *registry.Keeper
	market   *market.Keeper
	reward   *reward.Keeper
	training *training.Keeper
	sale     *sale.Keeper
	payout   *payout.Keeper
	hosting  *hosting.Keeper
	catalog  *catalog.Keeper
	arena    *arena.Keeper

	delegation *delegation.Keeper
}

// closed are the accounts that cannot receive coins: their balances must match the ledgers of their modules.
func closed() map[string]bool {
	accounts := map[string]bool{}
	for name := range permissions {
		// Governance receives coins, because it may order and offer work.
		if name != govtypes.ModuleName {
			accounts[authtypes.NewModuleAddress(name).String()] = true
		}
	}
	return accounts
}

// keepersOf returns the keepers of an application. It is no method: packages that import App read all its methods.
func keepersOf(a *App) *keepers { return a.kept.(*keepers) }

func newKeepers(a *App, stores map[string]*storetypes.KVStoreKey, logger log.Logger, c Config) (*keepers, error) {
	k, cdc := &keepers{}, a.Codec
	store := func(name string) corestore.KVStoreService { return runtime.NewKVStoreService(stores[name]) }
	governance := authtypes.NewModuleAddress(govtypes.ModuleName).String()

	k.consensus = consensuskeeper.NewKeeper(cdc, store(consensustypes.StoreKey), governance, runtime.EventService{})
	k.accounts = account.Keeper{AccountKeeper: authkeeper.NewAccountKeeper(cdc, store(authtypes.StoreKey),
		authtypes.ProtoBaseAccount, permissions, a.Accounts, wire.Name, governance)}
	k.bank = bankkeeper.NewBaseKeeper(cdc, store(banktypes.StoreKey), k.accounts, closed(), governance, logger)
	k.staking = stakingkeeper.NewKeeper(cdc, store(stakingtypes.StoreKey), k.accounts, k.bank, governance, a.Validators,
		a.Consensus)
	k.distribution = distrkeeper.NewKeeper(cdc, store(distrtypes.StoreKey), k.accounts, k.bank, k.staking,
		authtypes.FeeCollectorName, governance)
	k.slashing = slashingkeeper.NewKeeper(cdc, nil, store(slashingtypes.StoreKey), k.staking, governance)
	k.feegrant = feegrantkeeper.NewKeeper(cdc, store(feegrant.StoreKey), k.accounts).SetBankKeeper(k.bank)
	k.evidence = evidencekeeper.NewKeeper(cdc, store(evidencetypes.StoreKey), k.staking, k.slashing, a.Accounts,
		runtime.ProvideCometInfoService())
	k.upgrade = upgradekeeper.NewKeeper(nil, store(upgradetypes.StoreKey), cdc, c.Home, a.BaseApp, governance)
	k.staking.SetHooks(stakingtypes.NewMultiStakingHooks(k.distribution.Hooks(), k.slashing.Hooks()))
	k.gov = govkeeper.NewKeeper(cdc, store(govtypes.StoreKey), k.accounts, k.bank, k.distribution, a.MsgServiceRouter(),
		govtypes.DefaultConfig(), governance, govkeeper.NewDefaultCalculateVoteResultsAndVotingPower(k.staking))
	// proposals in the format of old wallets
	k.gov.SetLegacyRouter(govbeta.NewRouter().AddRoute(govtypes.RouterKey, govbeta.ProposalHandler))

	k.connect(a, store, governance)

	var errs [11]error
	k.beacon, errs[0] = beacon.NewKeeper(store(beacon.Name), governance, k.staking)
	k.registry, errs[1] = registry.NewKeeper(store(registry.Name), authtypes.NewModuleAddress(registry.Name), governance,
		k.bank, k.distribution, k.beacon)
	k.delegation, errs[10] = delegation.NewKeeper(store(delegation.Name), k.registry, k.bank)
	backed := delegation.Paying{Paying: registry.Paying{Keeper: k.registry}, Pools: k.delegation}
	k.market, errs[2] = market.NewKeeper(store(market.Name), authtypes.NewModuleAddress(market.Name), governance, k.bank,
		k.distribution, backed, k.registry.CoinStakes, k.beacon)
	k.reward, errs[3] = reward.NewKeeper(store(reward.Name), governance, k.bank,
		reward.Community{Payer: k.distribution, FeePool: k.distribution.FeePool}, backed, k.market, k.market.Coins)
	k.catalog, errs[8] = catalog.NewKeeper(store(catalog.Name), authtypes.NewModuleAddress(catalog.Name), k.bank,
		k.market.Coins, k.market, k.reward)
	k.training, errs[4] = training.NewKeeper(store(training.Name), governance, k.market, backed, k.reward,
		k.registry.CoinStakes, k.beacon, k.accounts, c.Referee, sealed.RootFuncs{})
	held := func(module string) custody.Custody {
		return custody.Custody{Module: module, Account: authtypes.NewModuleAddress(module), Bank: k.bank,
			Pool: k.distribution, Coins: k.market.Coins}
	}
	k.sale, errs[5] = sale.NewKeeper(store(sale.Name), held(sale.Name), k.catalog, k.reward, k.beacon)
	k.payout, errs[6] = payout.NewKeeper(store(payout.Name), governance, k.bank, c.Deposits)
	k.hosting, errs[7] = hosting.NewKeeper(store(hosting.Name), held(hosting.Name), governance,
		reward.Revenue{Keeper: k.reward})
	k.arena, errs[9] = arena.NewKeeper(store(arena.Name), held(arena.Name), k.beacon, k.registry)
	k.beacon.Connect(censorship.Judge{Duties: k.training, Penalties: k.slashing, Read: a.read, Largest: room.MaxTx,
		LargestGas: room.MaxGas}, k.payout)
	k.delegation.Connect(held(delegation.Name), k.reward)
	k.registry.Connect(training.Exits{Keeper: k.training})
	k.registry.Fleets.Pay(delegate.Fees{Allowances: k.feegrant})
	k.registry.CoinStakes.Connect(k.market.Coins)
	k.market.Connect(k.training)
	k.reward.Connect(k.training, k.catalog)
	k.training.Connect(k.catalog)
	k.bank.AppendSendRestriction(k.reward.BeforeSend)
	return k, errors.Join(errs[:]...)
}

// connect makes the modules that communicate with other chains: light clients of CometBFT, connections, channels, and
// transfers of coins.
func (k *keepers) connect(a *App, store func(string) corestore.KVStoreService, governance string) {
	k.ibc = ibckeeper.NewKeeper(a.Codec, store(ibcexported.StoreKey), k.upgrade, governance)
	k.transfer = transferkeeper.NewKeeper(a.Codec, a.Accounts, store(transfertypes.StoreKey), k.ibc.ChannelKeeper,
		a.MsgServiceRouter(), k.accounts, k.bank, governance)
	k.ibc.SetRouter(porttypes.NewRouter().AddRoute(transfertypes.ModuleName, transfer.NewIBCModule(k.transfer)))
	k.ibc.SetRouterV2(ibcapi.NewRouter().AddRoute(transfertypes.PortID, transferv2.NewIBCModule(k.transfer)))
	k.tendermint = tendermint.NewLightClientModule(a.Codec, k.ibc.ClientKeeper.GetStoreProvider())
	k.ibc.ClientKeeper.AddRoute(tendermint.ModuleName, &k.tendermint)
}
