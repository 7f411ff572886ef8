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

// NewSimulation returns the modules of an application for the SDK's simulation: the SDK's modules simulate themselves,
// with accounts of a genesis, and others replaces modules by name.
func NewSimulation(a *App, accounts authtypes.RandomGenesisAccountsFn,
	others ...module.AppModuleSimulation) Simulation {
	given := map[string]module.AppModuleSimulation{authtypes.ModuleName: auth.NewAppModule(a.Codec,
		keepersOf(a).accounts.AccountKeeper, accounts, nil)}
	for _, m := range others {
		given[m.(module.HasName).Name()] = m
	}
	return Simulation{
		Manager:  module.NewSimulationManagerFromAppModules(a.modules.Modules, given),
		Accounts: keepersOf(a).accounts.AccountKeeper, Bank: keepersOf(a).bank,
	}
}
