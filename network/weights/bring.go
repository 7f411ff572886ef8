package weights

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/address"
)

const (
	maxAsked   = 8 // holders that are asked first
	maxDepth   = 16
	maxSteps   = 32 // patches of a way
	atOnce     = 4  // pieces that are fetched at the same time
	tries      = 3  // of a peer that names others, which fail
	again      = 50 * time.Millisecond
	searchTime = 10 * time.Second // after which no further holder is asked first
	learns     = 2 * time.Second  // a peer that was named to us has to know the patch
	stallTime  = 10 * time.Second // without a piece the peer that sends them counts as failed
)

var (
	// ErrNone says that no peer knows a way between two versions.
	ErrNone = errors.New("no peer has a patch between these versions")
	// ErrLarger says that a way has more bytes than the caller takes.
	ErrLarger = errors.New("the patches have more bytes than the whole")
)

// RefusedError says that a patch is not what it should be.
type RefusedError struct {
	Head blob.CID // of the patch
	Peer peer.ID  // that sent it
	Err  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("weights: the patch %s from %s is refused: %v", e.Head, e.Peer, e.Err)
}

// Unwrap returns why.
func (e *RefusedError) Unwrap() error { return e.Err }

// Brought are the bytes of the patches that came.
type Brought struct {
	Patches int
	Bytes   int64
}

// Bring gets the patches that lead from a version to another, of at most so many bytes together, from peers at the
// given addresses, and has each applied, in order. A patch that cannot be applied, or does not lead to the version that
// it names, is for apply to refuse: it is forgotten, and the error is a *RefusedError. ErrNone and ErrLarger say that
// the whole is to be fetched instead.
func (x *Exchange) Bring(ctx context.Context, from, to canon.Digest, most int64, holders []string,
	apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (all Brought, err error) {
	r := &receiver{Exchange: x, peers: map[peer.ID][]string{}}
	for _, info := range address.Others(x.host.ID(), holders) {
		r.infos = append(r.infos, info)
		for _, a := range info.Addrs {
			r.peers[info.ID] = append(r.peers[info.ID], a.String()+"/p2p/"+info.ID.String())
		}
	}
	for range maxSteps {
		if from == to {
			return all, nil
		}
		got, err := r.step(ctx, from, to, most-all.Bytes)
		if err != nil {
			return all, err
		}
		err = apply(got.head, func(i int) ([]byte, error) {
			return x.fetch(ctx, blob.LeafOf(got.head.Pieces[i].Sum), nil, patch.MaxPieceBytes)
		})
		x.settle(ctx, got, err != nil)
		if err != nil {
			return all, &RefusedError{got.cid, got.peer, err}
		}
		all.Patches, all.Bytes, from = all.Patches+1, all.Bytes+got.bytes, got.way.to
	}
	return all, fmt.Errorf("weights: more than %d patches: %w", maxSteps, ErrNone)
}

// settle forgets a patch that was refused, and one that is not sent to others.
func (x *Exchange) settle(ctx context.Context, got *arrived, refused bool) {
	if x.serves && !refused {
		return
	}
	x.forget(got.way)
	for _, p := range got.head.Pieces {
		_ = x.store.Delete(ctx, blob.LeafOf(p.Sum))
	}
	_ = x.store.Delete(ctx, got.cid)
}

// arrived is a patch that is in the store.
type arrived struct {
	way   way
	cid   blob.CID // of the head
	head  *patch.Head
	bytes int64
	peer  peer.ID
}

// receiver gets patches for one caller.
type receiver struct {
	*Exchange
	infos []peer.AddrInfo // of the holders
	peers map[peer.ID][]string
}

// step gets the next patch on a way. The holders are asked in an order of their own for every receiver, so that several
// holders send to different ones.
func (r *receiver) step(ctx context.Context, from, to canon.Digest, most int64) (*arrived, error) {
	order := slices.Clone(r.infos)
	slices.SortFunc(order, func(a, b peer.AddrInfo) int {
		return bytes.Compare(r.rank(to, a.ID), r.rank(to, b.ID))
	})
	err, begin := error(ErrNone), time.Now()
	for _, info := range order[:min(len(order), maxAsked)] {
		if time.Since(begin) > searchTime {
			break
		}
		got, failed := r.from(ctx, info.ID, way{from, to}, most, 0)
		if failed == nil || ctx.Err() != nil {
			return got, failed
		}
		err = failed
	}
	r.abandon(from)
	return nil, err
}

func (r *receiver) rank(to canon.Digest, id peer.ID) []byte {
	d := canon.Sum("starling/weights/rank/1", to[:], []byte(r.host.ID()), []byte(id))
	return d[:]
}

// from gets the next patch on a way from a peer, or from those that it names.
func (r *receiver) from(ctx context.Context, id peer.ID, w way, most int64, depth int) (*arrived, error) {
	if depth > maxDepth || r.peers[id] == nil || r.sendsTo(id, w) {
		return nil, ErrNone
	}
	q := question{From: w.from, To: w.to, Serves: r.serves}
	err := error(ErrNone)
	for range tries {
		a, failed := r.ask(ctx, id, q, depth > 0)
		switch {
		case failed != nil:
			return nil, failed
		case a.Total > uint64(max(0, most)):
			return nil, fmt.Errorf("weights: %d bytes of %d: %w", a.Total, most, ErrLarger)
		case len(a.Ask) == 0:
			return r.receive(ctx, id, way{w.from, a.To}, a)
		}
		slices.SortFunc(a.Ask, func(a, b []byte) int {
			return bytes.Compare(r.rank(w.to, peer.ID(a)), r.rank(w.to, peer.ID(b)))
		})
		for _, child := range a.Ask {
			got, failed := r.from(ctx, peer.ID(child), w, most, depth+1)
			if failed == nil || ctx.Err() != nil {
				return got, failed
			}
			q.Failed, err = append(q.Failed, child), failed
		}
		q.Failed = q.Failed[max(0, len(q.Failed)-maxFailed):]
	}
	return nil, err
}

// sendsTo reports whether a peer gets a patch from this one: then it waits for us.
func (r *receiver) sendsTo(id peer.ID, w way) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, k := range r.known {
		if other.from == w.from && slices.Contains(k.children, id) {
			return true
		}
	}
	return false
}

