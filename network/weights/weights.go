// Package weights brings versions of the weights of a model from peer to peer as patches (exchange/patch). A peer that
// holds two versions makes the patch between them when another asks for it, and sends it to one peer, which sends it to
// two; each names these to all others, which ask one of them in turn. So peers that get a version form a tree, through
// which the pieces of a patch pass while they arrive. A peer whose parent fails gets the patch from the parent of that.
//
// It does not know which versions are right: the caller verifies the version that a patch leads to before it is used.
// Peers may lie: a receiver bounds its questions, its bytes and its time, and keeps nothing of a patch that it does not
// use; a maker makes one patch at a time, and each a few times at most.
package weights

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/message"
)

const (
	maxKnown    = 64 // patches that a peer remembers
	maxRecalled = 64 // peers that were sent to the children of a patch, and of those that lost a place
	believed    = 2  // such peers that say so have the children of a patch replaced
)

// Host is what an exchange needs of a peer.Host.
type Host interface {
	ID() peer.ID
	Ask(ctx context.Context, to peer.AddrInfo, of string, question []byte) ([]byte, error)
	Answer(of string, answer message.Answerer)
}

// Fetch gets a blob from one of the peers at some addresses into the store of an exchange, unless the store has it. It
// refuses a blob of more than most bytes.
type Fetch func(ctx context.Context, c blob.CID, from []string, most int64) ([]byte, error)

// Source holds versions of weights.
type Source interface {
	// Versions are the versions that it holds, none of which is changed.
	Versions() []patch.Version
}

// times are how long a host waits, and for how long it believes its store.
type times struct {
	bring    time.Duration // for a patch in all, apart from the time for its bytes
	question time.Duration // for an answer
	learns   time.Duration // for a peer that was named to us, which has to know the patch
	making   time.Duration // for a peer that makes the patch, before others are asked
	stall    time.Duration // without a piece, after which the peer that sends them counts as failed
	stored   time.Duration // after which the store is asked again whether it has a patch
}

// Exchange is the part of one host in the exchange of weights. Its methods may be called concurrently.
type Exchange struct {
	host   Host
	store  blob.Store // where patches go
	fetch  Fetch
	serves bool
	times  times

	ctx     context.Context
	close   context.CancelFunc
	working sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	sources []Source
	making  bool        // a patch is made
	tried   map[way]int // times that a patch between versions that are held was begun to be made
	known   map[way]*known
	order   []way // of the known ones, the oldest first
}

// way is from one version to another.
type way struct{ from, to canon.Digest }

// known is a patch that this host has, or is getting.
type known struct {
	head     blob.CID
	bytes    int64     // of the head and the pieces
	children []peer.ID // that get it from here, and send it to others
	sent     []peer.ID // that were sent to the children
	told     []peer.ID // those of them that said that the children failed
	lost     []peer.ID // that were children
	whole    bool      // all of it is here
	made     bool      // by this host
	stored   time.Time // when the store was seen to have all of it
}

// New returns the exchange of a host, which answers the questions of others.
func New(host Host, store blob.Store, fetch Fetch) *Exchange {
	x := Receiver(host, store, fetch)
	x.serves = true
	host.Answer(Protocol, x.answer)
	return x
}

// Receiver returns an exchange that sends nothing to others, and keeps no patch after its use.
func Receiver(host Host, store blob.Store, fetch Fetch) *Exchange {
	ctx, cancel := context.WithCancel(context.Background())
	return &Exchange{host: host, store: store, fetch: fetch, ctx: ctx, close: cancel, known: map[way]*known{},
		tried: map[way]int{}, times: times{bring: 30 * time.Second, question: 3 * time.Second, learns: time.Second,
			making: 3 * time.Second, stall: 3 * time.Second, stored: 5 * time.Second}}
}

// Close ends the making of patches, and returns when none is made.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.close()
	x.working.Wait()
}

// Serve has patches made between the versions that a source holds, until stop.
func (x *Exchange) Serve(s Source) (stop func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sources = append(x.sources, s)
	return sync.OnceFunc(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.sources = slices.DeleteFunc(slices.Clone(x.sources), func(other Source) bool { return other == s })
	})
}

