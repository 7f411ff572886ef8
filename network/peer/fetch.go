package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/network/blob"
)

const (
	maxHolders = 64        // peers that one Fetch considers
	fanOut     = 6         // of them that are asked at a time, the fastest first
	addrTTL    = time.Hour // how long a holder's addresses are remembered
)

// FetchError says why no peer gave a blob. errors.Is finds in it what each peer did: ErrNotFound (also if there was
// nobody to ask), ErrHostile, ErrBusy, or the error of dialling it.
type FetchError struct {
	CID   blob.CID
	Tried []Attempt
}

// Attempt is what became of asking one peer.
type Attempt struct {
	Peer string // its ID, or the address that could not be read
	Err  error
}

func (e *FetchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "peer: fetch %s: asked %d peers", e.CID, len(e.Tried))
	for _, a := range e.Tried {
		fmt.Fprintf(&b, "; %s: %v", a.Peer, a.Err)
	}
	return b.String()
}

// Unwrap returns the error of every attempt.
func (e *FetchError) Unwrap() []error {
	if len(e.Tried) == 0 {
		return []error{ErrNotFound}
	}
	list := make([]error, len(e.Tried))
	for i, a := range e.Tried {
		list[i] = a.Err
	}
	return list
}

// fetcher fetches blobs for a host: each once at a time, and from no peer that served false bytes.
type fetcher struct {
	*Host

	mu      sync.Mutex
	hostile map[ID]bool                // peers that served false bytes: not asked again
	flights map[blob.CID]chan struct{} // fetches in progress; closed when they end
	streams map[ID]chan struct{}       // slots for streams to a peer
}

func newFetcher(h *Host) *fetcher {
	return &fetcher{Host: h, hostile: map[ID]bool{}, flights: map[blob.CID]chan struct{}{},
		streams: map[ID]chan struct{}{}}
}

// Fetch returns the blob c and leaves it in the store. If the store has not got it, it is fetched from the peers at
// the given multiaddrs, several at once; every leaf is verified before it is kept, and a peer that sends a false one is
// never asked again. If none of them gives it, who announced it is asked (Config.Known). A failed or cancelled Fetch
// leaves its leaves to the next, if the store is durable. Concurrent fetches of one blob share the work. The error is
// the context's, the store's, blob.ErrTooLarge, or a *FetchError.
func (h *Host) Fetch(ctx context.Context, c blob.CID, from []string) (data []byte, err error) {
	return h.FetchWithin(ctx, c, from, h.config.MaxBlob)
}

// FetchWithin is Fetch of a blob of at most so many bytes: blob.ErrTooLarge for a larger one, of which nothing but its
// size is read.
func (h *Host) FetchWithin(ctx context.Context, c blob.CID, from []string, most int64) (data []byte, err error) {
	err = h.fetcher.obtain(ctx, c, from, most, func() error {
		if err := h.stored(ctx, c, most); err != nil {
			return err
		}
		data, err = h.config.Store.Get(ctx, c)
		return err
	})
	return data, err
}

// stored reports why a blob cannot be read from the store into so many bytes: blob.ErrTooLarge, or an error of the
// store.
func (h *Host) stored(ctx context.Context, c blob.CID, most int64) error {
	r, err := h.config.Store.Open(ctx, c)
	if err != nil {
		return err
	}
	defer r.Close()
	return fits(c, r.Manifest().Size, most)
}

// fits reports whether a blob has at most so many bytes.
func fits(c blob.CID, size, most int64) error {
	if size > most {
		return fmt.Errorf("peer: fetch %s: %d bytes, this host takes %d: %w", c, size, most, blob.ErrTooLarge)
	}
	return nil
}

// Ensure is Fetch for who does not need the bytes now: what is stored already is not read.
func (h *Host) Ensure(ctx context.Context, c blob.CID, from []string) error {
	return h.fetcher.obtain(ctx, c, from, h.config.MaxBlob, func() error {
		has, err := h.config.Store.Has(ctx, c)
		if err == nil && !has {
			err = ErrNotFound
		}
		return err
	})
}

// obtain fetches a blob of at most so many bytes until the store has it, as look says.
func (h *fetcher) obtain(ctx context.Context, c blob.CID, from []string, most int64, look func() error) error {
	for {
		err := look()
		if !errors.Is(err, ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		ended, first := h.joinFlight(c)
		if first {
			if err = h.download(ctx, c, from, most); err != nil {
				err = h.widen(ctx, c, from, most, err)
			}
			h.endFlight(c)
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-ended: // well or badly: look in the store, or try our own holders
		case <-ctx.Done():
			return fetchError(ctx, c)
		}
	}
}

// joinFlight registers a fetch of c unless there is one, whose end is then the end of the channel.
func (h *fetcher) joinFlight(c blob.CID) (ended <-chan struct{}, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ended, ok := h.flights[c]; ok {
		return ended, false
	}
	h.flights[c] = make(chan struct{})
	return h.flights[c], true
}

func (h *fetcher) endFlight(c blob.CID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.flights[c])
	delete(h.flights, c)
}

