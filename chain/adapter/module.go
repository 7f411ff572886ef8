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
)

// Module is the part of a module that is the same for all: it is embedded, and the module adds its services and blocks.
type Module struct {
	ID       string             // name, key of the store, codespace
	Messages *grpc.ServiceDesc  // the Msg service
	State    collections.Schema // all that the module stores, and so its genesis
	Queries  Routes             // of the Query service
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

// RegisterInterfaces makes the messages of the module known.
func (m Module) RegisterInterfaces(r types.InterfaceRegistry) {
	msgservice.RegisterMsgServiceDesc(r, m.Messages)
}

// Most is how many items one query returns when it asks for limit.
func Most(limit uint32) int {
	const most = 1000
	if limit == 0 || limit > most {
		return most
	}
	return int(limit)
}

// Denom is the only coin of the chain: 10^6 uzen are 1 ZEN.
const Denom = "uzen"

// Coins is an amount of uzen as the SDK counts it.
func Coins(amount uint64) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(Denom, sdkmath.NewIntFromUint64(amount)))
}

// Isolate runs f on a copy of the state, and keeps what it wrote and emitted only if it succeeds: a fault in one job,
// even a panic, must not stop the blocks of all the others.
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
