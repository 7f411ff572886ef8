package blob

import (
	"bytes"
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
	"syscall"
	"time"
)

// Suffixes of files that belong to a blob. The blob's own file is named by its CID; that of the block of a directory
// by the CID of the directory.
const (
	leavesSuffix = ".leaves" // manifest of a blob of several leaves: derived, rebuilt if lost
	partSuffix   = ".part"   // leaves of an unfinished assembly, each at its place
	tempSuffix   = ".tmp"    // file of a Put in progress
)

// Disk is a Store in one folder, a file for each blob. A file appears under its CID by a rename after it was written
// and synced, so a process that dies at any moment leaves whole blobs, and leftovers that the next one uses or
// removes. A blob that is found damaged becomes an unfinished assembly, so that what is whole of it is used again. One
// process uses a folder at a time.
type Disk struct {
	*index
	dir  string
	pool *Pool // of stores that share files; nil: it is in none

	mu   sync.Mutex   // also held while a blob appears or is set aside
	open map[CID]bool // being assembled
}

var _ Store = (*Disk)(nil)

// staleAfter is how long what an unfinished assembly left is kept for the next.
const staleAfter = 7 * 24 * time.Hour

// OpenDisk opens the store in dir, which is created if need be, and removes the remains of interrupted Puts, and
// assemblies that were not continued for a week.
func OpenDisk(dir string) (*Disk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("blob: open store: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("blob: open store: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tempSuffix) || strings.HasSuffix(e.Name(), partSuffix) && stale(e) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("blob: open store: %w", err)
			}
		}
	}
	s := &Disk{index: newIndex(), dir: dir, open: map[CID]bool{}}
	return s, s.survey()
}

func stale(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > staleAfter
}

// survey makes the blocks of all stored blobs known.
func (s *Disk) survey() error {
	list, err := s.List(context.Background())
	if err != nil {
		return err
	}
	for _, c := range list {
		r, err := s.Open(context.Background(), c)
		if errors.Is(err, ErrCorrupt) {
			continue
		}
		if err != nil {
			return fmt.Errorf("blob: open store: %w", err)
		}
		s.add(r.Manifest())
		_ = r.Close()
	}
	return nil
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
	at := s.place(m.Root, data)
	err := s.pool.only(s, at, bytes.NewReader(data), m, func() error { return s.write(at, data) })
	if err != nil {
		return CID{}, err
	}
	s.add(m)
	return m.Root, nil
}

// Link stores a blob of another store as a second name of its file, which is not read: ErrNotFound if it is not there,
// another error where files cannot be shared. Two stores that share a file share what happens to its bytes.
func (s *Disk) Link(ctx context.Context, from *Disk, c CID) error {
	if has, err := s.Has(ctx, c); has || err != nil {
		return err
	}
	r, err := from.Open(ctx, c)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := s.writeLeaves(r.Manifest()); err != nil {
		return err
	}
	at := from.file(c)
	err = os.Link(at, filepath.Join(s.dir, filepath.Base(at)))
	if errors.Is(err, fs.ErrExist) {
		err = nil // it came meanwhile
	}
	if err != nil {
		return fmt.Errorf("blob: link %s: %w", c, full(err))
	}
	s.add(r.Manifest())
	return nil
}

// Get implements Store.
func (s *Disk) Get(ctx context.Context, c CID) ([]byte, error) {
	if err := checkUse(ctx, c); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(s.file(c))
	if err != nil {
		return nil, readError(c, err)
	}
	if !Of(data).Equals(c) {
		return nil, s.damaged(c)
	}
	return data, nil
}

// damaged sets aside a blob with a leaf that does not match its CID, unless the blob was repaired meanwhile, and
// returns ErrCorrupt. The next Assemble finds the leaves that are whole.
func (s *Disk) damaged(c CID) error {
	err := fmt.Errorf("blob: %s: %w", c, ErrCorrupt)
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.file(c)
	if data, e := os.ReadFile(path); e == nil && Of(data).Equals(c) {
		return err
	}
	s.remove(c)
	if IsLeaf(c) || s.open[c] {
		return errors.Join(err, absent(os.Remove(path)))
	}
	return errors.Join(err, absent(os.Rename(path, s.path(c, partSuffix))))
}

// absent forgives that a file is not there.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Has implements Store.
func (s *Disk) Has(ctx context.Context, c CID) (bool, error) {
	if err := checkUse(ctx, c); err != nil {
		return false, err
	}
	_, err := os.Stat(s.file(c))
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
	s.remove(c)
	files := []string{s.file(c), s.path(c, leavesSuffix), s.path(c, partSuffix)}
	if IsLeaf(c) {
		files = append(files, s.path(c, "")) // and the file of a directory
	}
	for _, path := range files {
		if err := absent(os.Remove(path)); err != nil {
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
		c, err := Parse(e.Name())
		if err != nil {
			continue
		}
		if s.holdsDirectory(c) {
			c = Leaf(c)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, compare)
	return slices.CompactFunc(list, CID.Equals), ctx.Err()
}

// Leftovers returns the blobs of which an unfinished assembly left something, and how many bytes of the disk it may
// take.
func (s *Disk) Leftovers() (map[CID]int64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("blob: list: %w", err)
	}
	left := map[CID]int64{}
	for _, e := range entries {
		name, part := strings.CutSuffix(e.Name(), partSuffix)
		if c, err := Parse(name); part && err == nil {
			if info, err := e.Info(); err == nil {
				left[c] = info.Size()
			}
		}
	}
	return left, nil
}

// Open implements Store.
func (s *Disk) Open(ctx context.Context, c CID) (Reader, error) {
	if err := checkUse(ctx, c); err != nil {
		return nil, err
	}
	f, err := os.Open(s.file(c))
	if err != nil {
		return nil, readError(c, err)
	}
	m, err := s.manifest(ctx, f, c)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &diskReader{s, f, m}, nil
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
		return nil, s.damaged(c)
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
	store    *Disk
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
		return nil, errors.Join(err, r.store.damaged(r.manifest.Root))
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
		return fmt.Errorf("blob: put: %w", full(err))
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = s.publish(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("blob: put: %w", full(err))
	}
	return nil
}

// full tells ErrFull from other errors of writing.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

// publish renames a synced file to its final name and syncs the folder. A file of a Pool is read-only.
func (s *Disk) publish(from, to string) error {
	if s.pool != nil {
		if err := os.Chmod(from, 0o444); err != nil {
			return err
		}
	}
	s.mu.Lock()
	err := os.Rename(from, to)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
