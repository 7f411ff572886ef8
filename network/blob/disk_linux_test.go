package blob_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/blob/quota"
)

// TestDiskFull fills a file system of 4 MiB. Stored blobs stay whole, and a bounded store makes room.
func TestDiskFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	s := openDisk(t, dir)
	first, second := blobtest.Data(1, 2*blob.LeafBytes), blobtest.Data(2, 5*blob.LeafBytes/2)
	put(t, s, first)
	if _, err := s.Put(t.Context(), second); !errors.Is(err, blob.ErrFull) {
		t.Fatalf("Put: %v", err)
	}
	m := blob.Describe(second)
	if err := fill(t, s, m, second); !errors.Is(err, blob.ErrFull) {
		t.Fatalf("Assemble: %v", err)
	}
	if err := s.Delete(t.Context(), m.Root); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, first)
	b, err := quota.New(t.Context(), s, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	b.Pin("test", []blob.CID{blob.Of(first)})
	if _, err := b.Put(t.Context(), second); !errors.Is(err, blob.ErrFull) {
		t.Fatalf("Put beside a pinned blob: %v", err)
	}
	b.Pin("test", nil)
	put(t, b, second)
	wantBlob(t, b, second)
	if err := fill(t, b, blob.Describe(first), first); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, b, first)
	if list, err := b.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("stored: %v, %v", list, err)
	}
}

// fill assembles a blob in order.
func fill(t *testing.T, s blob.Store, m *blob.Manifest, data []byte) error {
	t.Helper()
	a, err := s.Assemble(t.Context(), m)
	if err != nil {
		return err
	}
	defer a.Close()
	for _, i := range a.Missing() {
		if err := a.Put(i, data[i*blob.LeafBytes:i*blob.LeafBytes+m.LeafSize(i)]); err != nil {
			return err
		}
	}
	return a.Commit(t.Context())
}