func fetchError(ctx context.Context, c blob.CID) error {
	return fmt.Errorf("peer: fetch %s: %w", c, context.Cause(ctx))
}

// download fetches a blob of at most so many bytes into the store.
func (h *fetcher) download(ctx context.Context, c blob.CID, from []string, most int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(ErrClosed) })()
	d := &download{host: h, cid: c, failed: map[ID]error{}}
	d.resolve(from)
	if blob.IsLeaf(c) {
		return d.leaf(ctx)
	}
	m, err := d.manifest(ctx)
	if err != nil {
		return err
	}
	if err := fits(c, m.Size, min(most, h.config.MaxBlob)); err != nil {
		return err
	}
	return d.assemble(ctx, m)
}

// download is one Fetch that needs peers.
type download struct {
	host  *fetcher
	cid   blob.CID
	peers []ID
	bad   []Attempt // addresses that could not be read

	mu     sync.Mutex
	failed map[ID]error
}

// resolve turns addresses into peers, and remembers the addresses.
func (d *download) resolve(from []string) {
	for _, addr := range from[:min(len(from), maxHolders)] {
		info, err := parseAddr(addr)
		if err != nil {
			d.bad = append(d.bad, Attempt{addr, err})
			continue
		}
		if info.ID == d.host.ID() {
			continue
		}
		d.host.host.Peerstore().AddAddrs(info.ID, info.Addrs, addrTTL)
		if !slices.Contains(d.peers, info.ID) {
			d.peers = append(d.peers, info.ID)
		}
	}
}

// leaf fetches a blob of one leaf.
func (d *download) leaf(ctx context.Context) error {
	t := newTransfer([]int{0}, 1, d.host.config.Hedge)
	t.limit = blob.LeafBytes
	t.request = func(from, to int) request { return request{d.cid.Bytes(), uint32(from), uint32(to)} }
	t.keep = func(_ int, data []byte) error {
		if err := blob.CheckLeaf(d.cid, data); err != nil {
			return err
		}
		_, err := d.host.config.Store.Put(ctx, data)
		return err
	}
	return d.run(ctx, t, 1)
}

// manifest fetches the manifest.
func (d *download) manifest(ctx context.Context) (m *blob.Manifest, err error) {
	t := newTransfer([]int{0}, 1, d.host.config.Hedge)
	t.limit = blob.MaxManifestBytes
	t.request = func(int, int) request { return request{Root: d.cid.Bytes()} }
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
	a, err := d.host.config.Store.Assemble(ctx, m)
	if err != nil {
		return err
	}
	defer a.Close()
	missing := a.Missing()
	streams := streamsPerPeer
	if len(missing) < 8 {
		streams = 1
	}
	t := newTransfer(missing, len(missing)/(max(1, len(d.peers))*streams*6), d.host.config.Hedge)
	t.limit = blob.LeafBytes
	t.request = func(from, to int) request { return request{d.cid.Bytes(), uint32(from), uint32(to)} }
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
	d.host.links.byRate(d.peers)
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
	gone := make(chan ID, len(d.peers)) // it has ended
	var workers sync.WaitGroup
	waiting, lacking := slices.Clone(d.peers), []ID(nil)
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
	late := time.NewTicker(max(d.host.config.Hedge, time.Millisecond))
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
func (d *download) lacks(id ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Is(d.failed[id], ErrNotFound)
}

func (d *download) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := &FetchError{CID: d.cid, Tried: slices.Clone(d.bad)}
	for _, id := range d.peers {
		if err := d.failed[id]; err != nil {
			e.Tried = append(e.Tried, Attempt{id.String(), err})
		}
	}
	return e
}

// fail records what a peer did. The worst is kept: that it was hostile.
func (d *download) fail(id ID, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !errors.Is(d.failed[id], ErrHostile) {
		d.failed[id] = err
	}
}

func (h *fetcher) isHostile(id ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hostile[id]
}

// drop never asks the peer again, and ends what it is being asked now.
func (h *fetcher) drop(id ID) {
	h.mu.Lock()
	h.hostile[id] = true
	h.mu.Unlock()
	_ = h.host.Network().ClosePeer(id)
}
