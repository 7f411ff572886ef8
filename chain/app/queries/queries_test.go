package queries

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cosmos/cosmos-sdk/store/v2/cachemulti"
	"github.com/cosmos/cosmos-sdk/store/v2/mem"
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

// opened counts how often a block is opened.
type opened struct {
	storetypes.MultiStore
	at []int64
}

func (o *opened) CacheMultiStoreWithVersion(version int64) (storetypes.CacheMultiStore, error) {
	if version > 9 {
		return nil, errors.New("no such block")
	}
	o.at = append(o.at, version)
	return cachemulti.NewStore(map[storetypes.StoreKey]storetypes.CacheWrapper{key: mem.NewStore()}), nil
}

var key = storetypes.NewKVStoreKey("things")

// Queries of the latest block share a view, and none sees what another one writes. Older blocks are opened each time.
func TestQueriesShareAView(t *testing.T) {
	below := &opened{}
	s := &Store{MultiStore: below}
	s.Committed(8)
	open := func(height int64) storetypes.KVStore {
		t.Helper()
		view, err := s.CacheMultiStoreWithVersion(height)
		if err != nil {
			t.Fatal(err)
		}
		return view.GetKVStore(key)
	}
	first, second := open(8), open(8)
	if first.Set([]byte("a"), []byte("b")); second.Has([]byte("a")) || open(8).Has([]byte("a")) {
		t.Error("a query sees what another one wrote")
	}
	open(7)
	open(7)
	s.Committed(9)
	for range sharers + 1 {
		open(9)
	}
	if want := []int64{8, 7, 7, 9, 9}; !slices.Equal(below.at, want) {
		t.Errorf("opened %v, wanted %v", below.at, want)
	}
	s.Committed(10)
	if _, err := s.CacheMultiStoreWithVersion(10); err == nil {
		t.Error("a block that is not there was opened")
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
