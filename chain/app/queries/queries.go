// Package queries is how an application answers what anybody may ask of it without an account: so many at a time, and
// of the block that was committed last. Which questions there are, and what they may take, is app's.
package queries

import (
	"context"
	"sync/atomic"
	"time"

	errorsmod "cosmossdk.io/errors"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	gogogrpc "github.com/cosmos/gogoproto/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// patience is how long a question waits for its turn.
const patience = 3 * time.Second

// ErrBusy is returned to who asks while others ask for all that may be answered at a time.
var ErrBusy = errorsmod.Register("app", 2, "too many queries or simulations at a time: ask again, or ask a node of "+
	"your own")

// Turns are the places of what may go on at a time; its capacity is how many there are.
type Turns chan struct{}

// Take waits for a place, and returns what gives it back.
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

// Server registers services whose calls wait for their turn.
type Server struct {
	gogogrpc.Server
	Turns Turns
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
			return m.Handler(server, ctx, decode, in)
		}
	}
	s.Server.RegisterService(&of, handler)
}

// Store is what queries read. It remembers the height of the last block, for which the store of the SDK computes the
// hash of all modules' states each time that it is asked.
type Store struct {
	storetypes.MultiStore
	height atomic.Int64 // 0: no block was committed since the process began
}

// Committed says that a block of a height was committed.
func (s *Store) Committed(height int64) { s.height.Store(height) }

// LatestVersion implements storetypes.MultiStore.
func (s *Store) LatestVersion() int64 {
	if h := s.height.Load(); h > 0 {
		return h
	}
	return s.MultiStore.LatestVersion()
}
