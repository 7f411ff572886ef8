package queries

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	grpctypes "github.com/cosmos/cosmos-sdk/types/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

type stored struct{ storetypes.MultiStore }

func (stored) LatestVersion() int64 { return 7 }

// Before the first commit, Store asks the store below it, which knows the height restored from disk or from a snapshot.
func TestStoreKnowsTheLatestBlock(t *testing.T) {
	s := &Store{MultiStore: stored{}}
	if h := s.LatestVersion(); h != 7 {
		t.Errorf("height %d before a block", h)
	}
	if s.Committed(9); s.LatestVersion() != 9 {
		t.Errorf("height %d after block 9", s.LatestVersion())
	}
}

// A query waits for a free place, and is refused after the timeout.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make(Turns, 1)
		back, err := turns.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turns.Take(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("no place is free: %v", err)
		}
		back()
		if _, err := turns.Take(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// registered keeps a service that is registered.
type registered struct{ of *grpc.ServiceDesc }

func (r *registered) RegisterService(d *grpc.ServiceDesc, _ any) { r.of = d }

// A call reads the latest committed block, also while the next one is being committed, unless it names a block.
func TestCallsReadACommittedBlock(t *testing.T) {
	var read []string
	var r registered
	latest := int64(0)
	Server{Server: &r, Turns: make(Turns, 1), Latest: func() int64 { return latest }}.RegisterService(&grpc.ServiceDesc{
		Methods: []grpc.MethodDesc{{Handler: func(_ any, ctx context.Context, _ func(any) error,
			_ grpc.UnaryServerInterceptor) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			read = append(read, strings.Join(md.Get(grpctypes.GRPCBlockHeightHeader), ""))
			return nil, nil
		}}}}, nil)
	named := metadata.NewIncomingContext(t.Context(), metadata.Pairs(grpctypes.GRPCBlockHeightHeader, "5"))
	for _, c := range []struct {
		ctx    context.Context
		latest int64
	}{{t.Context(), 0}, {t.Context(), 7}, {named, 7}} {
		latest = c.latest
		if _, err := r.of.Methods[0].Handler(nil, c.ctx, nil, nil); err != nil {
			t.Error(err)
		}
	}
	if strings.Join(read, ",") != ",7,5" {
		t.Errorf("calls read the blocks %q", read)
	}
}
