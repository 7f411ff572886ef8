package node_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/home"
)

// Jobs of one account are served by one host, each from its own store, and fetch into their own stores; the bytes of
// each are counted apart.
func TestStoresOfAnAccount(t *testing.T) {
	ctx := t.Context()
	h, _, err := home.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &account.Account{Home: h}
	if err := a.Serve(nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Host.Close() }()
	key, err := peer.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	theirs := blob.NewMemory()
	other, err := peer.New(peer.Config{Key: key, Store: theirs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()

	large, small := blobtest.Data(1, 2*blob.LeafBytes), blobtest.Data(2, 100)
	one, two := blob.NewMemory(), blob.NewMemory()
	_, traffic1, _ := a.Attach(one)
	fetch2, traffic2, detach2 := a.Attach(two)
	id, err := one.Put(ctx, large)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Fetch(ctx, id, a.Host.Addrs()); err != nil || !bytes.Equal(got, large) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if id, err = theirs.Put(ctx, small); err != nil {
		t.Fatal(err)
	}
	if got, err := fetch2.Fetch(ctx, id, other.Addrs()); err != nil || !bytes.Equal(got, small) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if has, err := one.Has(ctx, id); err != nil || has {
		t.Errorf("a blob of one job is in the store of another: %v", err)
	}
	if sent, received := traffic1(); sent != uint64(len(large)) || received != 0 {
		t.Errorf("the first job sent %d and received %d", sent, received)
	}
	if sent, received := traffic2(); sent != 0 || received != uint64(len(small)) {
		t.Errorf("the second job sent %d and received %d", sent, received)
	}
	detach2()
	if err := theirs.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Fetch(ctx, id, a.Host.Addrs()); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a blob of a store that is detached: %v", err)
	}
}
