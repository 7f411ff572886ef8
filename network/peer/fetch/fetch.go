// Package fetch gets blobs from several peers at once, verifies each leaf before it is kept, and never asks a peer that
// sent a false one again. It does not know which blobs are needed, or which peers have them: the caller names holders.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/network/peer/wire"
)

const (
	maxHolders = 64        // peers that one Fetch considers
	fanOut     = 6         // of them that are asked at a time, the fastest first
	addrTTL    = time.Hour // how long a holder's addresses are remembered
)

// ErrClosed ends the fetches of a host that is closed.
var ErrClosed = errors.New("peer: host is closed")

// Error says why no peer gave a blob. errors.Is finds in it what each peer did: wire.ErrNotFound (also if there was
// no peer to ask), wire.ErrHostile, wire.ErrBusy, or the error of dialling it.
type Error struct {
	CID   blob.CID
	Tried []Attempt
}

// Attempt is what became of asking one peer.
type Attempt struct {
	Peer string // its ID, or the address that could not be read
	Err  error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "peer: fetch %s: asked %d peers", e.CID, len(e.Tried))
	for _, a := range e.Tried {
		fmt.Fprintf(&b, "; %s: %v", a.Peer, a.Err)
	}
	return b.String()
}

// Unwrap returns the error of every attempt.
func (e *Error) Unwrap() []error {
	if len(e.Tried) == 0 {
		return []error{wire.ErrNotFound}
	}
	list := make([]error, len(e.Tried))
	for i, a := range e.Tried {
		list[i] = a.Err
	}
	return list
}

// Config says for which host blobs are fetched, and how.
type Config struct {
	Host  host.Host
	Store blob.Store // where fetched blobs go
	Links *link.Table
	Life  *lifetime.Lifetime
	// searches for addresses of peers that announced a blob; nil: the holders that the caller names are all
	Providers func(context.Context, blob.CID) ([]string, error)

	MaxBlob int64         // bytes of the largest blob that is fetched
	Hedge   time.Duration // a leaf in flight for so long is also asked from another peer
}

// Fetcher fetches blobs for a host: each once at a time, and from no peer that served false bytes. Its methods may be
// called concurrently.
type Fetcher struct {
	config Config

	mu      sync.Mutex
	hostile map[peer.ID]bool           // peers that served false bytes: not asked again
	flights map[blob.CID]chan struct{} // fetches in progress; closed when they end
	streams map[peer.ID]chan struct{}  // slots for streams to a peer
}

// New returns a fetcher that has fetched nothing yet.
func New(config Config) *Fetcher {
	return &Fetcher{config: config, hostile: map[peer.ID]bool{}, flights: map[blob.CID]chan struct{}{},
		streams: map[peer.ID]chan struct{}{}}
}

// Fetch returns the blob c and leaves it in the store. If the store has not got it, it is fetched from the peers at the
// given multiaddrs, several at once; every leaf is verified before it is kept, and a peer that sends a false one is
// never asked again. If none of them gives it, peers that announced it are asked (Config.Providers). A failed or
// cancelled Fetch leaves its leaves to the next, if the store is durable. Concurrent fetches of one blob share the
// work. The error is the context's, the store's, blob.ErrTooLarge, or an *Error.
func (h *Fetcher) Fetch(ctx context.Context, c blob.CID, from []string) (data []byte, err error) {
	return h.FetchWithin(ctx, c, from, h.config.MaxBlob)
}

// FetchWithin is Fetch of a blob of at most most bytes: blob.ErrTooLarge for a larger one, of which only the size is
// read.
func (h *Fetcher) FetchWithin(ctx context.Context, c blob.CID, from []string, most int64) (data []byte, err error) {
	err = h.obtain(ctx, c, from, most, func() error {
		if err := h.stored(ctx, c, most); err != nil {
			return err
		}
		data, err = h.config.Store.Get(ctx, c)
		return err
	})
	return data, err
}

// stored reports why a blob cannot be read from the store: blob.ErrTooLarge if it has more than most bytes, or an error
// of the store.
func (h *Fetcher) stored(ctx context.Context, c blob.CID, most int64) error {
	r, err := h.config.Store.Open(ctx, c)
	if err != nil {
		return err
	}
	defer r.Close()
	return fits(c, r.Manifest().Size, most)
}

// fits returns blob.ErrTooLarge for a blob of more than most bytes.
func fits(c blob.CID, size, most int64) error {
	if size > most {
		return fmt.Errorf("peer: fetch %s: %d bytes, this host takes %d: %w", c, size, most, blob.ErrTooLarge)
	}
	return nil
}

// Ensure is Fetch for a caller that does not need the bytes now: a stored blob is not read.
func (h *Fetcher) Ensure(ctx context.Context, c blob.CID, from []string) error {
	return h.obtain(ctx, c, from, h.config.MaxBlob, func() error {
		has, err := h.config.Store.Has(ctx, c)
		if err == nil && !has {
			err = wire.ErrNotFound
		}
		return err
	})
}

// obtain fetches a blob of at most most bytes into the store, until look finds it there.
func (h *Fetcher) obtain(ctx context.Context, c blob.CID, from []string, most int64, look func() error) error {
	for {
		err := look()
		if !errors.Is(err, wire.ErrNotFound) && !errors.Is(err, blob.ErrCorrupt) {
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
func (h *Fetcher) joinFlight(c blob.CID) (ended <-chan struct{}, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ended, ok := h.flights[c]; ok {
		return ended, false
	}
	h.flights[c] = make(chan struct{})
	return h.flights[c], true
}

func (h *Fetcher) endFlight(c blob.CID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.flights[c])
	delete(h.flights, c)
}

func fetchError(ctx context.Context, c blob.CID) error {
	return fmt.Errorf("peer: fetch %s: %w", c, context.Cause(ctx))
}

// download fetches a blob of at most most bytes into the store.
func (h *Fetcher) download(ctx context.Context, c blob.CID, from []string, most int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.config.Life.Context(), func() { cancel(ErrClosed) })()
	d := &download{fetcher: h, cid: c, failed: map[peer.ID]error{}}
	d.resolve(from)
	if blob.IsLeaf(c) {
		return d.leaf(ctx, most)
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

func (h *Fetcher) isHostile(id peer.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hostile[id]
}

// drop never asks the peer again, and ends what it is being asked now.
func (h *Fetcher) drop(id peer.ID) {
	h.mu.Lock()
	h.hostile[id] = true
	h.mu.Unlock()
	_ = h.config.Host.Network().ClosePeer(id)
}

// widen searches for providers of a blob of at most most bytes that the given holders did not give, and tries them.
func (h *Fetcher) widen(ctx context.Context, c blob.CID, from []string, most int64, err error) error {
	if failed := (*Error)(nil); h.config.Providers == nil || !errors.As(err, &failed) {
		return err
	}
	found, e := h.config.Providers(ctx, c)
	found = slices.DeleteFunc(found, func(a string) bool { return slices.Contains(from, a) })
	if e != nil || len(found) == 0 {
		return err
	}
	if h.download(ctx, c, found, most) != nil {
		return err
	}
	return nil
}
