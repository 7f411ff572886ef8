package chain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"cosmossdk.io/log/v2"
	sdkclient "github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/codec"
	"github.com/cosmos/cosmos-sdk/server/api"
	"github.com/cosmos/cosmos-sdk/server/config"
	servergrpc "github.com/cosmos/cosmos-sdk/server/grpc"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	"github.com/gorilla/handlers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
)

// services are the interfaces of a validator for Cosmos clients, in addition to the RPC of CometBFT: gRPC, and the same
// over HTTP with JSON.
type services struct {
	grpc *grpc.Server
	http *http.Server
	conn *grpc.ClientConn // from HTTP to gRPC, inside the process
	from sdkclient.Context
}

// slow is the time limit for reading a client's request.
const slow = 30 * time.Second

// prepare registers the services of a validator before the node runs.
func (v *Validator) prepare(c Config, chainID string) error {
	from := sdkclient.Context{}.WithClient(v.rpc).WithCodec(v.app.Codec).WithInterfaceRegistry(v.app.Registry).
		WithTxConfig(v.app.Tx).WithChainID(chainID).WithAccountRetriever(authtypes.AccountRetriever{})
	if c.GRPC == "" && c.REST == "" {
		v.app.RegisterNodeService(from, *config.DefaultConfig()) // tells clients the gas price of this node
		return nil
	}
	v.services = &services{from: from}
	return v.app.Service(from)
}

// serve opens the ports of the services. stop closes them.
func (v *Validator) serve(c Config, logger log.Logger) (err error) {
	s := v.services
	if s == nil {
		return nil
	}
	if s.grpc, err = servergrpc.NewGRPCServer(s.from, v.app, config.DefaultConfig().GRPC); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	grpc_health_v1.RegisterHealthServer(s.grpc, health.NewServer()) // healthy as long as the server answers
	if err := s.listen(c.GRPC, s.grpc.Serve); err != nil {
		return err
	}
	if c.REST == "" {
		return nil
	}
	within := bufconn.Listen(1 << 20)
	go func() { _ = s.grpc.Serve(within) }() // returns when the server stops
	s.conn, err = grpc.NewClient("passthrough:///validator", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return within.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec.NewProtoCodec(v.app.Registry).GRPCCodec()),
			grpc.MaxCallRecvMsgSize(MaxBlockBytes*2), grpc.MaxCallSendMsgSize(maxBody)))
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	routes := api.New(s.from.WithGRPCClient(s.conn), logger, s.grpc)
	v.app.RegisterAPIRoutes(routes, config.APIConfig{})
	routes.Router.PathPrefix("/").Handler(routes.GRPCGatewayRouter)
	// Wallets are web pages of other origins. The interface uses no cookies, and all its answers are public.
	s.http = &http.Server{
		Handler: handlers.CORS(handlers.AllowedHeaders([]string{"Content-Type"}))(http.MaxBytesHandler(
			routes.Router, maxBody)),
		ReadHeaderTimeout: slow, ReadTimeout: slow, WriteTimeout: slow, IdleTimeout: 2 * slow,
	}
	return s.listen(c.REST, s.http.Serve)
}

// listen serves an address; "" serves nothing.
func (s *services) listen(address string, serve func(net.Listener) error) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	go func() { _ = serve(l) }() // returns when the server stops; the error says nothing more
	return nil
}

// stop closes the ports.
func (s *services) stop() error {
	if s == nil {
		return nil
	}
	var err error
	if s.http != nil {
		err = s.http.Close()
	}
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	if s.grpc != nil {
		s.grpc.Stop()
	}
	return err
}
