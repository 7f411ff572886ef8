package blob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// A union has the blobs of all its stores, each once, and those of none that was removed. It keeps nothing.
func TestUnion(t *testing.T) {
	ctx := t.Context()
	one, other, union := blob.NewMemory(), blob.NewMemory(), &blob.Union{}
	put := func(s blob.Store, seed uint64) blob.CID {
		c, err := s.Put(ctx, blobtest.Data(seed, 100))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b, both := put(one, 1), put(other, 2), put(one, 3)
	put(other, 3)
	if _, err := union.Get(ctx, a); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("a blob of an empty union: %v", err)
	}
	union.Add(one)
	remove := union.Add(other)
	for seed, c := range map[uint64]blob.CID{1: a, 2: b, 3: both} {
		has, err := union.Has(ctx, c)
		data, readErr := union.Get(ctx, c)
		r, openErr := union.Open(ctx, c)
		if err := errors.Join(err, readErr, openErr); err != nil || !has || !bytes.Equal(data, blobtest.Data(seed, 100)) {
			t.Fatalf("%d: %v, %d bytes, %v", seed, has, len(data), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if places := union.Find(c); len(places) != 1 {
			t.Errorf("%d lies at %v", seed, places)
		}
	}
	if list, err := union.List(ctx); err != nil || len(list) != 3 {
		t.Errorf("%v, %v", list, err)
	}
	remove()
	if has, err := union.Has(ctx, b); err != nil || has {
		t.Errorf("a blob of a store that was removed: %v, %v", has, err)
	}
	if _, err := union.Put(ctx, []byte("x")); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Put: %v", err)
	}
	if _, err := union.Assemble(ctx, blob.Describe([]byte("x"))); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Assemble: %v", err)
	}
	if err := union.Delete(ctx, a); err != nil {
		t.Error(err)
	}
	if has, err := union.Has(ctx, a); err != nil || !has {
		t.Errorf("deleted from a union: %v, %v", has, err)
	}
}
