package blob_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
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
		t.Fatalf("Get: %d bytes of %d, %v", len(got), len(data), err)
	}
}

func TestDisk(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return openDisk(t, filepath.Join(t.TempDir(), "[new]", "folder")) })
}

func TestDiskReopen(t *testing.T) {
	dir := t.TempDir()
	data := blobtest.Data(1, 2*blob.LeafBytes+1)
	put(t, openDisk(t, dir), data)
	wantBlob(t, openDisk(t, dir), data)
}

// TestDiskCorrupt damages the file of a blob in several ways: it is never read as something else, and Put repairs it.
func TestDiskCorrupt(t *testing.T) {
	for _, size := range []int{1, 1000, 2*blob.LeafBytes + 1} {
		for name, damage := range map[string]func([]byte) []byte{
			"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
			"truncated": func(b []byte) []byte { return b[:len(b)-1] },
			"extended":  func(b []byte) []byte { return append(b, 0) },
			"emptied":   func([]byte) []byte { return nil },
			"huge":      func(b []byte) []byte { return make([]byte, 4*blob.LeafBytes) },
		} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				s := openDisk(t, dir)
				data := blobtest.Data(2, size)
				c := put(t, s, data)
				rewrite(t, filepath.Join(dir, c.String()), damage)
				read := map[bool]func() error{
					true:  func() error { _, err := s.Get(t.Context(), c); return err },
					false: func() error { return readAll(t, s, c) },
				}
				for _, whole := range []bool{true, false} {
					if err := read[whole](); !errors.Is(err, blob.ErrCorrupt) {
						t.Errorf("reading, whole %v: %v", whole, err)
					}
					if err := read[whole](); !errors.Is(err, blob.ErrNotFound) {
						t.Errorf("reading again, whole %v: %v", whole, err)
					}
					if has, err := s.Has(t.Context(), c); has || err != nil || len(s.Find(c)) != 0 {
						t.Errorf("a damaged blob is there: %v, %v, %v", has, err, s.Find(c))
					}
					put(t, s, data)
					rewrite(t, filepath.Join(dir, c.String()), damage)
				}
				put(t, s, data)
				wantBlob(t, s, data)
			})
		}
	}
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readAll reads a blob leaf by leaf and returns the first error.
func readAll(t *testing.T, s blob.Store, c blob.CID) error {
	t.Helper()
	r, err := s.Open(t.Context(), c)
	if err != nil {
		return err
	}
	defer r.Close()
	for i := range r.Manifest().Leaves {
		if _, err := r.Leaf(nil, i); err != nil {
			return err
		}
	}
	return nil
}

// TestDiskLostManifest loses and damages the derived file: it is rebuilt.
func TestDiskLostManifest(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir)
	c := put(t, s, blobtest.Data(3, 3*blob.LeafBytes))
	path := filepath.Join(dir, c.String()+".leaves")
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if err := readAll(t, s, c); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("manifest was not rebuilt: %d bytes, %v", len(got), err)
		}
	}
	rewrite(t, path, func(b []byte) []byte { b[9] ^= 1; return b })
	check()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestDiskKilled lays out what a process leaves that dies at each step of a Put: the next one sees no blob, or all of
// it.
func TestDiskKilled(t *testing.T) {
	data := blobtest.Data(4, 2*blob.LeafBytes+1)
	c := blob.Of(data)
	manifest := blob.Describe(data).Encode()
	for name, files := range map[string]map[string][]byte{
		"while writing the manifest": {"1.tmp": manifest[:9]},
		"while writing the data":     {c.String() + ".leaves": manifest, "2.tmp": data[:100]},
		"before the rename":          {c.String() + ".leaves": manifest, "2.tmp": data},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s := openDisk(t, dir)
			if has, err := s.Has(t.Context(), c); err != nil || has {
				t.Errorf("Has: %v, %v", has, err)
			}
			if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("List: %v, %v", list, err)
			}
			put(t, s, data)
			wantBlob(t, s, data)
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			if len(left) != 2 {
				t.Errorf("files left: %v", left)
			}
		})
	}
}

