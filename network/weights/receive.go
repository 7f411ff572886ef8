package weights

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
)

// pieces are the blobs of patches that came for one caller.
type pieces struct {
	store blob.Store
	left  atomic.Int64 // bytes that may come yet; below 0: too many came

	mu    sync.Mutex
	added map[blob.CID]bool // that the store did not have before
}

// take fetches a blob, whose size is at most most bytes, and notes it if the store did not have it.
func (p *pieces) take(ctx context.Context, c blob.CID, most int64,
	fetch func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	has, err := p.store.Has(ctx, c)
	if err != nil {
		return nil, err
	}
	set := func(to bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if to {
			p.added[c] = true
		} else {
			delete(p.added, c)
		}
	}
	if !has {
		if p.left.Load() < most {
			p.left.Store(-1)
			return nil, fmt.Errorf("weights: too many bytes of patches: %w", ErrLarger)
		}
		set(true)
	}
	b, err := fetch(ctx)
	switch {
	case err == nil && !has:
		p.left.Add(-int64(len(b)))
	case !has && errors.Is(err, blob.ErrNotFound): // one that comes from elsewhere meanwhile is not ours
		set(false)
	}
	return b, err
}

// sender is a peer from which a patch comes.
type sender struct {
	*receiver
	addrs []string
	came  atomic.Int64  // when a blob came last, in Unix nanoseconds
	waits time.Duration // for the next blob
}

// await gets a blob, whose size is at most most bytes. The peer may still be waiting for it.
func (s *sender) await(ctx context.Context, c blob.CID, most int64) ([]byte, error) {
	for pause := again; ; pause = min(2*pause, time.Second) {
		b, err := s.pieces.take(ctx, c, most, func(ctx context.Context) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, s.waits)
			defer cancel()
			return s.fetch(ctx, c, s.addrs, most)
		})
		if err == nil {
			s.came.Store(time.Now().UnixNano())
			return b, nil
		}
		if !errors.Is(err, blob.ErrNotFound) || time.Since(time.Unix(0, s.came.Load())) > s.waits {
			return nil, err
		}
		if err := rest(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// receive gets a patch from a peer, which may be getting it itself, in half of the time that is left. Others may ask us
// for it from now on, until it has failed to come.
func (r *receiver) receive(ctx context.Context, id peer.ID, a *answer) (_ *arrived, err error) {
	if end, ok := ctx.Deadline(); ok {
		within, cancel := context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
		ctx = within
	}
	got := &arrived{cid: blob.LeafOf(a.Head), bytes: int64(a.Bytes), peer: id}
	if r.serves {
		got.known = r.note(r.way, got.cid, got.bytes, false)
		defer func() {
			if err != nil {
				r.forget(r.way, got.known)
			}
		}()
	}
	most := min(patch.MaxHeadBytes, got.bytes)
	s := &sender{receiver: r, waits: r.patience(most)}
	for _, addr := range r.infos[id].Addrs {
		s.addrs = append(s.addrs, addr.String()+"/p2p/"+id.String())
	}
	s.came.Store(time.Now().UnixNano())
	b, err := s.await(ctx, got.cid, most)
	if err != nil {
		return nil, err
	}
	if got.head, err = r.head(b, got.bytes); err != nil {
		return nil, &RefusedError{got.cid, id, err}
	}
	largest := int64(0)
	for _, p := range got.head.Pieces {
		largest = max(largest, int64(p.Bytes))
	}
	s.waits = r.patience(largest)
	working, ctx := errgroup.WithContext(ctx)
	working.SetLimit(atOnce)
	for i, p := range got.head.Pieces {
		working.Go(func() error {
			b, err := s.await(ctx, blob.LeafOf(p.Sum), int64(p.Bytes))
			if err == nil && len(b) != int(p.Bytes) || errors.Is(err, blob.ErrTooLarge) {
				return &RefusedError{got.cid, id, fmt.Errorf("weights: %w: piece %d has not %d bytes", patch.ErrPiece, i, p.Bytes)}
			}
			return err
		})
	}
	if err := working.Wait(); err != nil {
		return nil, err
	}
	return got, nil
}

// patience is how long a blob of most bytes may take.
func (r *receiver) patience(most int64) time.Duration {
	return r.times.stall + time.Duration(most)*time.Second/slowest
}

// head decodes the head of a patch. The head and its pieces have a number of bytes together.
func (r *receiver) head(b []byte, bytes int64) (*patch.Head, error) {
	h, err := patch.Decode(b)
	if err != nil {
		return nil, err
	}
	if h.From != r.from || h.To != r.to || int64(len(b))+h.Bytes() != bytes {
		return nil, fmt.Errorf("weights: %w: it leads from %d (%s) to %d (%s), in %d bytes", patch.ErrHead, h.From.Round,
			h.From.Root.Short(), h.To.Round, h.To.Root.Short(), int64(len(b))+h.Bytes())
	}
	return h, nil
}
