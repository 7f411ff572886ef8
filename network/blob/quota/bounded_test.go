package quota_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
)

func openDisk(t *testing.T, dir string) *blob.Disk {
	t.Helper()
	s, err := blob.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s blob.Store, data []byte) blob.CID {
	t.Helper()
	c, err := s.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantBlob(t *testing.T, s blob.Store, data []byte) {
	t.Helper()
	if got, err := s.Get(t.Context(), blob.Of(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func bounded(t *testing.T, s blob.Store, most int64) *quota.Store {
	t.Helper()
	b, err := quota.New(t.Context(), s, most)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBounded(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return bounded(t, openDisk(t, t.TempDir()), 1<<30) })
}

func wantStored(t *testing.T, s blob.Store, want map[string]bool, blobs map[string][]byte) {
	t.Helper()
	for name, data := range blobs {
		if has, err := s.Has(t.Context(), blob.Of(data)); err != nil || has != want[name] {
			t.Errorf("%s is stored: %v, %v", name, has, err)
		}
	}
}

// TestBoundedOrder drops what was not used for the longest time, and nothing that is pinned.
func TestBoundedOrder(t *testing.T) {
	b := bounded(t, blob.NewMemory(), 300)
	blobs := map[string][]byte{}
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		blobs[name] = blobtest.Data(uint64(i), 100)
	}
	for _, name := range []string{"a", "b", "c"} {
		put(t, b, blobs[name])
	}
	wantBlob(t, b, blobs["a"]) // used after b
	put(t, b, blobs["d"])
	wantStored(t, b, map[string]bool{"a": true, "c": true, "d": true}, blobs)

	b.Pin("one", []blob.CID{blob.Of(blobs["c"]), blob.Of(blobs["a"])})
	b.Pin("two", []blob.CID{blob.Of(blobs["a"])})
	put(t, b, blobs["e"])
	wantStored(t, b, map[string]bool{"a": true, "c": true, "e": true}, blobs)

	b.Pin("one", []blob.CID{blob.Of(blobs["e"])}) // a is still needed by two
	put(t, b, blobs["b"])
	wantStored(t, b, map[string]bool{"a": true, "b": true, "e": true}, blobs)

	b.Pin("one", []blob.CID{blob.Of(blobs["e"]), blob.Of(blobs["b"])})
	if _, err := b.Put(t.Context(), blobs["c"]); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Put where all is pinned: %v", err)
	}
	if _, err := b.Assemble(t.Context(), blob.Describe(blobtest.Data(1, 2*blob.LeafBytes))); !errors.Is(err,
		blob.ErrFull) {
		t.Errorf("Assemble of more than the quota: %v", err)
	}
	if u := b.Usage(); u != (quota.Usage{Held: 300, Pinned: 300, Quota: 300}) {
		t.Errorf("%+v", u)
	}
	put(t, b, blobs["e"]) // what is there needs no more room
}

// TestBoundedReopens bounds a store that holds more than its quota: room is made when the next blob comes.
func TestBoundedReopens(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir)
	for i := range uint64(4) {
		put(t, s, blobtest.Data(i, 100))
	}
	broken := put(t, s, blobtest.Data(9, 2*blob.LeafBytes))
	file := filepath.Join(dir, broken.String())
	bytes, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes[1:], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := bounded(t, openDisk(t, dir), 250)
	if held := b.Usage().Held; held != 400+2*blob.LeafBytes-1 { // what is whole of the broken one may be used again
		t.Errorf("%d bytes found", held)
	}
	put(t, b, blobtest.Data(5, 100))
	if held := b.Usage().Held; held > 250 {
		t.Errorf("%d bytes left", held)
	}
	wantBlob(t, b, blobtest.Data(5, 100))
}

// TestBoundedCounts does random things: what is counted is what is stored, and never beyond the quota.
func TestBoundedCounts(t *testing.T) {
	const most = 1000
	random := rand.New(rand.NewPCG(1, 2))
	s := blob.NewMemory()
	b := bounded(t, s, most)
	for range 500 {
		data := blobtest.Data(uint64(random.IntN(40)), 20+random.IntN(3)*100)
		switch random.IntN(4) {
		case 0:
			_ = b.Delete(t.Context(), blob.Of(data))
		case 1:
			_, _ = b.Get(t.Context(), blob.Of(data))
		default:
			put(t, b, data)
		}
		var stored int64
		list, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			r, err := s.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			stored += r.Manifest().Size
		}
		if held := b.Usage().Held; held != stored || stored > most {
			t.Fatalf("%d bytes counted, %d stored", held, stored)
		}
	}
}

