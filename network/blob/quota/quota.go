// Package quota keeps a store of blobs within a number of bytes: it drops what was not used for the longest time, and
// never a pinned blob. It stores nothing itself, and does not know why a blob is pinned.
package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/starling-network/starling/network/blob"
)

// Store is a blob.Store that keeps within a number of bytes. To make room, for the bound or because the disk is full,
// it drops the blobs that were not used for the longest time, but never one that is pinned. Blobs are used by Put, Get,
// Open and Commit; those that were there at the start count as used before all others. The leaves of an unfinished
// assembly count as a blob of its full size.
type Store struct {
	blob.Store
	quota int64 // bytes of blobs

	mu    sync.Mutex
	held  map[blob.CID]*holding
	bytes int64 // of held, and of blobs on their way in
	clock uint64
	pins  map[string][]blob.CID // by the name of their user
}

type holding struct {
	size int64
	used uint64 // clock
}

// Usage is what a Bounded store takes, in bytes.
type Usage struct {
	Held   int64 // by blobs that are stored or on their way in, and by reserved room
	Pinned int64 // by those of them that are stored and must not be dropped
	Quota  int64 // at most
}

// leftovers is a store that survives the process, and unfinished assemblies with it.
type leftovers interface {
	// Leftovers returns the blobs of which an unfinished assembly left something, and how many bytes.
	Leftovers() (map[blob.CID]int64, error)
}

// New bounds a store that no other code writes to. quota is in bytes, beyond 0.
func New(ctx context.Context, s blob.Store, quota int64) (*Store, error) {
	b := &Store{Store: s, quota: quota, held: map[blob.CID]*holding{}, pins: map[string][]blob.CID{}}
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range list {
		if err := b.note(ctx, c); err != nil && !errors.Is(err, blob.ErrCorrupt) {
			return nil, err
		}
	}
	if d, ok := s.(leftovers); ok {
		left, err := d.Leftovers()
		if err != nil {
			return nil, err
		}
		for c, size := range left {
			b.keep(c, size)
		}
	}
	return b, nil
}

// note enters a stored blob.
func (b *Store) note(ctx context.Context, c blob.CID) error {
	r, err := b.Store.Open(ctx, c)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.keep(c, r.Manifest().Size)
	b.mu.Unlock()
	return r.Close()
}

// keep enters a blob as used now.
func (b *Store) keep(c blob.CID, size int64) {
	b.clock++
	if h := b.held[c]; h != nil {
		h.used = b.clock
		return
	}
	b.held[c] = &holding{size, b.clock}
	b.bytes += size
}

// forget strikes out a blob that is gone, unless it came back since that was seen.
func (b *Store) forget(c blob.CID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.held[c]
	if h == nil {
		return
	}
	if has, err := b.Has(context.Background(), c); err == nil && !has {
		b.bytes -= h.size
		delete(b.held, c)
	}
}

// touch marks a blob as used, or as gone if that is what the error of using it says.
func (b *Store) touch(c blob.CID, err error) {
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
		b.forget(c)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.held[c]; h != nil {
		b.clock++
		h.used = b.clock
	}
}

// Pin says which blobs an owner, such as a run, needs from now on instead of those that it named before; they need not
// be stored yet. A pinned blob is not dropped. The owner with none is forgotten.
func (b *Store) Pin(owner string, needed []blob.CID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pins[owner] = slices.Clone(needed)
	if len(needed) == 0 {
		delete(b.pins, owner)
	}
}

// Pinned reports whether an owner needs a blob.
func (b *Store) Pinned(c blob.CID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, needed := range b.pins {
		if slices.Contains(needed, c) {
			return true
		}
	}
	return false
}

// Usage returns what the store takes.
func (b *Store) Usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := Usage{Held: b.bytes, Quota: b.quota}
	for c := range b.pinned() {
		if h := b.held[c]; h != nil {
			u.Pinned += h.size
		}
	}
	return u
}

// Put implements Store.
func (b *Store) Put(ctx context.Context, data []byte) (c blob.CID, err error) {
	size := int64(len(data))
	b.mu.Lock()
	if h := b.held[blob.Of(data)]; h != nil {
		size -= h.size // it takes the place of itself
	}
	b.mu.Unlock()
	r, err := b.reserve(ctx, max(0, size))
	if err != nil {
		return blob.CID{}, err
	}
	defer r.free()
	err = b.insist(ctx, func() error {
		c, err = b.Store.Put(ctx, data)
		return err
	})
	if err == nil {
		r.fill(c, int64(len(data)))
	}
	return c, err
}

// linker is a store that can share a file with another one.
type linker interface {
	Link(ctx context.Context, from *blob.Disk, c blob.CID) error
}

// Link stores a blob of another store as a link to its file: errors as blob.Disk.Link, or blob.ErrFull. It counts as
// a blob of its size, although the disk holds it once.
func (b *Store) Link(ctx context.Context, from *blob.Disk, c blob.CID) error {
	l, ok := b.Store.(linker)
	if !ok {
		return errors.ErrUnsupported
	}
	f, err := from.Open(ctx, c)
	if err != nil {
		return err
	}
	size := f.Manifest().Size
	_ = f.Close()
	r, err := b.reserve(ctx, size)
	if err != nil {
		return err
	}
	defer r.free()
	if err := l.Link(ctx, from, c); err != nil {
		return err
	}
	r.fill(c, size)
	return nil
}

// Reserve takes room for bytes that are no blob, until free is called; blob.ErrFull if there is too little.
func (b *Store) Reserve(ctx context.Context, bytes int64) (free func(), err error) {
	r, err := b.reserve(ctx, bytes)
	if err != nil {
		return nil, err
	}
	return r.free, nil
}

