package fetch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/wire"
)

// download is one Fetch that needs peers.
type download struct {
	fetcher *Fetcher
	cid     blob.CID
	peers   []peer.ID
	bad     []Attempt // addresses that could not be read

	mu     sync.Mutex
	failed map[peer.ID]error
}

// resolve turns addresses into peers, and remembers the addresses.
func (d *download) resolve(from []string) {
	for _, addr := range from[:min(len(from), maxHolders)] {
		info, err := address.Parse(addr)
		if err != nil {
			d.bad = append(d.bad, Attempt{addr, err})
			continue
		}
		if info.ID == d.fetcher.config.Host.ID() {
			continue
		}
		d.fetcher.config.Host.Peerstore().AddAddrs(info.ID, info.Addrs, addrTTL)
		if !slices.Contains(d.peers, info.ID) {
			d.peers = append(d.peers, info.ID)
		}
	}
}

// leaf fetches a blob of one leaf, whose size is at most most bytes.
func (d *download) leaf(ctx context.Context, most int64) error {
	t := newTransfer([]int{0}, 1, d.fetcher.config.Hedge)
	t.limit, t.most = blob.LeafBytes, int(max(0, min(most, blob.LeafBytes)))
	t.request = func(from, to int) wire.Request {
		return wire.Request{Root: d.cid.Bytes(), From: uint32(from), To: uint32(to)}
	}
	t.keep = func(_ int, data []byte) error {
		if err := blob.CheckLeaf(d.cid, data); err != nil {
			return err
		}
		_, err := d.fetcher.config.Store.Put(ctx, data)
		return err
	}
	return d.run(ctx, t, 1)
}

// manifest fetches the manifest.
func (d *download) manifest(ctx context.Context) (m *blob.Manifest, err error) {
	t := newTransfer([]int{0}, 1, d.fetcher.config.Hedge)
	t.limit, t.most = blob.MaxManifestBytes, blob.MaxManifestBytes
	t.request = func(int, int) wire.Request { return wire.Request{Root: d.cid.Bytes()} }
	var mu sync.Mutex // two peers may answer
	t.keep = func(_ int, data []byte) error {
		parsed, err := blob.ParseManifest(d.cid, data)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			m = parsed
		}
		return err
	}
	if err := d.run(ctx, t, 1); err != nil {
		return nil, err
	}
	return m, nil
}

// assemble fetches the leaves that the store has not got.
func (d *download) assemble(ctx context.Context, m *blob.Manifest) error {
	a, err := d.fetcher.config.Store.Assemble(ctx, m)
	if err != nil {
		return err
	}
	defer a.Close()
	missing := a.Missing()
	streams := streamsPerPeer
	if len(missing) < 8 {
		streams = 1
	}
	t := newTransfer(missing, len(missing)/(max(1, len(d.peers))*streams*6), d.fetcher.config.Hedge)
	t.limit, t.most = blob.LeafBytes, blob.LeafBytes
	t.request = func(from, to int) wire.Request {
		return wire.Request{Root: d.cid.Bytes(), From: uint32(from), To: uint32(to)}
	}
	t.keep = a.Put
	if err := d.run(ctx, t, streams); err != nil {
		return err
	}
	return a.Commit(ctx)
}

// run carries out a transfer with some streams to each peer that has not failed.
func (d *download) run(ctx context.Context, t *transfer, streams int) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	byRate(d.peers, d.fetcher.config.Links.Rate)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		t.watch(running)
	}()
	go func() {
		<-t.ended
		cancel() // workers that read what others have delivered
	}()
	d.ask(running, t, streams)
	t.stop(nil)
	<-stopped
	switch {
	case t.complete():
		return nil
	case t.err != nil:
		return t.err
	case ctx.Err() != nil:
		return fetchError(ctx, d.cid)
	}
	return d.failure()
}

// ask lets the fastest peers work, and one more whenever one has given up, or nothing came for the time of a hedge.
// Then those are asked again that did not have the blob: a relay may have it by now. It returns when all have ended.
func (d *download) ask(ctx context.Context, t *transfer, streams int) {
	gone := make(chan peer.ID, len(d.peers)) // it has ended
	var workers sync.WaitGroup
	waiting, lacking := slices.Clone(d.peers), []peer.ID(nil)
	working := 0
	begin := func() {
		if len(waiting) == 0 || ctx.Err() != nil || t.complete() {
			return
		}
		id := waiting[0]
		waiting = waiting[1:]
		working++
		workers.Go(func() {
			var of sync.WaitGroup
			for range streams {
				of.Go(func() { d.work(ctx, t, id) })
			}
			of.Wait()
			gone <- id
		})
	}
	for range fanOut {
		begin()
	}
	late := time.NewTicker(max(d.fetcher.config.Hedge, time.Millisecond))
	defer late.Stop()
	for left := t.remaining(); working > 0; {
		select {
		case id := <-gone:
			working--
			if d.lacks(id) {
				lacking = append(lacking, id)
			}
			begin()
		case <-late.C:
			now := t.remaining()
			if now == left && len(waiting) == 0 {
				waiting, lacking = lacking, nil
			}
			if now == left {
				begin()
			}
			left = now
		}
	}
	workers.Wait()
}

// lacks reports whether a peer said that it has not got the blob.
func (d *download) lacks(id peer.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(d.failed[id], wire.ErrNotFound)
}

func (d *download) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &Error{CID: d.cid, Tried: slices.Clone(d.bad)}
	for _, id := range d.peers {
		if err := d.failed[id]; err != nil {
			e.Tried = append(e.Tried, Attempt{id.String(), err})
		}
	}
	return e
}

// fail records what a peer did. The worst is kept: that it was hostile.
func (d *download) fail(id peer.ID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !errors.Is(d.failed[id], wire.ErrHostile) {
		d.failed[id] = err
	}
}
