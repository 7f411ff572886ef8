package blob_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// pooled are stores that share files, with their folders.
func pooled(t *testing.T, n int) (stores []*blob.Disk, dirs []string) {
	t.Helper()
	pool := new(blob.Pool)
	for range n {
		dir := t.TempDir()
		s := openDisk(t, dir)
		pool.Join(s)
		stores, dirs = append(stores, s), append(dirs, dir)
	}
	return stores, dirs
}

// oneFile reports whether a blob is the same file in two folders.
func oneFile(t *testing.T, c blob.CID, a, b string) bool {
	t.Helper()
	x, errX := os.Stat(filepath.Join(a, c.String()))
	y, errY := os.Stat(filepath.Join(b, c.String()))
	if err := errors.Join(errX, errY); err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

// assemble gives a store a blob leaf by leaf, as from a peer.
func assemble(t *testing.T, s *blob.Disk, data []byte) {
	t.Helper()
	a, err := s.Assemble(t.Context(), blob.Describe(data))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, i := range a.Missing() {
		if err := a.Put(i, data[i*blob.LeafBytes:min(len(data), (i+1)*blob.LeafBytes)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestPoolHasEqualBlobsOnce: a blob that several stores of a pool have is one read-only file, whichever
// way it came, and stays where it was not deleted. A store has what was put into it and nothing else.
func TestPoolHasEqualBlobsOnce(t *testing.T) {
	s, dirs := pooled(t, 3)
	data := blobtest.Data(7, 2*blob.LeafBytes+5)
	c := put(t, s[0], data)
	if has, err := s[1].Has(t.Context(), c); has || err != nil {
		t.Fatalf("a blob of another store: %v, %v", has, err)
	}
	put(t, s[1], data)
	assemble(t, s[2], data)
	for i := range s {
		if !oneFile(t, c, dirs[0], dirs[i]) {
			t.Errorf("store %d has a copy", i)
		}
		wantBlob(t, s[i], data)
	}
	if info, err := os.Stat(filepath.Join(dirs[0], c.String())); err != nil || info.Mode().Perm()&0o222 != 0 {
		t.Errorf("the file may be written to: %v, %v", info.Mode(), err)
	}
	if left, err := s[2].Leftovers(); len(left) > 0 || err != nil {
		t.Errorf("left of an assembly: %v, %v", left, err)
	}
	if err := s[0].Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if has, err := s[0].Has(t.Context(), c); has || err != nil {
		t.Errorf("deleted, and there: %v, %v", has, err)
	}
	wantBlob(t, s[1], data)
	wantBlob(t, openDisk(t, dirs[2]), data) // after a restart

	small := blobtest.Data(8, blob.LeafBytes)
	if c := put(t, s[0], small); !put(t, s[1], small).Equals(c) || oneFile(t, c, dirs[0], dirs[1]) {
		t.Error("blobs of one leaf are one file")
	}
}

// TestPoolTakesNoOtherBytes: a file of another store that does not have the bytes of its CID is not used, and what is
// made of it does not reach the others.
func TestPoolTakesNoOtherBytes(t *testing.T) {
	lie := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for name, enter := range map[string]func(*testing.T, *blob.Disk, []byte){
		"put":      func(t *testing.T, s *blob.Disk, data []byte) { put(t, s, data) },
		"assemble": assemble,
	} {
		t.Run(name, func(t *testing.T) {
			s, dirs := pooled(t, 3)
			data := blobtest.Data(9, 3*blob.LeafBytes)
			c := put(t, s[0], data)
			at := filepath.Join(dirs[0], c.String())
			if err := os.Chmod(at, 0o644); err != nil {
				t.Fatal(err)
			}
			rewrite(t, at, lie)
			enter(t, s[1], data)
			if oneFile(t, c, dirs[0], dirs[1]) {
				t.Fatal("the file of a liar is used")
			}
			wantBlob(t, s[1], data)
			enter(t, s[2], data)
			if !oneFile(t, c, dirs[1], dirs[2]) {
				t.Error("the right file is not used")
			}
		})
	}
}

// TestPoolRepairsInAnotherFile: a shared file that is damaged on the disk is damaged in every store, and one that gets
// the blob again does not write to it.
func TestPoolRepairsInAnotherFile(t *testing.T) {
	s, dirs := pooled(t, 2)
	data := blobtest.Data(10, 3*blob.LeafBytes)
	c := put(t, s[0], data)
	put(t, s[1], data)
	at := filepath.Join(dirs[0], c.String())
	if err := os.Chmod(at, 0o644); err != nil {
		t.Fatal(err)
	}
	rewrite(t, at, func(b []byte) []byte { b[0] ^= 1; return b })
	if err := os.Chmod(at, 0o444); err != nil {
		t.Fatal(err)
	}
	damaged, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s[0].Get(t.Context(), c); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatal(err)
	}
	assemble(t, s[0], data)
	wantBlob(t, s[0], data)
	if now, err := os.ReadFile(filepath.Join(dirs[1], c.String())); err != nil || !bytes.Equal(now, damaged) {
		t.Errorf("the file of another store was written to: %v", err)
	}
	if _, err := s[1].Get(t.Context(), c); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatal(err)
	}
	put(t, s[1], data)
	wantBlob(t, s[1], data)
	if !oneFile(t, c, dirs[0], dirs[1]) {
		t.Error("the repaired file is not used")
	}
}

// Whole bytes take the place of a damaged file, also where they are those of another store.
func TestPoolReplacesDamagedFiles(t *testing.T) {
	data := blobtest.Data(7, 2*blob.LeafBytes+5)
	da, db := t.TempDir(), t.TempDir()
	a, b := openDisk(t, da), openDisk(t, db)
	c, err1 := a.Put(t.Context(), data) // before Join: files of their own
	_, err2 := b.Put(t.Context(), data)
	p := new(blob.Pool)
	p.Join(a)
	p.Join(b)
	bad := bytes.Clone(data)
	bad[3] ^= 1
	file := filepath.Join(da, c.String())
	if err := errors.Join(err1, err2, os.WriteFile(file, bad, 0o644)); err != nil {
		t.Fatal(err)
	}
	assemble(t, a, data)
	if got, err := a.Get(t.Context(), c); err != nil || !bytes.Equal(got, data) {
		t.Error(err)
	}
}