// TestBoundedLeftovers counts what unfinished assemblies leave, also those of a process before, and drops it to make
// room.
func TestBoundedLeftovers(t *testing.T) {
	dir := t.TempDir()
	data := blobtest.Data(1, 3*blob.LeafBytes)
	m := blob.Describe(data)
	begin := func(b *quota.Store) blob.Assembly {
		a, err := b.Assemble(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	b := bounded(t, openDisk(t, dir), 3*blob.LeafBytes)
	a := begin(b)
	err := errors.Join(a.Put(2, data[2*blob.LeafBytes:]), a.Close(), a.Close())
	if err != nil || b.Usage().Held != m.Size {
		t.Fatalf("%v: %+v", err, b.Usage())
	}
	b = bounded(t, openDisk(t, dir), 3*blob.LeafBytes)
	if b.Usage().Held != m.Size {
		t.Errorf("found again: %+v", b.Usage())
	}
	a = begin(b)
	if got := len(a.Missing()); got != 2 {
		t.Errorf("%d leaves are missing, 1 of 3 was there", got)
	}
	err = errors.Join(a.Put(0, data[:blob.LeafBytes]), a.Put(1, data[blob.LeafBytes:2*blob.LeafBytes]),
		a.Commit(t.Context()), a.Close())
	if err != nil || b.Usage().Held != m.Size {
		t.Fatalf("%v: %+v", err, b.Usage())
	}
	if err := b.Delete(t.Context(), m.Root); err != nil || b.Usage().Held != 0 {
		t.Fatalf("%v: %+v", err, b.Usage())
	}
	a = begin(b)
	if err := errors.Join(a.Put(0, data[:blob.LeafBytes]), a.Close()); err != nil {
		t.Fatal(err)
	}
	put(t, b, blobtest.Data(2, 2*blob.LeafBytes))
	if u := b.Usage(); u.Held != 2*blob.LeafBytes {
		t.Errorf("%+v after room was made", u)
	}
	if left, err := openDisk(t, dir).Leftovers(); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestNothingIsDroppedForNothing: for a blob that cannot fit, those that are there stay.
func TestNothingIsDroppedForNothing(t *testing.T) {
	s := bounded(t, openDisk(t, t.TempDir()), 1000)
	needed, other := blobtest.Data(1, 600), blobtest.Data(2, 300)
	put(t, s, needed)
	put(t, s, other)
	s.Pin("run", []blob.CID{blob.Of(needed)})
	if _, err := s.Put(t.Context(), blobtest.Data(3, 500)); !errors.Is(err, blob.ErrFull) {
		t.Errorf("stored: %v", err)
	}
	wantBlob(t, s, other)
	put(t, s, blobtest.Data(4, 400))
	wantBlob(t, s, needed)
	if has, err := s.Has(t.Context(), blob.Of(other)); has || err != nil {
		t.Errorf("nothing was dropped: %v", err)
	}
}

func TestLink(t *testing.T) {
	from, s := openDisk(t, t.TempDir()), bounded(t, openDisk(t, t.TempDir()), 1000)
	small, large := blobtest.Data(1, 600), blobtest.Data(2, 500)
	for _, data := range [][]byte{small, large} {
		put(t, from, data)
	}
	if err := s.Link(t.Context(), from, blob.Of(small)); err != nil || s.Usage().Held != 600 {
		t.Fatalf("%d bytes are held, %v", s.Usage().Held, err)
	}
	wantBlob(t, s, small)
	if err := s.Link(t.Context(), from, blob.Of([]byte("none"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a blob that is nowhere: %v", err)
	}
	s.Pin("run", []blob.CID{blob.Of(small)})
	if err := s.Link(t.Context(), from, blob.Of(large)); !errors.Is(err, blob.ErrFull) || s.Usage().Held != 600 {
		t.Errorf("%d bytes are held, %v", s.Usage().Held, err)
	}
	if err := bounded(t, blob.NewMemory(), 1000).Link(t.Context(), from, blob.Of(small)); err == nil {
		t.Error("memory shares a file")
	}
}

// TestReserve: reserved room is taken from blobs until it is free again.
func TestReserve(t *testing.T) {
	s := bounded(t, openDisk(t, t.TempDir()), 1000)
	old := blobtest.Data(1, 600)
	put(t, s, old)
	free, err := s.Reserve(t.Context(), 700)
	if err != nil {
		t.Fatal(err)
	}
	if has, err := s.Has(t.Context(), blob.Of(old)); has || err != nil || s.Usage().Held != 700 {
		t.Errorf("%d bytes are held, %v", s.Usage().Held, err)
	}
	if _, err := s.Put(t.Context(), old); !errors.Is(err, blob.ErrFull) {
		t.Errorf("stored: %v", err)
	}
	if _, err := s.Reserve(t.Context(), 400); !errors.Is(err, blob.ErrFull) {
		t.Errorf("reserved: %v", err)
	}
	free()
	free()
	put(t, s, old)
	if s.Usage().Held != 600 {
		t.Errorf("%d bytes are held", s.Usage().Held)
	}
}

// late is a store whose next Get, once armed, finds no blob and says so only after other callers used the store.
type late struct {
	blob.Store
	meanwhile func()
}

func (l *late) Get(ctx context.Context, c blob.CID) ([]byte, error) {
	data, err := l.Store.Get(ctx, c)
	if f := l.meanwhile; f != nil {
		l.meanwhile = nil
		f()
	}
	return data, err
}

// TestBoundedCountsWhatCameBack counts a blob that comes while a reader finds that it is not there, and one of which a
// second assembly begins.
func TestBoundedCountsWhatCameBack(t *testing.T) {
	l := &late{Store: blob.NewMemory()}
	b, data := bounded(t, l, 1<<30), blobtest.Data(1, 100)
	l.meanwhile = func() { put(t, b, data) }
	if _, err := b.Get(t.Context(), blob.Of(data)); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get of a blob that was not there: %v", err)
	}
	if held := b.Usage().Held; held != 100 {
		t.Errorf("a blob of 100 bytes came, and %d are counted", held)
	}

	second := blobtest.Data(2, 2*blob.LeafBytes)
	put(t, b, second)
	a, err := b.Assemble(t.Context(), blob.Describe(second))
	if err == nil {
		err = a.Close()
	}
	if held := b.Usage().Held; err != nil || held != 100+2*blob.LeafBytes {
		t.Errorf("%d bytes are counted: %v", held, err)
	}
}