// ask asks a peer. With waits, it may be about to learn of the patch.
func (r *receiver) ask(ctx context.Context, id peer.ID, q question, waits bool) (*answer, error) {
	i := slices.IndexFunc(r.infos, func(info peer.AddrInfo) bool { return info.ID == id })
	for begin := time.Now(); ; {
		b, err := r.host.Ask(ctx, r.infos[i], Protocol, canon.MustMarshal(q))
		if err != nil {
			return nil, err
		}
		a, err := parseAnswer(b)
		if err != nil || a.Known {
			return a, err
		}
		if !waits || time.Since(begin) > learns {
			return nil, fmt.Errorf("weights: %s: %w", id, ErrNone)
		}
		if err := rest(ctx, again); err != nil {
			return nil, err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// receive gets a patch from a peer, which may be getting it itself. Others may ask us for it from now on.
func (r *receiver) receive(ctx context.Context, id peer.ID, w way, a *answer) (*arrived, error) {
	cid := blob.LeafOf(a.Head)
	if r.serves {
		r.note(w, cid, int64(a.Bytes))
	}
	var came atomic.Int64
	came.Store(time.Now().UnixNano())
	await := func(ctx context.Context, c blob.CID, most int64) ([]byte, error) {
		for pause := again; ; pause = min(2*pause, time.Second) {
			b, err := r.fetch(ctx, c, r.peers[id], most)
			if err == nil {
				came.Store(time.Now().UnixNano())
				return b, nil
			}
			if !errors.Is(err, blob.ErrNotFound) || time.Since(time.Unix(0, came.Load())) > stallTime {
				return nil, err
			}
			if err := rest(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
	b, err := await(ctx, cid, patch.MaxHeadBytes)
	if err != nil {
		return nil, err
	}
	h, err := patch.Decode(b)
	if err == nil && (h.From.Root != w.from || h.To.Root != w.to || int64(len(b))+h.Bytes() != int64(a.Bytes)) {
		err = fmt.Errorf("weights: %w: it leads from %s to %s, in %d bytes", patch.ErrHead, h.From.Root.Short(),
			h.To.Root.Short(), h.Bytes())
	}
	if err != nil {
		return nil, &RefusedError{cid, id, err}
	}
	working, ctx := errgroup.WithContext(ctx)
	working.SetLimit(atOnce)
	for _, p := range h.Pieces {
		working.Go(func() error {
			_, err := await(ctx, blob.LeafOf(p.Sum), patch.MaxPieceBytes)
			return err
		})
	}
	if err := working.Wait(); err != nil {
		return nil, err
	}
	r.complete(w, false)
	return &arrived{w, cid, h, int64(a.Bytes), id}, nil
}
