// Package blobtest is the conformance suite of every blob.Store. It tests the promises of the interface; the tests of
// package blob cover faults of a disk.
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ipfs/boxo/ipld/merkledag"

	"github.com/starling-network/starling/network/blob"
)

// sizes of blobs around every edge of the layout.
var sizes = []int{0, 1, 1000, blob.LeafBytes - 1, blob.LeafBytes, blob.LeafBytes + 1, 2 * blob.LeafBytes,
	3*blob.LeafBytes + 12345}

// Data returns n bytes that depend on seed, the same on every machine.
func Data(seed uint64, n int) []byte {
	data := make([]byte, n)
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x)
	}
	return data
}

// Run tests a kind of store. The function returns an empty one at each call.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, c := range []struct {
		name string
		test func(*testing.T, blob.Store)
	}{
		{"PutGet", putGet},
		{"Absent", absent},
		{"Delete", deletes},
		{"List", list},
		{"Ownership", ownership},
		{"BadCID", badCID},
		{"Cancelled", cancelled},
		{"Open", opens},
		{"Assemble", assemble},
		{"AssembleRefuses", assembleRefuses},
		{"Blocks", blocks},
		{"Concurrent", concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func putGet(t *testing.T, s blob.Store) {
	ctx := t.Context()
	for _, n := range sizes {
		data := Data(1, n)
		for range 2 { // Put is idempotent
			c, err := s.Put(ctx, data)
			if err != nil || !c.Equals(blob.Of(data)) {
				t.Fatalf("Put of %d bytes: %v, %v; want %v", n, c, err, blob.Of(data))
			}
			wantBlob(t, s, data)
		}
	}
}

// wantBlob fails unless s holds data.
func wantBlob(t *testing.T, s blob.Store, data []byte) {
	t.Helper()
	c := blob.Of(data)
	if got, err := s.Get(t.Context(), c); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("Get of %d bytes: %d bytes, equal %v, %v", len(data), len(got), bytes.Equal(got, data), err)
	}
	if has, err := s.Has(t.Context(), c); err != nil || !has {
		t.Fatalf("Has of %d bytes: %v, %v", len(data), has, err)
	}
}

// wantAbsent fails unless every way to c says that it is not there.
func wantAbsent(t *testing.T, s blob.Store, c blob.CID) {
	t.Helper()
	if got, err := s.Get(t.Context(), c); !errors.Is(err, blob.ErrNotFound) || got != nil {
		t.Fatalf("Get of an absent blob: %d bytes, %v", len(got), err)
	}
	if has, err := s.Has(t.Context(), c); err != nil || has {
		t.Fatalf("Has of an absent blob: %v, %v", has, err)
	}
	if _, err := s.Open(t.Context(), c); !errors.Is(err, blob.ErrNotFound) {
		t.Fatalf("Open of an absent blob: %v", err)
	}
}

func absent(t *testing.T, s blob.Store) {
	wantAbsent(t, s, blob.Of(Data(2, 10)))
	wantAbsent(t, s, blob.Of(Data(2, 2*blob.LeafBytes)))
}

func deletes(t *testing.T, s blob.Store) {
	for _, n := range []int{100, 2*blob.LeafBytes + 7} {
		data := Data(3, n)
		c, err := s.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // Delete is idempotent
			if err := s.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wantAbsent(t, s, c)
		}
		if _, err := s.Put(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, s, data)
	}
}

func list(t *testing.T, s blob.Store) {
	var want []string
	for i := range 5 {
		c, err := s.Put(t.Context(), Data(uint64(10+i), i*blob.LeafBytes/2+i))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, c.String())
	}
	slices.Sort(want)
	got, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("List:\n%v\nwant\n%v", got, want)
	}
}

