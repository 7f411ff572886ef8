package app

import (
	reflectionv1 "cosmossdk.io/api/cosmos/reflection/v1"
	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/grpc/cmtservice"
	nodeservice "github.com/cosmos/cosmos-sdk/client/grpc/node"
	runtimeservices "github.com/cosmos/cosmos-sdk/runtime/services"
	"github.com/cosmos/cosmos-sdk/server"
	"github.com/cosmos/cosmos-sdk/server/api"
	"github.com/cosmos/cosmos-sdk/server/config"
	servertypes "github.com/cosmos/cosmos-sdk/server/types"
	authtx "github.com/cosmos/cosmos-sdk/x/auth/tx"
	gogogrpc "github.com/cosmos/gogoproto/grpc"

	"github.com/starling-network/starling/chain/app/absent"
	"github.com/starling-network/starling/chain/app/queries"
)

var _ servertypes.Application = (*App)(nil)

// Service adds the queries about transactions, blocks and the node, which the usual Cosmos clients need, to the queries
// of the modules. It must be called before the node of the client runs.
func (a *App) Service(c client.Context) error {
	reflection, err := runtimeservices.NewReflectionService()
	if err != nil {
		return err
	}
	reflectionv1.RegisterReflectionServiceServer(a.GRPCQueryRouter(), reflection)
	a.RegisterTxService(c)
	a.RegisterTendermintService(c)
	a.RegisterNodeService(c, *config.DefaultConfig())
	return nil
}

// RegisterGRPCServerWithSkipCheckHeader implements servertypes.Application. Queries by gRPC are limited too.
func (a *App) RegisterGRPCServerWithSkipCheckHeader(s gogogrpc.Server, skip bool) {
	calls := queries.Server{Server: s, Turns: a.asked, Latest: a.reads.LatestVersion}
	a.BaseApp.RegisterGRPCServerWithSkipCheckHeader(calls, skip)
}

// RegisterTxService implements servertypes.Application.
func (a *App) RegisterTxService(c client.Context) {
	authtx.RegisterTxService(a.GRPCQueryRouter(), c, a.Simulate, a.Registry)
}

// RegisterTendermintService implements servertypes.Application.
func (a *App) RegisterTendermintService(c client.Context) {
	cmtservice.RegisterTendermintService(c, a.GRPCQueryRouter(), a.Registry, server.NewCometABCIWrapper(a).Query)
}

// RegisterNodeService implements servertypes.Application.
func (a *App) RegisterNodeService(c client.Context, cfg config.Config) {
	nodeservice.RegisterNodeService(c, a.GRPCQueryRouter(), cfg,
		func() int64 { return a.CommitMultiStore().EarliestVersion() })
}

// RegisterAPIRoutes implements servertypes.Application: the routes of the HTTP interface.
func (a *App) RegisterAPIRoutes(s *api.Server, _ config.APIConfig) {
	authtx.RegisterGRPCGatewayRoutes(s.ClientCtx, s.GRPCGatewayRouter)
	cmtservice.RegisterGRPCGatewayRoutes(s.ClientCtx, s.GRPCGatewayRouter)
	nodeservice.RegisterGRPCGatewayRoutes(s.ClientCtx, s.GRPCGatewayRouter)
	a.basics.RegisterGRPCGatewayRoutes(s.ClientCtx, s.GRPCGatewayRouter)
	if err := absent.Route(s.ClientCtx, s.GRPCGatewayRouter); err != nil {
		panic(err) // as the routes of the modules do
	}
}
