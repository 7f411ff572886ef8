package store

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
)

// Parties store the same bytes once, in a file beyond what may be in memory; what a party did not get it does not have.
func TestStoresShareTheirBytes(t *testing.T) {
	ctx := context.Background()
	p := &Pool{}
	a, b := New(p), New(p)
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 1000)
	for _, data := range [][]byte{small, large, nil} {
		first, err1 := a.Put(ctx, data)
		held := p.held
		if _, err := b.Get(ctx, first); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("a party has what another stores: %v", err)
		}
		second, err2 := b.Put(ctx, data)
		got, err3 := b.Get(ctx, second)
		if err := errors.Join(err1, err2, err3); err != nil || first != second || first != blob.Of(data) || p.held != held ||
			!bytes.Equal(got, data) {
			t.Errorf("%d bytes: %s and %s, %d and %d held, %v", len(data), first, second, held, p.held, err)
		}
		p.held = poolMemory // the next is one too many
	}
	if p.held != poolMemory || p.end != int64(len(large)) {
		t.Errorf("%d bytes in memory, %d in the file", p.held, p.end)
	}
	got, err := a.Get(ctx, blob.Of(large))
	if err != nil || !bytes.Equal(got, large) {
		t.Errorf("%d bytes of the file: %v", len(got), err)
	}
	got[0] = 'x' // it belongs to the caller
	if again, _ := a.Get(ctx, blob.Of(large)); !bytes.Equal(again, large) {
		t.Error("what was got can be changed")
	}
	if err := a.Delete(ctx, blob.Of(small)); err != nil {
		t.Fatal(err)
	}
	if ok, _ := a.Has(ctx, blob.Of(small)); ok {
		t.Error("it has what it deleted")
	}
	if ok, _ := b.Has(ctx, blob.Of(small)); !ok {
		t.Error("the other lost it")
	}
}

// Blobs of rounds before the oldest one are deleted from all stores, and later ones take their place in the file; those
// from before the first round, and those that were stored again, stay.
func TestBlobsOfOldRoundsAreDeleted(t *testing.T) {
	ctx := context.Background()
	p := &Pool{}
	a, b := New(p), New(p)
	put := func(s *Store, text string) blob.CID {
		c, err := s.Put(ctx, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := put(a, "shipped")
	p.held = poolMemory // all others are in the file
	p.Enter(1, 0)
	old, again := put(a, "old"), put(a, "new")
	put(b, "old")
	p.Enter(2, 1)
	if put(b, "new") != again || p.end != 6 {
		t.Fatalf("the file has %d bytes", p.end)
	}
	p.Enter(3, 2)
	for c, want := range map[blob.CID]bool{first: true, old: false, again: true} {
		if has, _ := a.Has(ctx, c); has != want {
			t.Errorf("%s is there: %v", c, has)
		}
		if _, err := a.Get(ctx, c); (err == nil) != want || !want && !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", c, err)
		}
	}
	if has, _ := b.Has(ctx, old); has {
		t.Error("another party has the old blob")
	}
	later := put(a, "way")
	got, err := a.Get(ctx, later)
	if err != nil || string(got) != "way" || p.end != 6 {
		t.Errorf("%q, %v; the file has %d bytes", got, err, p.end)
	}
	if got, _ := a.Get(ctx, again); string(got) != "new" {
		t.Errorf("a blob that stays was overwritten: %q", got)
	}
}
