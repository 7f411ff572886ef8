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

// services are the interfaces of a validator for the clients of the ecosystem, beside that of CometBFT: gRPC, and the
// same over HTTP with JSON.
type services struct {
	grpc *grpc.Server
	http *http.Server
	conn *grpc.ClientConn // from HTTP to gRPC, inside the process
	from sdkclient.Context
}

// slow bounds what a client may take over its request.
const slow = 30 * time.Second

// prepare registers what the interfaces of a validator answer, before the node runs.
func (v *Validator) prepare(c Config, chainID string) error {
	from := sdkclient.Context{}.WithClient(v.rpc).WithCodec(v.app.Codec).WithInterfaceRegistry(v.app.Registry).
		WithTxConfig(v.app.Tx).WithChainID(chainID).WithAccountRetriever(authtypes.AccountRetriever{})
	if c.GRPC == "" && c.REST == "" {
		v.app.RegisterNodeService(from, *config.DefaultConfig()) // of which clients hear what it asks for gas
		return nil
	}
	v.services = &services{from: from}
	return v.app.Service(from)
}

// serve opens the ports of the services. Stop closes them.
func (v *Validator) serve(c Config, logger log.Logger) (err error) {
	s := v.services
	if s == nil {
		return nil
	}
	if s.grpc, err = servergrpc.NewGRPCServer(s.from, v.app, config.DefaultConfig().GRPC); err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	grpc_health_v1.RegisterHealthServer(s.grpc, health.NewServer()) // it serves as long as it answers
	if err := s.listen(c.GRPC, s.grpc.Serve); err != nil {
		return err
	}
	if c.REST == "" {
		return nil
	}
	within := bufconn.Listen(1 << 20)
	go func() { _ = s.grpc.Serve(within) }() // it ends with the server
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
	// Wallets are pages of other origins. There are no cookies and nothing is secret.
	s.http = &http.Server{
		Handler: handlers.CORS(handlers.AllowedHeaders([]string{"Content-Type"}))(http.MaxBytesHandler(
			routes.Router, maxBody)),
		ReadHeaderTimeout: slow, ReadTimeout: slow, WriteTimeout: slow, IdleTimeout: 2 * slow,
	}
	return s.listen(c.REST, s.http.Serve)
}

// listen serves an address, if there is one.
func (s *services) listen(address string, serve func(net.Listener) error) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("chain: %w", err)
	}
	go func() { _ = serve(l) }() // it ends with the server, and says nothing else
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