// Get implements Store.
func (b *Store) Get(ctx context.Context, c blob.CID) ([]byte, error) {
	data, err := b.Store.Get(ctx, c)
	b.touch(c, err)
	return data, err
}

// Open implements Store.
func (b *Store) Open(ctx context.Context, c blob.CID) (blob.Reader, error) {
	r, err := b.Store.Open(ctx, c)
	b.touch(c, err)
	if err != nil {
		return nil, err
	}
	return boundedReader{r, b}, nil
}

type boundedReader struct {
	blob.Reader
	store *Store
}

func (r boundedReader) Leaf(dst []byte, i int) ([]byte, error) {
	leaf, err := r.Reader.Leaf(dst, i)
	if errors.Is(err, blob.ErrCorrupt) {
		r.store.forget(r.Manifest().Root)
	}
	return leaf, err
}

// Delete implements Store. It deletes pinned blobs, too.
func (b *Store) Delete(ctx context.Context, c blob.CID) error {
	err := b.Store.Delete(ctx, c)
	if err == nil {
		b.forget(c)
	}
	return err
}

// Assemble implements Store. It makes room for the whole blob, in which leaves of an unfinished assembly are counted,
// but not the blob itself if it is stored already.
func (b *Store) Assemble(ctx context.Context, m *blob.Manifest) (blob.Assembly, error) {
	left := b.leftOf(ctx, m.Root)
	r, err := b.reserve(ctx, m.Size)
	if err == nil {
		var a blob.Assembly
		if a, err = b.Store.Assemble(ctx, m); err == nil {
			return &boundedAssembly{a, r, m}, nil
		}
		r.free()
	}
	if left != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.keep(m.Root, left.size)
	}
	return nil, err
}

// leftOf strikes out what an unfinished assembly left of a blob, and returns it: nil if there is nothing.
func (b *Store) leftOf(ctx context.Context, c blob.CID) *holding {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.held[c]
	if has, err := b.Has(ctx, c); left == nil || has || err != nil {
		return nil
	}
	delete(b.held, c)
	b.bytes -= left.size
	return left
}

type boundedAssembly struct {
	blob.Assembly
	room     *room
	manifest *blob.Manifest
}

func (a *boundedAssembly) Put(i int, leaf []byte) error {
	return a.room.store.insist(context.Background(), func() error { return a.Assembly.Put(i, leaf) })
}

func (a *boundedAssembly) Commit(ctx context.Context) error {
	err := a.Assembly.Commit(ctx)
	if err == nil {
		a.room.fill(a.manifest.Root, a.manifest.Size)
	}
	return err
}

// Close implements Assembly. Where leaves are kept for the next assembly, they still take room.
func (a *boundedAssembly) Close() error {
	missing := len(a.Missing())
	if _, durable := a.room.store.Store.(leftovers); durable && missing > 0 && missing < len(a.manifest.Leaves) {
		a.room.fill(a.manifest.Root, a.manifest.Size)
	}
	a.room.free()
	return a.Assembly.Close()
}

// room is what is kept free for a blob that comes in.
type room struct {
	store *Store
	size  int64
	gone  bool // given back, or taken by the blob
}

// reserve makes room for a blob, until free or fill. For one that cannot fit nothing is dropped.
func (b *Store) reserve(ctx context.Context, size int64) (*room, error) {
	for {
		b.mu.Lock()
		fits, can := b.bytes+size <= b.quota, b.bytes-b.droppable()+size <= b.quota
		if fits {
			b.bytes += size
		}
		b.mu.Unlock()
		if fits {
			return &room{store: b, size: size}, nil
		}
		err := b.full()
		if can {
			err = b.drop(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("blob: %d more bytes: %w", size, err)
		}
	}
}

// droppable is how many bytes of blobs are not pinned.
func (b *Store) droppable() (n int64) {
	pinned := b.pinned()
	for c, h := range b.held {
		if !pinned[c] {
			n += h.size
		}
	}
	return n
}

// full is why there is no room.
func (b *Store) full() error {
	u := b.Usage()
	return fmt.Errorf("%d of %d bytes are taken by blobs that are needed or coming in: %w", u.Held, u.Quota, blob.ErrFull)
}

func (r *room) free() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.release()
}

// fill puts a stored blob into the room.
func (r *room) fill(c blob.CID, size int64) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	if !r.gone {
		r.release()
		r.store.keep(c, size)
	}
}

func (r *room) release() {
	if !r.gone {
		r.gone = true
		r.store.bytes -= r.size
	}
}

// insist writes, and drops blobs while the disk is full.
func (b *Store) insist(ctx context.Context, write func() error) error {
	for {
		err := write()
		if !errors.Is(err, blob.ErrFull) {
			return err
		}
		if e := b.drop(ctx); e != nil {
			return err
		}
	}
}

// drop deletes the blob that was not used for the longest time: ErrFull if every one is pinned.
func (b *Store) drop(ctx context.Context) error {
	c, ok := b.oldest()
	if !ok {
		return b.full()
	}
	return b.Delete(ctx, c)
}

func (b *Store) oldest() (found blob.CID, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pinned := b.pinned()
	for c, h := range b.held {
		if !pinned[c] && (!ok || h.used < b.held[found].used) {
			found, ok = c, true
		}
	}
	return found, ok
}

// pinned returns the blobs that have a user.
func (b *Store) pinned() map[blob.CID]bool {
	all := map[blob.CID]bool{}
	for _, list := range b.pins {
		for _, c := range list {
			all[c] = true
		}
	}
	return all
}
