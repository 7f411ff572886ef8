// Package weights brings versions of the weights of a model from peer to peer as patches (exchange/patch). A peer that
// holds two versions makes the patch between them when another asks for it, and sends it to one peer, which sends it to
// two; each names these to all others, which ask them in turn. So peers that get a version form a tree, through which
// the pieces of a patch pass while they arrive. A peer whose parent fails asks the parent of that for another place in
// the tree.
//
// It does not know which versions are right: the caller verifies the version that a patch leads to before it is used.
package weights

import (
	"context"
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/patch"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/message"
)

// maxKnown is how many patches a peer remembers.
const maxKnown = 64

// Host is what an exchange needs of a peer.Host.
type Host interface {
	ID() peer.ID
	Ask(ctx context.Context, to peer.AddrInfo, of string, question []byte) ([]byte, error)
	Answer(of string, answer message.Answerer)
}

// Fetch gets a blob of at most so many bytes from one of the peers at these addresses into the store of an exchange,
// unless it is there.
type Fetch func(ctx context.Context, c blob.CID, from []string, most int64) ([]byte, error)

// Source holds versions of weights.
type Source interface {
	// Versions are the versions that it holds, none of which is changed.
	Versions() []patch.Version
}

// Exchange is the part of one host in the exchange of weights. Its methods may be called concurrently.
type Exchange struct {
	host   Host
	store  blob.Store // where patches go
	fetch  Fetch
	serves bool

	ctx     context.Context
	close   context.CancelFunc
	working sync.WaitGroup
	making  sync.Mutex // held while a patch is made

	mu      sync.Mutex
	closed  bool
	sources []Source
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
	asked    bool      // by a peer
	whole    bool      // all of it is here
	made     bool      // by this host
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
	return &Exchange{host: host, store: store, fetch: fetch, ctx: ctx, close: cancel, known: map[way]*known{}}
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

// Continue makes the patch from a version to the next before it is asked for, if a peer has asked for the one that led
// to the version: then peers come from any version since, over a chain of patches. It returns at once.
func (x *Exchange) Continue(from, to patch.Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	follows := false
	for w, k := range x.known {
		follows = follows || w.to == from.Name.Root && k.asked
	}
	if !follows || x.closed {
		return
	}
	x.working.Go(func() {
		if !x.make(x.ctx, from, to) {
			return
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		if k := x.known[way{from.Name.Root, to.Name.Root}]; k != nil {
			k.asked = true
		}
	})
}

// answer answers the question of a peer.
func (x *Exchange) answer(ctx context.Context, from peer.ID, body []byte) []byte {
	q, err := parseQuestion(body)
	if err != nil {
		return nil
	}
	first, total, ok := x.find(ctx, q.From, q.To)
	if !ok {
		return canon.MustMarshal(answer{})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.known[first]
	if k == nil {
		return canon.MustMarshal(answer{})
	}
	k.asked = true
	k.children = slices.DeleteFunc(k.children, func(id peer.ID) bool {
		return slices.ContainsFunc(q.Failed, func(failed []byte) bool { return peer.ID(failed) == id })
	})
	a := answer{Known: true, To: first.to, Head: canon.Digest(k.head.Hash()[2:]), Bytes: uint64(k.bytes),
		Total: uint64(total)}
	switch {
	case slices.Contains(k.children, from):
	case len(k.children) == 0 || len(k.children) < maxChildren && !k.made:
		if q.Serves {
			k.children = append(k.children, from)
		}
	default:
		for _, id := range k.children {
			a.Ask = append(a.Ask, []byte(id))
		}
	}
	return canon.MustMarshal(a)
}

// find is a path whose first patch the store has, or is getting: patches that it has deleted to make room are
// forgotten, and made again if that is possible.
func (x *Exchange) find(ctx context.Context, from, to canon.Digest) (first way, total int64, ok bool) {
	for range maxKnown {
		first, total, ok = x.path(from, to)
		if !ok && x.makeToward(ctx, from, to) {
			first, total, ok = x.path(from, to)
		}
		if !ok || x.has(ctx, first) {
			return first, total, ok
		}
		x.forget(first)
	}
	return first, total, false
}

// path is the way of the fewest bytes between two versions over known patches: its first patch, and all bytes.
func (x *Exchange) path(from, to canon.Digest) (first way, total int64, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	reached := x.reachable(from)
	r, ok := reached[to]
	return r.first, r.total, ok
}

// reached says how a version is reached.
type reached struct {
	first way
	total int64 // bytes
}

// reachable are the versions that known patches lead to from one.
func (x *Exchange) reachable(from canon.Digest) map[canon.Digest]reached {
	all := map[canon.Digest]reached{}
	for grew := true; grew; {
		grew = false
		for _, w := range x.order {
			r, ok := all[w.from]
			if w.from == from {
				r, ok = reached{first: w}, true
			}
			if !ok || w.to == from {
				continue
			}
			total := r.total + x.known[w].bytes
			if old, known := all[w.to]; !known || total < old.total {
				all[w.to], grew = reached{r.first, total}, true
			}
		}
	}
	return all
}

// makeToward makes a patch that is missing on a way, between versions that a source holds, and reports whether there is
// a way then.
func (x *Exchange) makeToward(ctx context.Context, from, to canon.Digest) bool {
	x.mu.Lock()
	sources, near := slices.Clone(x.sources), x.reachable(from)
	x.mu.Unlock()
	for _, s := range sources {
		versions := s.Versions()
		at := slices.IndexFunc(versions, func(v patch.Version) bool { return v.Name.Root == to })
		if at < 0 {
			continue
		}
		best := -1
		for i, v := range versions {
			if v.Name.Root == from {
				best = i
				break
			}
			if _, ok := near[v.Name.Root]; ok && i != at && best < 0 {
				best = i
			}
		}
		if best >= 0 && x.make(ctx, versions[best], versions[at]) {
			return true
		}
	}
	return false
}

// make makes a patch, unless it is known, and reports whether it is here.
func (x *Exchange) make(ctx context.Context, from, to patch.Version) bool {
	x.making.Lock()
	defer x.making.Unlock()
	w := way{from.Name.Root, to.Name.Root}
	x.mu.Lock()
	known := x.known[w] != nil
	x.mu.Unlock()
	if known {
		return true
	}
	h, err := patch.Make(from, to, func(piece []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := x.store.Put(ctx, piece)
		return err
	})
	if err != nil {
		return false
	}
	b := h.Encode()
	c, err := x.store.Put(ctx, b)
	if err != nil || len(b) > patch.MaxHeadBytes {
		return false
	}
	x.note(w, c, int64(len(b))+h.Bytes())
	x.complete(w, true)
	return true
}

// note remembers a patch.
func (x *Exchange) note(w way, head blob.CID, bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k := x.known[w]; k != nil && k.head == head {
		return
	}
	x.drop(w)
	x.known[w] = &known{head: head, bytes: bytes}
	x.order = append(x.order, w)
	if len(x.order) > maxKnown {
		x.drop(x.order[0])
	}
}

// complete says that all of a patch is here, and whether this host has made it.
func (x *Exchange) complete(w way, made bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k := x.known[w]; k != nil {
		k.whole, k.made = true, made
	}
}

// has reports whether a patch is in the store with all of its pieces, or is coming.
func (x *Exchange) has(ctx context.Context, w way) bool {
	x.mu.Lock()
	k := x.known[w]
	coming := k != nil && !k.whole
	x.mu.Unlock()
	if k == nil || coming {
		return coming
	}
	b, err := x.store.Get(ctx, k.head)
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

// abandon forgets the patches from a version that did not come.
func (x *Exchange) abandon(from canon.Digest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, w := range slices.Clone(x.order) {
		if w.from == from && !x.known[w].whole {
			x.drop(w)
		}
	}
}

// forget forgets a patch.
func (x *Exchange) forget(w way) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(w)
}

func (x *Exchange) drop(w way) {
	delete(x.known, w)
	x.order = slices.DeleteFunc(x.order, func(other way) bool { return other == w })
}
