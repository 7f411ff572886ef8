// Package queries limits how many queries an application answers at a time, and answers them from the latest committed
// block. Queries need no account. Package app defines the queries and their limits of gas.
package queries

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	errorsmod "cosmossdk.io/errors"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"
	gogogrpc "github.com/cosmos/gogoproto/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// patience is how long a query waits for its turn.
const patience = 3 * time.Second

// ErrBusy is returned for a query if the limit of queries at a time is reached.
var ErrBusy = errorsmod.Register("app", 2, "too many queries or simulations at a time: ask again, or ask a node of "+
	"your own")

// Turns limits the number of concurrent queries to the capacity of the channel.
type Turns chan struct{}

// Take waits for a place, and returns the function that frees it. It returns ErrBusy after the timeout patience.
func (t Turns) Take(ctx context.Context) (back func(), err error) {
	waiting := time.NewTimer(patience)
	defer waiting.Stop()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-waiting.C:
		return nil, ErrBusy
	}
}

// Server registers services whose calls wait for their turn, and read the latest committed block unless the caller
// names another one.
type Server struct {
	gogogrpc.Server
	Turns  Turns
	Latest func() int64 // height of that block; 0: none is committed
}

// RegisterService implements gogogrpc.Server.
func (s Server) RegisterService(d *grpc.ServiceDesc, handler any) {
	of := *d
	of.Methods = append([]grpc.MethodDesc(nil), d.Methods...)
	for i, m := range d.Methods {
		of.Methods[i].Handler = func(server any, ctx context.Context, decode func(any) error,
			in grpc.UnaryServerInterceptor) (any, error) {
			done, err := s.Turns.Take(ctx)
			if err != nil {
				return nil, status.Error(codes.ResourceExhausted, err.Error())
			}
			defer done()
			return m.Handler(server, at(ctx, s.Latest()), decode, in)
		}
	}
	s.Server.RegisterService(&of, handler)
}

// at is the context of a call that reads the block at a height, unless the caller names a block. Without a height the
// SDK looks for the latest block among its states, and finds none while a block is being committed.
func at(ctx context.Context, height int64) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	if height == 0 || len(md.Get(grpctypes.GRPCBlockHeightHeader)) > 0 {
		return ctx
	}
	md = md.Copy()
	md.Set(grpctypes.GRPCBlockHeightHeader, strconv.FormatInt(height, 10))
	return metadata.NewIncomingContext(ctx, md)
}

// Store is the store that queries read. It remembers the height of the latest block; the SDK's store would hash the
// states of all modules at every call.
type Store struct {
	storetypes.MultiStore
	height atomic.Int64 // 0: no block was committed since the process started
}

// Committed records the height of a committed block.
func (s *Store) Committed(height int64) { s.height.Store(height) }

// LatestVersion implements storetypes.MultiStore.
func (s *Store) LatestVersion() int64 {
	if h := s.height.Load(); h > 0 {
		return h
	}
	return s.MultiStore.LatestVersion()
}
