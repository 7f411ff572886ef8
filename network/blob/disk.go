package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Names of the files beside a blob's own, which is named by its CID.
const (
	leavesSuffix = ".leaves" // manifest of a blob of several leaves: derived, rebuilt if lost
	partSuffix   = ".part"   // leaves of an unfinished assembly, each at its place
	tempSuffix   = ".tmp"    // file of a Put in progress
)

// Disk is a Store in one folder, a file for each blob. A file appears under its CID by a rename after it was written
// and synced, so a process that dies at any moment leaves whole blobs, and leftovers that the next one uses or
// removes. One process uses a folder at a time.
type Disk struct {
	dir  string
	mu   sync.Mutex
	open map[CID]bool // being assembled
}

var _ Store = (*Disk)(nil)

// OpenDisk opens the store in dir, which is created if need be, and removes what interrupted Puts left.
func OpenDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("blob: open store: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("blob: open store: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tempSuffix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("blob: open store: %w", err)
			}
		}
	}
	return &Disk{dir: dir, open: map[CID]bool{}}, nil
}

func (s *Disk) path(c CID, suffix string) string { return filepath.Join(s.dir, c.String()+suffix) }

// Put implements Store.
func (s *Disk) Put(ctx context.Context, data []byte) (CID, error) {
	if err := checkPut(ctx, data); err != nil {
		return CID{}, err
	}
	m := Describe(data)
	if _, err := s.Get(ctx, m.Root); err == nil {
		return m.Root, nil
	}
	if err := s.writeLeaves(m); err != nil {
		return CID{}, err
	}
	if err := s.write(s.path(m.Root, ""), data); err != nil {
		return CID{}, err
	}
	return m.Root, nil
}

// Get implements Store.
func (s *Disk) Get(ctx context.Context, c CID) ([]byte, error) {
	if err := checkUse(ctx, c); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.path(c, ""))
	if err != nil {
		return nil, readError(c, err)
	}
	if !Of(data).Equals(c) {
		return nil, fmt.Errorf("blob: %s: %w", c, ErrCorrupt)
	}
	return data, nil
}

// Has implements Store.
func (s *Disk) Has(ctx context.Context, c CID) (bool, error) {
	if err := checkUse(ctx, c); err != nil {
		return false, err
	}
	_, err := os.Stat(s.path(c, ""))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Delete implements Store.
func (s *Disk) Delete(ctx context.Context, c CID) error {
	if err := checkUse(ctx, c); err != nil {
		return err
	}
	for _, suffix := range []string{"", leavesSuffix, partSuffix} {
		if err := os.Remove(s.path(c, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("blob: delete: %w", err)
		}
	}
	return nil
}

// List implements Store.
func (s *Disk) List(ctx context.Context) ([]CID, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("blob: list: %w", err)
	}
	list := make([]CID, 0, len(entries))
	for _, e := range entries {
		if c, err := Parse(e.Name()); err == nil {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, compare)
	return list, ctx.Err()
}

// Open implements Store.
func (s *Disk) Open(ctx context.Context, c CID) (Reader, error) {
	if err := checkUse(ctx, c); err != nil {
		return nil, err
	}
	f, err := os.Open(s.path(c, ""))
	if err != nil {
		return nil, readError(c, err)
	}
	m, err := s.manifest(ctx, f, c)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &diskReader{f, m}, nil
}

// manifest returns the manifest of the stored file f.
func (s *Disk) manifest(ctx context.Context, f *os.File, c CID) (*Manifest, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, readError(c, err)
	}
	m, err := s.leaves(ctx, c, info.Size())
	if err != nil {
		return nil, err
	}
	if m.Size != info.Size() || m.Size > int64(len(m.Leaves))*LeafBytes {
		return nil, fmt.Errorf("blob: %s: file of %d bytes: %w", c, info.Size(), ErrCorrupt)
	}
	return m, nil
}

func (s *Disk) leaves(ctx context.Context, c CID, size int64) (*Manifest, error) {
	if IsLeaf(c) {
		return leafManifest(c, size), nil
	}
	if data, err := os.ReadFile(s.path(c, leavesSuffix)); err == nil {
		if m, err := ParseManifest(c, data); err == nil {
			return m, nil
		}
	}
	data, err := s.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	m := Describe(data)
	return m, s.writeLeaves(m)
}

type diskReader struct {
	file     *os.File
	manifest *Manifest
}

func (r *diskReader) Manifest() *Manifest { return r.manifest }
func (r *diskReader) Close() error        { return r.file.Close() }

func (r *diskReader) Leaf(dst []byte, i int) ([]byte, error) {
	if err := checkLeaf(r.manifest, i); err != nil {
		return nil, err
	}
	n := r.manifest.LeafSize(i)
	dst = slices.Grow(dst, n)
	leaf := dst[len(dst) : len(dst)+n]
	if _, err := r.file.ReadAt(leaf, int64(i)*LeafBytes); err != nil && !errors.Is(err, io.EOF) {
		return nil, readError(r.manifest.Root, err)
	}
	if err := r.manifest.Check(i, leaf); err != nil {
		return nil, err
	}
	return dst[:len(dst)+n], nil
}

// Assemble implements Store. It hashes what an unfinished assembly left: a digest is the only witness that a leaf
// reached the disk.
func (s *Disk) Assemble(ctx context.Context, m *Manifest) (Assembly, error) {
	if err := checkAssemble(ctx, m); err != nil {
		return nil, err
	}
	if !s.acquire(m.Root) {
		return nil, fmt.Errorf("blob: %s: %w", m.Root, ErrBusy)
	}
	a, err := s.resume(ctx, m)
	if err != nil {
		s.release(m.Root)
		return nil, err
	}
	return a, nil
}

func (s *Disk) acquire(c CID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := !s.open[c]
	s.open[c] = true
	return free
}

func (s *Disk) release(c CID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func readError(c CID, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("blob: %s: %w", c, ErrNotFound)
	}
	return fmt.Errorf("blob: %s: %w", c, err)
}

// writeLeaves stores the manifest of a blob of several leaves.
func (s *Disk) writeLeaves(m *Manifest) error {
	if IsLeaf(m.Root) {
		return nil
	}
	return s.write(s.path(m.Root, leavesSuffix), m.Encode())
}

// write makes path hold data, at once and durably.
func (s *Disk) write(path string, data []byte) error {
	f, err := os.CreateTemp(s.dir, "*"+tempSuffix)
	if err != nil {
		return fmt.Errorf("blob: put: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = s.publish(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("blob: put: %w", err)
	}
	return nil
}

// publish renames a synced file to its final name and syncs the folder.
func (s *Disk) publish(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
