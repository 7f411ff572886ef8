package app

import (
	"github.com/cosmos/cosmos-sdk/types/module"
	"github.com/cosmos/cosmos-sdk/x/auth"
	authkeeper "github.com/cosmos/cosmos-sdk/x/auth/keeper"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	bankkeeper "github.com/cosmos/cosmos-sdk/x/bank/keeper"
)

// Simulation is what the SDK's simulation (x/simulation) needs from an application.
type Simulation struct {
	Manager  *module.SimulationManager
	Accounts authkeeper.AccountKeeper
	Bank     bankkeeper.Keeper
}

// Simulation returns the modules for the SDK's simulation: the SDK's modules simulate themselves, with accounts of a
// genesis, and others replaces modules by name.
func (a *App) Simulation(accounts authtypes.RandomGenesisAccountsFn, others ...module.AppModuleSimulation) Simulation {
	given := map[string]module.AppModuleSimulation{authtypes.ModuleName: auth.NewAppModule(a.Codec,
		a.keepers.accounts.AccountKeeper, accounts, nil)}
	for _, m := range others {
		given[m.(module.HasName).Name()] = m
	}
	return Simulation{
		Manager:  module.NewSimulationManagerFromAppModules(a.modules.Modules, given),
		Accounts: a.keepers.accounts.AccountKeeper, Bank: a.keepers.bank,
	}
}