func ownership(t *testing.T, s blob.Store) {
	data := Data(4, 1000)
	want := bytes.Clone(data)
	c, err := s.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	data[0]++
	got, err := s.Get(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	got[1]++
	wantBlob(t, s, want)
}

func badCID(t *testing.T, s blob.Store) {
	if _, err := s.Get(t.Context(), blob.CID{}); !errors.Is(err, blob.ErrBadCID) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Has(t.Context(), blob.CID{}); !errors.Is(err, blob.ErrBadCID) {
		t.Errorf("Has: %v", err)
	}
	if err := s.Delete(t.Context(), blob.CID{}); !errors.Is(err, blob.ErrBadCID) {
		t.Errorf("Delete: %v", err)
	}
}

func cancelled(t *testing.T, s blob.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := Data(5, 10)
	if _, err := s.Put(ctx, data); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, err := s.Get(ctx, blob.Of(data)); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	wantAbsent(t, s, blob.Of(data))
}

func opens(t *testing.T, s blob.Store) {
	for _, n := range sizes {
		data := Data(6, n)
		c, err := s.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		m, want := r.Manifest(), blob.Describe(data)
		if !m.Root.Equals(c) || m.Size != int64(n) || !slices.Equal(m.Leaves, want.Leaves) {
			t.Fatalf("manifest of %d bytes: %v", n, m)
		}
		got := []byte("prefix")
		for i := range m.Leaves {
			if got, err = r.Leaf(got, i); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, append([]byte("prefix"), data...)) {
			t.Fatalf("leaves of %d bytes differ", n)
		}
		for _, i := range []int{-1, len(m.Leaves)} {
			if _, err := r.Leaf(nil, i); err == nil {
				t.Errorf("leaf %d of %d was given", i, len(m.Leaves))
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// leaf returns leaf i of data.
func leaf(data []byte, i int) []byte {
	lo := i * blob.LeafBytes
	return data[lo:min(lo+blob.LeafBytes, len(data))]
}

func assemble(t *testing.T, s blob.Store) {
	data := Data(7, 3*blob.LeafBytes+5)
	m := blob.Describe(data)
	a, err := s.Assemble(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Missing(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Fatalf("missing: %v", got)
	}
	for _, i := range []int{3, 0, 2, 0} { // any order, twice is once
		if err := a.Put(i, leaf(data, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Commit(t.Context()); !errors.Is(err, blob.ErrIncomplete) {
		t.Fatalf("Commit without leaf 1: %v", err)
	}
	wantAbsent(t, s, m.Root)
	if err := a.Put(1, leaf(data, 1)); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, m.Root)
	if err := a.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, data)
	for range 2 {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantBlob(t, s, data)
}

func assembleRefuses(t *testing.T, s blob.Store) {
	data := Data(8, 2*blob.LeafBytes)
	m := blob.Describe(data)
	a, err := s.Assemble(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Assemble(t.Context(), m); !errors.Is(err, blob.ErrBusy) {
		t.Errorf("a second assembly of one blob: %v", err)
	}
	for _, bad := range []struct {
		i    int
		leaf []byte
	}{{0, leaf(data, 1)}, {0, leaf(data, 0)[1:]}, {0, nil}, {-1, leaf(data, 0)}, {2, leaf(data, 0)}} {
		if err := a.Put(bad.i, bad.leaf); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("Put of %d bytes as leaf %d: %v", len(bad.leaf), bad.i, err)
		}
	}
	if got := a.Missing(); len(got) != 2 {
		t.Errorf("after bad leaves, missing: %v", got)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantAbsent(t, s, m.Root)
	if a, err = s.Assemble(t.Context(), m); err != nil {
		t.Fatalf("an assembly after a closed one: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Assemble(t.Context(), blob.Describe(data[:10])); err == nil {
		t.Error("a blob of one leaf was assembled")
	}
}

// blocks walks the DAG of stored blobs as an IPFS client does, from the root.
func blocks(t *testing.T, s blob.Store) {
	shared := Data(9, blob.LeafBytes) // first leaf of both blobs
	one, two := append(bytes.Clone(shared), 1), append(bytes.Clone(shared), 2)
	wide := bytes.Repeat([]byte{7}, 3*blob.LeafBytes) // of equal leaves
	for _, data := range [][]byte{nil, []byte("leaf"), one, two, wide} {
		c, err := s.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if got := file(t, s, c); !bytes.Equal(got, data) {
			t.Errorf("the DAG of %d bytes holds %d", len(data), len(got))
		}
	}
	if got := s.Find(blob.Of(shared)); len(got) != 2 {
		t.Errorf("a leaf of two blobs is at %v", got)
	}
	if err := s.Delete(t.Context(), blob.Of(one)); err != nil {
		t.Fatal(err)
	}
	if got := s.Find(blob.Of(shared)); len(got) != 1 || !got[0].Root.Equals(blob.Of(two)) {
		t.Errorf("a leaf of one blob that is left is at %v", got)
	}
	if got := s.Find(blob.Of(one)); len(got) != 0 {
		t.Errorf("the root of a deleted blob is at %v", got)
	}
	file(t, s, blob.Of(two))
}

// file reads the UnixFS file below a block.
func file(t *testing.T, s blob.Store, c blob.CID) []byte {
	t.Helper()
	places := s.Find(c)
	if len(places) == 0 {
		t.Fatalf("no block %s", c)
	}
	block, err := blob.Block(t.Context(), s, places[0])
	if err != nil {
		t.Fatal(err)
	}
	if size, err := blob.BlockSize(t.Context(), s, places[0]); err != nil || size != len(block) {
		t.Errorf("a block of %d bytes has size %d, %v", len(block), size, err)
	}
	sum, err := c.Prefix().Sum(block)
	if err != nil || !sum.Equals(c) {
		t.Fatalf("block %s has the CID %s, %v", c, sum, err)
	}
	if blob.IsLeaf(c) {
		return block
	}
	node, err := merkledag.DecodeProtobuf(block)
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, link := range node.Links() {
		data = append(data, file(t, s, link.Cid)...)
	}
	return data
}

func concurrent(t *testing.T, s blob.Store) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			data := Data(uint64(20+i%2), blob.LeafBytes+i%2)
			for range 3 {
				c, err := s.Put(t.Context(), data)
				if err != nil {
					t.Error(err)
				}
				if got, err := s.Get(t.Context(), c); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Get: %d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}