// answer answers the question of a peer.
func (x *Exchange) answer(ctx context.Context, from peer.ID, body []byte) []byte {
	q, err := parseQuestion(body)
	if err != nil {
		return nil
	}
	w := way{q.From, q.To}
	if !x.has(ctx, w) && x.begin(w) {
		return canon.MustMarshal(answer{Making: true})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.known[w]
	if k == nil {
		return canon.MustMarshal(answer{})
	}
	a := answer{Known: true, Head: canon.Digest(k.head.Hash()[2:]), Bytes: uint64(k.bytes)}
	for _, id := range k.place(from, q) {
		a.Ask = append(a.Ask, []byte(id))
	}
	return canon.MustMarshal(a)
}

// place are the children that a peer is to ask; none: this host sends it the patch. A peer for which a child failed
// needs no other to say so. The bytes are given to all that ask for them, so that nothing is gained by a lie; the
// children are replaced only if some that were sent to them say so.
func (k *known) place(from peer.ID, q *question) []peer.ID {
	most := maxChildren
	if k.made {
		most = 1
	}
	switch {
	case slices.Contains(k.children, from):
		return nil
	case q.Failed:
		k.fail(from)
	case len(k.children) == most:
		k.sent = latest(k.sent, from)
		return k.children
	}
	if q.Serves && len(k.children) < most && !slices.Contains(k.lost, from) {
		k.children = append(k.children, from)
	}
	return nil
}

// fail notes that a peer did not get the patch from a child.
func (k *known) fail(from peer.ID) {
	if !slices.Contains(k.sent, from) || slices.Contains(k.told, from) {
		return
	}
	if k.told = append(k.told, from); len(k.told) < believed {
		return
	}
	for _, id := range k.children {
		k.lost = latest(k.lost, id)
	}
	k.children, k.sent, k.told = nil, nil, nil
}

// latest appends a peer, and drops the first beyond maxRecalled.
func latest(list []peer.ID, id peer.ID) []peer.ID {
	if slices.Contains(list, id) {
		return list
	}
	list = append(list, id)
	return list[max(0, len(list)-maxRecalled):]
}

// note remembers a patch that is coming, or was made. One that is here whole is replaced by one that was made.
func (x *Exchange) note(w way, head blob.CID, bytes int64, made bool) *known {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.known[w]
	if k == nil || k.head != head {
		if k != nil && k.whole && !made {
			return nil
		}
		x.drop(w)
		k = &known{head: head, bytes: bytes}
		x.known[w] = k
		x.order = append(x.order, w)
		if len(x.order) > maxKnown {
			x.drop(x.order[0])
		}
	}
	if made {
		k.whole, k.made = true, true
	}
	return k
}

// complete says that all of a patch is here, and applied.
func (x *Exchange) complete(k *known) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k != nil {
		k.whole = true
	}
}

// forget forgets a patch that did not come, or is refused.
func (x *Exchange) forget(w way, k *known) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k != nil && x.known[w] == k && !k.whole {
		x.drop(w)
	}
}

func (x *Exchange) drop(w way) {
	delete(x.known, w)
	x.order = slices.DeleteFunc(x.order, func(other way) bool { return other == w })
}

// has reports whether a patch is in the store with all of its pieces. One that the store has deleted is forgotten.
func (x *Exchange) has(ctx context.Context, w way) bool {
	x.mu.Lock()
	k := x.known[w]
	whole := k != nil && k.whole
	fresh := whole && time.Since(k.stored) < x.times.stored
	x.mu.Unlock()
	if fresh || !whole {
		return fresh
	}
	stored := x.stored(ctx, k.head)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.known[w] != k {
		return false
	}
	if k.stored = time.Now(); !stored {
		x.drop(w)
	}
	return stored
}

// stored reports whether the store has a head with all of its pieces.
func (x *Exchange) stored(ctx context.Context, head blob.CID) bool {
	b, err := x.store.Get(ctx, head)
	if err != nil {
		return false
	}
	h, err := patch.Decode(b)
	if err != nil {
		return false
	}
	for _, p := range h.Pieces {
		if has, err := x.store.Has(ctx, blob.LeafOf(p.Sum)); !has || err != nil {
			return false
		}
	}
	return true
}

// pinning is a store in which some blobs are needed; a quota.Store.
type pinning interface {
	Pinned(c blob.CID) bool
}

// discard deletes blobs of a patch, except pinned ones.
func (x *Exchange) discard(ctx context.Context, list []blob.CID) {
	pins, _ := x.store.(pinning)
	for _, c := range list {
		if pins == nil || !pins.Pinned(c) {
			_ = x.store.Delete(context.WithoutCancel(ctx), c)
		}
	}
}
