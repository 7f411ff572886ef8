package app

import (
	"context"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/starling-network/starling/chain/x/arena"
	"github.com/starling-network/starling/chain/x/catalog"
	"github.com/starling-network/starling/chain/x/delegation"
	"github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/sale"
)

// Upgrade is a change of the rules of a running chain. A governance proposal names the upgrade and its height. At that
// height, an application that does not have the upgrade stops; the others migrate the state and continue.
type Upgrade struct {
	Name   string
	Stores storetypes.StoreUpgrades          // stores that it adds, renames or deletes
	Apply  func(context.Context, *App) error // called before the migrations of the modules; nil: nothing to do
}

// Upgrades are the upgrades that this version has, in the order of their heights. v0.2 takes a chain of release 0.1.0,
// whose other modules read their state as it was.
var Upgrades = []Upgrade{adds("v0.2", sale.Name, payout.Name, catalog.Name, hosting.Name, arena.Name, delegation.Name)}

// adds is an upgrade that adds modules. Their state is empty, as in a genesis that does not name them.
func adds(upgrade string, modules ...string) Upgrade {
	return Upgrade{Name: upgrade, Stores: storetypes.StoreUpgrades{Added: modules},
		Apply: func(ctx context.Context, a *App) error {
			a.format(sdk.UnwrapSDKContext(ctx), modules...)
			return nil
		}}
}

// format writes a format version into stores that may be empty: an empty one cannot be opened again (iavl v1.2.8).
func (a *App) format(ctx sdk.Context, modules ...string) {
	for _, name := range modules {
		ctx.KVStore(a.stores[name]).Set([]byte("format"), []byte{1})
	}
}

// upgrades registers the handlers of the upgrades.
func (a *App) upgrades(c Config, configurator module.Configurator) (err error) {
	list := c.Upgrades
	if list == nil {
		list = Upgrades
	}
	var waiting upgradetypes.Plan
	if c.Home != "" {
		if waiting, err = keepersOf(a).upgrade.ReadUpgradeInfoFromDisk(); err != nil {
			return fmt.Errorf("app: reading which upgrade the chain waits for: %w", err)
		}
	}
	for _, u := range list {
		keepersOf(a).upgrade.SetUpgradeHandler(u.Name,
			func(ctx context.Context, _ upgradetypes.Plan, from module.VersionMap) (module.VersionMap, error) {
				if u.Apply != nil {
					if err := u.Apply(ctx, a); err != nil {
						return nil, fmt.Errorf("app: upgrade %s: %w", u.Name, err)
					}
				}
				return a.modules.RunMigrations(ctx, configurator, from)
			})
		if u.Name == waiting.Name {
			a.SetStoreLoader(upgradetypes.UpgradeStoreLoader(waiting.Height, &u.Stores))
		}
	}
	return nil
}
