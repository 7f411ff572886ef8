package ipfs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockservice"
	"github.com/ipfs/boxo/blockstore"
	"github.com/ipfs/boxo/ipld/merkledag"
	unixfs "github.com/ipfs/boxo/ipld/unixfs/io"
	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/sync"
	format "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/ipfs"
)

func newHost(t *testing.T) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// client is an IPFS node made of boxo's parts, with libp2p's defaults, connected to a peer.
func client(t *testing.T, to host.Host) format.DAGService {
	t.Helper()
	h := newHost(t)
	blocks := blockstore.NewBlockstore(sync.MutexWrap(datastore.NewMapDatastore()))
	ctx, cancel := context.WithCancel(context.Background())
	exchange := bitswap.New(ctx, bsnet.NewFromIpfsHost(h), nil, blocks)
	t.Cleanup(func() {
		_ = exchange.Close()
		cancel()
	})
	if err := h.Connect(t.Context(), p2p.AddrInfo{ID: to.ID(), Addrs: to.Addrs()}); err != nil {
		t.Fatal(err)
	}
	return merkledag.NewDAGService(blockservice.New(blocks, exchange))
}

func read(ctx context.Context, dag format.DAGService, c blob.CID) ([]byte, error) {
	root, err := dag.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	file, err := unixfs.NewDagReader(ctx, root, dag)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(file)
}

// TestClient reads blobs by their CIDs with an IPFS client: of one leaf, of several, and of two levels of inner nodes.
func TestClient(t *testing.T) {
	store, server := blob.NewMemory(), newHost(t)
	stop := ipfs.Serve(server, store, func(blob.CID) bool { return true })
	t.Cleanup(stop)
	dag := client(t, server)
	for _, size := range []int{10, blob.LeafBytes + 1, 20*blob.LeafBytes + 7} {
		data := blobtest.Data(1, size)
		c, err := store.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read(t.Context(), dag, c); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d of %d bytes arrived, %v", len(got), size, err)
		}
	}
}

// TestWithheld serves no block of a blob that may not be given away, except those that another blob has.
func TestWithheld(t *testing.T) {
	shared := blobtest.Data(2, blob.LeafBytes)
	secret, public := append(bytes.Clone(shared), 1), append(bytes.Clone(shared), 2)
	store := blob.NewMemory()
	for _, data := range [][]byte{secret, public} {
		if _, err := store.Put(t.Context(), data); err != nil {
			t.Fatal(err)
		}
	}
	released := atomic.Bool{}
	blocks := ipfs.Blocks{Store: store,
		May: func(c blob.CID) bool { return released.Load() || !c.Equals(blob.Of(secret)) }}
	for name, c := range map[string]struct {
		block blob.CID
		want  bool
	}{
		"root":   {blob.Of(secret), false},
		"leaf":   {blob.Of([]byte{1}), false},
		"shared": {blob.Of(shared), true},
		"public": {blob.Of(public), true},
	} {
		has, err := blocks.Has(t.Context(), c.block)
		_, getErr := blocks.Get(t.Context(), c.block)
		_, sizeErr := blocks.GetSize(t.Context(), c.block)
		if err != nil || has != c.want || format.IsNotFound(getErr) == c.want || format.IsNotFound(sizeErr) == c.want {
			t.Errorf("%s: %v, %v, %v, %v", name, has, err, getErr, sizeErr)
		}
	}
	server := newHost(t)
	t.Cleanup(ipfs.Serve(server, store, blocks.May))
	dag := client(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := read(ctx, dag, blob.Of(secret)); !errors.Is(err, context.DeadlineExceeded) && !format.IsNotFound(err) {
		t.Errorf("a blob that is withheld: %v", err)
	}
	released.Store(true)
	if got, err := read(t.Context(), dag, blob.Of(secret)); err != nil || !bytes.Equal(got, secret) {
		t.Errorf("%d bytes after the release, %v", len(got), err)
	}
}

// TestDamaged asks for a block that its store cannot give any more.
func TestDamaged(t *testing.T) {
	store := blob.NewMemory()
	c, err := store.Put(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := ipfs.Blocks{Store: stale{store, store.Find(c)}, May: func(blob.CID) bool { return true }}
	if err := store.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := blocks.Get(t.Context(), c); !format.IsNotFound(err) {
		t.Errorf("Get: %v", err)
	}
	if _, err := blocks.GetSize(t.Context(), c); !format.IsNotFound(err) {
		t.Errorf("GetSize: %v", err)
	}
	if err := blocks.Put(t.Context(), nil); !errors.Is(err, ipfs.ErrReadOnly) {
		t.Errorf("Put: %v", err)
	}
}

// stale finds what is not there any more.
type stale struct {
	ipfs.Store
	places []blob.Location
}

func (s stale) Find(blob.CID) []blob.Location { return s.places }