// TestDiskResume abandons an assembly, damages one of its leaves, and continues in a new process.
func TestDiskResume(t *testing.T) {
	dir := t.TempDir()
	data := blobtest.Data(5, 4*blob.LeafBytes+9)
	m := blob.Describe(data)
	leaf := func(i int) []byte { return data[i*blob.LeafBytes : i*blob.LeafBytes+m.LeafSize(i)] }
	a, err := openDisk(t, dir).Assemble(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{4, 2, 1} {
		if err := a.Put(i, leaf(i)); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(t, filepath.Join(dir, m.Root.String()+".part"), func(b []byte) []byte { b[2*blob.LeafBytes] ^= 1; return b })

	s := openDisk(t, dir) // the first process has ended without closing its assembly
	if a, err = s.Assemble(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := a.Missing(); !slices.Equal(got, []int{0, 2, 3}) {
		t.Fatalf("missing after the restart: %v", got)
	}
	for _, i := range a.Missing() {
		if err := a.Put(i, leaf(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Commit(t.Context()), a.Close()); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, data)
	if err := s.Delete(t.Context(), m.Root); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("files left after Delete: %v", left)
	}
}

// TestDiskSalvage damages one leaf of a blob: the others are used again.
func TestDiskSalvage(t *testing.T) {
	dir := t.TempDir()
	s := openDisk(t, dir)
	data := blobtest.Data(6, 4*blob.LeafBytes)
	m := blob.Describe(data)
	put(t, s, data)
	rewrite(t, filepath.Join(dir, m.Root.String()), func(b []byte) []byte { b[2*blob.LeafBytes+5] ^= 1; return b })
	if err := readAll(t, s, m.Root); !errors.Is(err, blob.ErrCorrupt) {
		t.Fatal(err)
	}
	a, err := s.Assemble(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Missing(); !slices.Equal(got, []int{2}) {
		t.Fatalf("missing: %v", got)
	}
	if err := errors.Join(a.Put(2, data[2*blob.LeafBytes:3*blob.LeafBytes]), a.Commit(t.Context()),
		a.Close()); err != nil {
		t.Fatal(err)
	}
	wantBlob(t, s, data)
}

// TestDiskStale opens a folder with an assembly that was abandoned long ago.
func TestDiskStale(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, blob.Of(blobtest.Data(1, 2*blob.LeafBytes)).String()+".part")
	for age, want := range map[time.Duration]int{time.Hour: 1, 8 * 24 * time.Hour: 0} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		openDisk(t, dir)
		if left, _ := os.ReadDir(dir); len(left) != want {
			t.Errorf("%d files left after %v", len(left), age)
		}
	}
}

// TestDiskGone stands for any failure to write: the folder is gone.
func TestDiskGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openDisk(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), []byte("x")); err == nil {
		t.Error("Put succeeded")
	}
	if _, err := s.Assemble(t.Context(), blob.Describe(make([]byte, 2*blob.LeafBytes))); err == nil ||
		errors.Is(err, blob.ErrBusy) {
		t.Errorf("Assemble: %v", err)
	}
	if _, err := s.Assemble(t.Context(), blob.Describe(make([]byte, 2*blob.LeafBytes))); errors.Is(err, blob.ErrBusy) {
		t.Error("a failed Assemble keeps the blob busy")
	}
}

// The block of a directory lies under the CID of the directory, so that who looks for that finds it.
func TestDiskNamesDirectories(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := blob.OpenDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	big, err := s.Put(ctx, make([]byte, 2*blob.LeafBytes))
	if err != nil {
		t.Fatal(err)
	}
	c, block := blob.Directory([]blob.File{{Name: "weights", CID: big, Size: 2 * blob.LeafBytes}})
	leaf := blob.Leaf(c)
	holds := func(name string, want bool) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, put := range map[string]func() error{
		"put":                 func() error { _, err := s.Put(ctx, block); return err },
		"of an older version": func() error { return os.WriteFile(filepath.Join(dir, leaf.String()), block, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(name, err)
		}
		holds(c.String(), name != "of an older version")
		again, err := blob.OpenDisk(dir)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := again.Get(ctx, leaf); err != nil || !bytes.Equal(data, block) {
			t.Errorf("%s: %v", name, err)
		}
		for _, none := range []blob.CID{c, blob.Leaf(big)} { // a directory is not a blob, and an inner node no leaf
			if _, err := again.Get(ctx, none); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("%s: %s: %v", name, none, err)
			}
		}
		if list, err := again.List(ctx); err != nil || len(list) != 2 || !slices.Contains(list, leaf) ||
			!slices.Contains(list, big) {
			t.Errorf("%s: %v, %v", name, list, err)
		}
		if err := again.Delete(ctx, leaf); err != nil {
			t.Error(name, err)
		}
		holds(c.String(), false)
		holds(leaf.String(), false)
		holds(big.String(), true)
	}
}

// TestDiskLink: a linked blob is one file under two folders, and each store may delete its own.
func TestDiskLink(t *testing.T) {
	_, directory := blob.Directory([]blob.File{{Name: "a", CID: blob.Of([]byte("a")), Size: 1}})
	for _, data := range [][]byte{[]byte("leaf"), directory, blobtest.Data(3, 2*blob.LeafBytes+1)} {
		dirs := [2]string{t.TempDir(), t.TempDir()}
		from, to := openDisk(t, dirs[0]), openDisk(t, dirs[1])
		c := blob.Of(data)
		if err := to.Link(t.Context(), from, c); !errors.Is(err, blob.ErrNotFound) {
			t.Fatalf("a blob that is nowhere: %v", err)
		}
		put(t, from, data)
		for range 2 {
			if err := to.Link(t.Context(), from, c); err != nil {
				t.Fatal(err)
			}
		}
		if len(to.Find(c)) == 0 {
			t.Error("the blocks of a linked blob are not known")
		}
		var files [2]os.FileInfo
		for i, dir := range dirs {
			names, err := os.ReadDir(dir)
			if err != nil || len(names) == 0 {
				t.Fatal(names, err)
			}
			if files[i], err = os.Stat(filepath.Join(dir, names[0].Name())); err != nil {
				t.Fatal(err)
			}
		}
		if !os.SameFile(files[0], files[1]) {
			t.Error("the bytes are there twice")
		}
		if err := from.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		wantBlob(t, to, data)
		wantBlob(t, openDisk(t, dirs[1]), data)
	}
}
