// Package storetest opens the store of a module for tests: empty, in memory, with the gas that a chain counts. It is
// not part of any program, and it imports no application: the service of stores in the runtime of the Cosmos SDK does,
// and each test binary with an application takes three seconds to link.
package storetest

import (
	"context"
	"testing"

	"cosmossdk.io/core/store"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Open returns an empty store of a module, and the context of a block in which it is read and written.
func Open(t testing.TB, module string) (store.KVStoreService, sdk.Context) {
	t.Helper()
	key := storetypes.NewKVStoreKey(module)
	return service{key}, testutil.DefaultContextWithDB(t, key, storetypes.NewTransientStoreKey("transient")).Ctx
}

// Service is the store of a key in the context of a block, for tests that replace a keeper over the same state.
func Service(key *storetypes.KVStoreKey) store.KVStoreService { return service{key} }

// service is the store of a key.
type service struct{ key *storetypes.KVStoreKey }

// OpenKVStore implements store.KVStoreService.
func (s service) OpenKVStore(ctx context.Context) store.KVStore {
	return kv{sdk.UnwrapSDKContext(ctx).KVStore(s.key)}
}

// kv is a store whose failures are panics.
type kv struct{ of storetypes.KVStore }

// Get implements store.KVStore.
func (s kv) Get(key []byte) ([]byte, error) { return s.of.Get(key), nil }

// Has implements store.KVStore.
func (s kv) Has(key []byte) (bool, error) { return s.of.Has(key), nil }

// Set implements store.KVStore.
func (s kv) Set(key, value []byte) error { s.of.Set(key, value); return nil }

// Delete implements store.KVStore.
func (s kv) Delete(key []byte) error { s.of.Delete(key); return nil }

// Iterator implements store.KVStore.
func (s kv) Iterator(start, end []byte) (store.Iterator, error) {
	return s.of.Iterator(start, end), nil
}

// ReverseIterator implements store.KVStore.
func (s kv) ReverseIterator(start, end []byte) (store.Iterator, error) {
	return s.of.ReverseIterator(start, end), nil
}
