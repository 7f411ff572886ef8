// Package upgrade changes the rules of the running chain at a height that governance chose, with the keeper of the
// SDK's upgrade module. It does not use the SDK's own wiring, which imports downloaders for several clouds: half the
// size of this whole program, and unused.
package upgrade

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/core/appmodule"
	"cosmossdk.io/core/store"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/upgrade/keeper"
	"github.com/cosmos/cosmos-sdk/x/upgrade/types"
	"github.com/grpc-ecosystem/grpc-gateway/runtime"
	"google.golang.org/grpc"
)

// Errors that stop a node at its next block. A node of the right version continues from there.
var (
	ErrTooOld = errors.New("upgrade: this version does not know the upgrade that is due")
	ErrTooNew = errors.New("upgrade: this version knows an upgrade that is not due yet")
)

// Module wires the keeper into the application.
type Module struct {
	keeper *keeper.Keeper
	store  store.KVStoreService // of the keeper, which does not list the upgrades done
}

var (
	_ appmodule.HasPreBlocker = Module{}
	_ appmodule.HasGenesis    = Module{}
)

// NewModule returns the module of a keeper, over the keeper's own store.
func NewModule(k *keeper.Keeper, s store.KVStoreService) Module { return Module{k, s} }

// Name implements module.HasName.
func (Module) Name() string { return types.ModuleName }

// IsAppModule marks a module of the SDK.
func (Module) IsAppModule() {}

// IsOnePerModuleType marks a module of the SDK.
func (Module) IsOnePerModuleType() {}

// RegisterLegacyAminoCodec makes the messages of the module known to hardware wallets.
func (Module) RegisterLegacyAminoCodec(c *codec.LegacyAmino) { types.RegisterLegacyAminoCodec(c) }

// RegisterInterfaces makes the messages of the module known.
func (Module) RegisterInterfaces(r codectypes.InterfaceRegistry) { types.RegisterInterfaces(r) }

// RegisterGRPCGatewayRoutes serves the queries over HTTP.
func (Module) RegisterGRPCGatewayRoutes(c sdkclient.Context, mux *runtime.ServeMux) {
	if err := types.RegisterQueryHandlerClient(context.Background(), mux, types.NewQueryClient(c)); err != nil {
		panic(err) // two routes of the program itself collide
	}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	types.RegisterMsgServer(r, keeper.NewMsgServerImpl(m.keeper))
	types.RegisterQueryServer(r, m.keeper)
	return nil
}

// PreBlock executes the upgrade that is due. A version without this upgrade stops before it executes the block, and
// writes the name of the upgrade to disk.
func (m Module) PreBlock(ctx context.Context) (appmodule.ResponsePreBlock, error) {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	plan, err := m.keeper.GetUpgradePlan(ctx)
	if errors.Is(err, types.ErrNoUpgradePlanFound) {
		return unchanged, m.settled(ctx)
	}
	if err != nil {
		return nil, err
	}
	known := m.keeper.HasHandler(plan.Name)
	switch due := plan.ShouldExecute(height); {
	case !due && known:
		return nil, fmt.Errorf("%w: %s is for height %d, the chain is at %d: run the version before it until then",
			ErrTooNew, plan.Name, plan.Height, height)
	case !due:
		return unchanged, m.settled(ctx)
	case !known:
		err := m.keeper.DumpUpgradeInfoToDisk(height, plan)
		return nil, errors.Join(fmt.Errorf("%w: %s at height %d: install the version that has it and start again; %s",
			ErrTooOld, plan.Name, plan.Height, plan.Info), err)
	}
	free := sdk.UnwrapSDKContext(ctx).WithBlockGasMeter(storetypes.NewInfiniteGasMeter())
	return &sdk.ResponsePreBlock{ConsensusParamsChanged: true}, m.keeper.ApplyUpgrade(free, plan)
}

var unchanged = &sdk.ResponsePreBlock{}

// settled checks once after every start that this version has the last upgrade that was done; otherwise ErrTooOld.
func (m Module) settled(ctx context.Context) error {
	if m.keeper.DowngradeVerified() {
		return nil
	}
	last, height, err := m.keeper.GetLastCompletedUpgrade(ctx)
	if err != nil {
		return err
	}
	if last != "" && !m.keeper.HasHandler(last) {
		return fmt.Errorf("%w: %s was carried out at height %d: install the version that has it", ErrTooOld, last, height)
	}
	m.keeper.SetDowngradeVerified(true)
	return nil
}
