package app

import (
	"context"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"
)

// Upgrade is a change of the rules of a running chain. A proposal names it and its height; there every application
// stops that does not know it, and the others change what is stored and go on.
type Upgrade struct {
	Name   string
	Stores storetypes.StoreUpgrades          // that it adds, renames or deletes
	Apply  func(context.Context, *App) error // before the modules migrate what they hold; nil: nothing to do
}

// Upgrades are those that this version knows, in the order of their heights.
var Upgrades []Upgrade

// upgrades registers what is done at their heights.
func (a *App) upgrades(c Config, configurator module.Configurator) (err error) {
	list := c.Upgrades
	if list == nil {
		list = Upgrades
	}
	var waiting upgradetypes.Plan
	if c.Home != "" {
		if waiting, err = a.keepers.upgrade.ReadUpgradeInfoFromDisk(); err != nil {
			return fmt.Errorf("app: reading which upgrade the chain waits for: %w", err)
		}
	}
	for _, u := range list {
		a.keepers.upgrade.SetUpgradeHandler(u.Name,
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
