package retention

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
)

// The blobs of a finished run are kept for a day, even over a restart of the process, and then removed.
func TestRetained(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1e9, 0)
	data := blobtest.Data(1, 100)
	open := func(now time.Time) (*quota.Store, *Store) {
		disk, err := blob.OpenDisk(filepath.Join(dir, "blobs"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := quota.New(t.Context(), disk, 150)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir, s, now)
		if err != nil {
			t.Fatal(err)
		}
		return s, r
	}
	s, r := open(now)
	c, err := s.Put(t.Context(), data)
	if err := errors.Join(err, r.Keep("a", []blob.CID{c}, now), r.Keep("b", nil, now)); err != nil {
		t.Fatal(err)
	}
	s, r = open(now.Add(period - time.Second))
	if _, err := s.Put(t.Context(), blobtest.Data(2, 100)); !errors.Is(err, blob.ErrFull) {
		t.Errorf("room was made of what is retained: %v", err)
	}
	if err := r.Expire(now.Add(period + time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), blobtest.Data(2, 100)); err != nil {
		t.Errorf("a day later: %v", err)
	}
	if _, r := open(now); len(r.jobs) != 0 {
		t.Errorf("kept for ever: %v", r.jobs)
	}
	if err := os.WriteFile(r.path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, s, now); err == nil {
		t.Error("a damaged file is taken for an empty one")
	}
}
