package adapter

import (
	"context"
	"fmt"

	"cosmossdk.io/collections"
	sdkmath "cosmossdk.io/math"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	"github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/msgservice"
	gogogrpc "github.com/cosmos/gogoproto/grpc"
	"github.com/grpc-ecosystem/grpc-gateway/runtime"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/protocol/coin"
)

// Module is the common part of a module. A module embeds it and adds its services and the work of its blocks.
type Module struct {
	ID       string             // name, key of the store, codespace
	Messages *grpc.ServiceDesc  // the Msg service
	State    collections.Schema // everything that the module stores, which is also its genesis
	Queries  Routes             // of the Query service, over HTTP
}

// Name implements module.HasName.
func (m Module) Name() string { return m.ID }

// IsAppModule marks a module of the SDK.
func (Module) IsAppModule() {}

// IsOnePerModuleType marks a module of the SDK.
func (Module) IsOnePerModuleType() {}

// RegisterLegacyAminoCodec registers nothing: there are no amino clients.
func (Module) RegisterLegacyAminoCodec(*codec.LegacyAmino) {}

// Routes serves the queries of a module over HTTP.
type Routes func(client.Context, *runtime.ServeMux) error

// NewRoutes makes the routes of a module from the two functions that are generated for them.
func NewRoutes[C any](connect func(gogogrpc.ClientConn) C,
	register func(context.Context, *runtime.ServeMux, C) error) Routes {
	return func(c client.Context, mux *runtime.ServeMux) error {
		return register(context.Background(), mux, connect(c))
	}
}

// RegisterGRPCGatewayRoutes serves the queries over HTTP.
func (m Module) RegisterGRPCGatewayRoutes(c client.Context, mux *runtime.ServeMux) {
	if err := m.Queries(c, mux); err != nil {
		panic(err) // two routes of the program itself collide
	}
}

// RegisterInterfaces registers the messages of the module.
func (m Module) RegisterInterfaces(r types.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, m.Messages)
}

// Most is the number of items that a query with this limit returns: at most 1000, and 1000 for 0.
func Most(limit uint32) int {
	const most = 1000
	if limit == 0 || limit > most {
		return most
	}
	return int(limit)
}

// Below are the numbers below one, the highest first; 0: all.
func Below(before uint64) *collections.Range[uint64] {
	within := new(collections.Range[uint64]).Descending()
	if before > 0 {
		within = within.EndExclusive(before)
	}
	return within
}

// Denom is the network's own coin: 10^6 uzen are 1 ZEN.
const Denom = "uzen"

// Coins returns an amount of uzen as the SDK's type.
func Coins(amount uint64) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(Denom, sdkmath.NewIntFromUint64(amount)))
}

// CoinsOf returns an amount of grains of a coin of orders as the SDK's type.
func CoinsOf(c coin.Coin, grains uint64) sdk.Coins {
	if c.Own() {
		return Coins(grains)
	}
	return sdk.NewCoins(sdk.NewCoin(c.Denom, sdkmath.NewIntFromBigInt(c.Base(grains))))
}

// Isolate runs f on a copy of the state, and keeps its writes and events only if f succeeds. An error in one job, even
// a panic, must not stop the blocks.
func Isolate(ctx context.Context, f func(context.Context) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("adapter: panic: %v", fault)
		}
	}()
	copied, write := sdk.UnwrapSDKContext(ctx).CacheContext()
	if err := f(copied); err != nil {
		return err
	}
	write()
	return nil
}
