// Package ipfs lets ordinary IPFS clients read the blobs of a store: it shows the store as the blocks of IPFS, and
// serves them over Bitswap to every connected client.
//
// Nodes do not fetch from each other this way: package peer moves the same bytes faster (it asks several peers for
// different leaves). The package announces no blobs, and does not serve the empty blob: boxo's Bitswap never sends a
// block of no bytes.
package ipfs

import (
	"context"
	"errors"

	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/bitswap/server"
	"github.com/ipfs/boxo/blockstore"
	block "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	format "github.com/ipfs/go-ipld-format"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/starling-network/starling/network/blob"
)

// Limits of the work for peers at a time.
const (
	// sent to one peer and not yet taken by it: the default, one leaf, waits for every round trip
	outstandingBytes = 4 << 20
	messageBytes     = blob.LeafBytes
	readers          = 4
	senders          = 4
)

// ErrReadOnly is what writing through the view of blocks gives.
var ErrReadOnly = errors.New("ipfs: blocks are only read here")

// Store is what is served.
type Store interface {
	blob.Leaves
	Find(block blob.CID) []blob.Location
}

// Serve answers the Bitswap requests that reach a host until stop is called, which waits for those in progress. may
// says whether a blob may be given away; others look absent.
func Serve(h host.Host, s Store, may func(root blob.CID) bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	network := bsnet.NewFromIpfsHost(h)
	bitswap := server.New(ctx, network, Blocks{s, may},
		server.MaxOutstandingBytesPerPeer(outstandingBytes), server.WithTargetMessageSize(messageBytes),
		server.EngineBlockstoreWorkerCount(readers), server.TaskWorkerCount(senders), server.EngineTaskWorkerCount(senders),
	)
	network.Start(bitswap)
	return func() {
		network.Stop()
		cancel()
		bitswap.Close()
	}
}

// Blocks is a store seen as blocks: the leaves and inner nodes of the DAGs of its blobs.
type Blocks struct {
	Store Store
	May   func(root blob.CID) bool // whether a blob is shown
}

var _ blockstore.Blockstore = Blocks{}

// find returns the first place of a block in a blob that is shown.
func (b Blocks) find(c cid.Cid) (blob.Location, error) {
	for _, p := range b.Store.Find(c) {
		if b.May(p.Root) {
			return p, nil
		}
	}
	return blob.Location{}, format.ErrNotFound{Cid: c}
}

// absent gives an error of the store the form that IPFS expects.
func absent(c cid.Cid, err error) error {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		return format.ErrNotFound{Cid: c}
	}
	return err
}

// Has implements blockstore.Blockstore.
func (b Blocks) Has(_ context.Context, c cid.Cid) (bool, error) {
	_, err := b.find(c)
	return err == nil, nil
}

// Get implements blockstore.Blockstore.
func (b Blocks) Get(ctx context.Context, c cid.Cid) (block.Block, error) {
	at, err := b.find(c)
	if err != nil {
		return nil, err
	}
	data, err := blob.Block(ctx, b.Store, at)
	if err != nil {
		return nil, absent(c, err)
	}
	return block.NewBlockWithCid(data, c)
}

// GetSize implements blockstore.Blockstore.
func (b Blocks) GetSize(ctx context.Context, c cid.Cid) (int, error) {
	at, err := b.find(c)
	if err != nil {
		return 0, err
	}
	size, err := blob.BlockSize(ctx, b.Store, at)
	return size, absent(c, err)
}

// Put implements blockstore.Blockstore.
func (Blocks) Put(context.Context, block.Block) error { return ErrReadOnly }

// PutMany implements blockstore.Blockstore.
func (Blocks) PutMany(context.Context, []block.Block) error { return ErrReadOnly }

// DeleteBlock implements blockstore.Blockstore.
func (Blocks) DeleteBlock(context.Context, cid.Cid) error { return ErrReadOnly }

// AllKeysChan implements blockstore.Blockstore. It lists nothing: clients ask for what they know.
func (Blocks) AllKeysChan(context.Context) (<-chan cid.Cid, error) { return nil, ErrReadOnly }
