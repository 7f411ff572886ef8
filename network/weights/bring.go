package weights

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/address"
)

const (
	maxQuestions = 32 // of one Bring, those that are repeated to one peer not counted
	atOnce       = 4  // pieces that are fetched at the same time
	again        = 50 * time.Millisecond
	floor        = 2 << 20   // bytes per second of the whole that a patch has time for
	slowest      = 256 << 10 // bytes per second of a piece that does not stall
	mostTime     = time.Hour // for the bytes of a patch
)

var (
	// ErrNone says that no peer gave a patch between two versions.
	ErrNone = errors.New("no peer has a patch between these versions")
	// ErrLarger says that a patch has more bytes than the caller takes.
	ErrLarger = errors.New("the patch has more bytes than the whole")

	errMaking = errors.New("the patch is being made")
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

// Bring gets the patch from a version to a later one from peers at the addresses of holders, calls apply with it, and
// returns how many bytes it has: most, at most. Apply refuses a patch that it cannot apply, or that does not lead to
// the later version: the patch is forgotten, and the error is a *RefusedError. After any error the caller fetches the
// whole version; the error comes after 30 s and the time that most bytes take at 2 MiB/s, at the latest.
func (x *Exchange) Bring(ctx context.Context, from, to patch.Name, most int64, holders []string,
	apply func(h *patch.Head, get func(i int) ([]byte, error)) error) (size int64, err error) {
	if to.Round <= from.Round {
		return 0, fmt.Errorf("weights: from round %d to %d: %w", from.Round, to.Round, ErrNone)
	}
	r := newReceiver(x, from, to, most, holders)
	var got *arrived
	defer func() { r.clear(ctx, got, err == nil) }()
	forBytes := min(mostTime, time.Duration(min(most/floor, int64(mostTime/time.Second)))*time.Second)
	searching, cancel := context.WithTimeout(ctx, x.times.bring+forBytes)
	defer cancel()
	if got, err = r.search(searching); err != nil {
		return 0, err
	}
	err = apply(got.head, func(i int) ([]byte, error) { return x.store.Get(ctx, blob.LeafOf(got.head.Pieces[i].Sum)) })
	switch {
	case err == nil:
		return got.bytes, nil
	case ctx.Err() != nil, errors.Is(err, blob.ErrNotFound): // the store has deleted a piece
		return 0, err
	}
	return 0, &RefusedError{got.cid, got.peer, err}
}

// arrived is a patch that is in the store.
type arrived struct {
	known *known // nil: others are not told of it
	cid   blob.CID
	head  *patch.Head
	bytes int64
	peer  peer.ID
}

// asked is a question that is asked once, apart from repetitions while a peer makes or learns.
type asked struct {
	peer  peer.ID
	named bool // by another peer
}

// receiver gets a patch for one caller.
type receiver struct {
	*Exchange
	from, to patch.Name
	way      way
	most     int64 // bytes of the patch

	infos     map[peer.ID]peer.AddrInfo // of the holders
	order     []peer.ID                 // of the holders
	asked     map[asked]bool
	questions int
	pieces    pieces
}

// newReceiver asks the holders in an order of their own for every receiver, so that several holders send to different
// ones.
func newReceiver(x *Exchange, from, to patch.Name, most int64, holders []string) *receiver {
	r := &receiver{Exchange: x, from: from, to: to, way: way{from.Root, to.Root}, most: most,
		infos: map[peer.ID]peer.AddrInfo{}, asked: map[asked]bool{},
		pieces: pieces{store: x.store, added: map[blob.CID]bool{}}}
	r.pieces.left.Store(2 * min(most, 1<<60))
	for _, info := range address.Others(x.host.ID(), holders) {
		r.infos[info.ID] = info
		r.order = append(r.order, info.ID)
	}
	slices.SortFunc(r.order, r.compare)
	return r
}

func (r *receiver) compare(a, b peer.ID) int {
	rank := func(id peer.ID) []byte {
		d := canon.Sum("starling/weights/rank/1", r.to.Root[:], []byte(r.host.ID()), []byte(id))
		return d[:]
	}
	return bytes.Compare(rank(a), rank(b))
}

// clear deletes what came and is not used, and tells others of the patch, or not.
func (r *receiver) clear(ctx context.Context, got *arrived, used bool) {
	keep := map[blob.CID]bool{}
	if got != nil && used {
		r.complete(got.known)
		keep[got.cid] = true
		for _, p := range got.head.Pieces {
			keep[blob.LeafOf(p.Sum)] = true
		}
	} else if got != nil {
		r.forget(r.way, got.known)
	}
	var list []blob.CID
	for c := range r.pieces.added {
		if !r.serves || !keep[c] {
			list = append(list, c)
		}
	}
	r.discard(ctx, list)
}

// search asks the holders in turn, and those that make the patch again after the others.
func (r *receiver) search(ctx context.Context) (*arrived, error) {
	err := error(ErrNone)
	for waiting := r.order; len(waiting) > 0; {
		var making []peer.ID
		for _, id := range waiting {
			got, failed := r.get(ctx, asked{id, false})
			switch {
			case failed == nil:
				return got, nil
			case ctx.Err() != nil, r.questions == maxQuestions, r.pieces.left.Load() < 0:
				return nil, failed
			case errors.Is(failed, errMaking):
				making = append(making, id)
			}
			err = failed
		}
		waiting = making
	}
	return nil, err
}

// get gets the patch from a peer, or from one that it names. If that fails it gets it from the first.
func (r *receiver) get(ctx context.Context, to asked) (*arrived, error) {
	if _, ok := r.infos[to.peer]; !ok || r.asked[to] || r.sendsTo(to.peer) {
		return nil, fmt.Errorf("weights: %s is not asked: %w", to.peer, ErrNone)
	}
	r.asked[to] = true
	a, err := r.ask(ctx, to, question{From: r.way.from, To: r.way.to, Serves: r.serves})
	if errors.Is(err, errMaking) {
		delete(r.asked, to)
	}
	if err != nil {
		return nil, err
	}
	if len(a.Ask) > 0 {
		slices.SortFunc(a.Ask, func(a, b []byte) int { return r.compare(peer.ID(a), peer.ID(b)) })
		got, err := r.get(ctx, asked{peer.ID(a.Ask[0]), true})
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		a, err = r.ask(ctx, to, question{From: r.way.from, To: r.way.to, Serves: r.serves, Failed: true})
		if err != nil {
			return nil, err
		}
		if len(a.Ask) > 0 {
			return nil, fmt.Errorf("weights: %s names others again: %w", to.peer, ErrNone)
		}
	}
	return r.receive(ctx, to.peer, a)
}

// sendsTo reports whether a peer gets the patch from this one: then it waits for us.
func (r *receiver) sendsTo(id peer.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.known[r.way]
	return k != nil && slices.Contains(k.children, id)
}

// ask asks a peer until it knows the patch: for a while if it makes the patch, or was named to us.
func (r *receiver) ask(ctx context.Context, to asked, q question) (*answer, error) {
	if r.questions == maxQuestions {
		return nil, fmt.Errorf("weights: after %d questions: %w", maxQuestions, ErrNone)
	}
	r.questions++
	for pause, begin := again, time.Now(); ; pause *= 2 {
		a, err := r.once(ctx, to.peer, q)
		if err != nil || a.Known {
			return a, err
		}
		patience, none := time.Duration(0), ErrNone
		if to.named {
			patience = r.times.learns
		}
		if a.Making {
			patience, none = r.times.making, errMaking
		}
		if time.Since(begin) >= patience {
			return nil, fmt.Errorf("weights: %s: %w", to.peer, none)
		}
		if err := rest(ctx, min(pause, patience)); err != nil {
			return nil, err
		}
	}
}

// once asks a peer once.
func (r *receiver) once(ctx context.Context, id peer.ID, q question) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, r.times.question)
	defer cancel()
	b, err := r.host.Ask(ctx, r.infos[id], Protocol, canon.MustMarshal(q))
	if err != nil {
		return nil, err
	}
	a, err := parseAnswer(id, b)
	if err == nil && a.Bytes > uint64(max(0, r.most)) {
		return nil, fmt.Errorf("weights: %d bytes of %d: %w", a.Bytes, r.most, ErrLarger)
	}
	return a, err
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
