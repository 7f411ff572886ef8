package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// diskAssembly writes leaves at their places in the part file of a blob.
type diskAssembly struct {
	*progress
	store *Disk
	file  *os.File
}

// resume opens the part file and marks the leaves that are already in it. A file that is read-only was one of a Pool
// and may have other names: it is not written to, and the assembly begins with another one.
func (s *Disk) resume(ctx context.Context, m *Manifest) (*diskAssembly, error) {
	path := s.path(m.Root, partSuffix)
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o200 == 0 {
		if err := absent(os.Remove(path)); err != nil {
			return nil, fmt.Errorf("blob: assemble: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("blob: assemble: %w", full(err))
	}
	a := &diskAssembly{newProgress(m), s, f}
	if err := a.scan(ctx); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("blob: assemble %s: %w", m.Root, err)
	}
	return a, nil
}

func (a *diskAssembly) scan(ctx context.Context) error {
	info, err := a.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > a.manifest.Size {
		return a.file.Truncate(0)
	}
	leaf := make([]byte, min(LeafBytes, info.Size()))
	for i := 0; int64(i)*LeafBytes < info.Size(); i++ {
		n, err := a.file.ReadAt(leaf, int64(i)*LeafBytes)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_ = a.put(i, leaf[:n], func() error { return nil }) // a leaf that is wrong stays missing
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (a *diskAssembly) Put(i int, leaf []byte) error {
	return a.put(i, leaf, func() error {
		if _, err := a.file.WriteAt(leaf, int64(i)*LeafBytes); err != nil {
			return fmt.Errorf("blob: %s: %w", a.manifest.Root, full(err))
		}
		return nil
	})
}

func (a *diskAssembly) Commit(ctx context.Context) error {
	if err := a.complete(ctx); err != nil {
		return err
	}
	if err := a.store.writeLeaves(a.manifest); err != nil {
		return err
	}
	part, at := a.file.Name(), a.store.path(a.manifest.Root, "")
	err := a.store.pool.only(a.store, at, io.NewSectionReader(a.file, 0, a.manifest.Size), a.manifest, func() error {
		if err := a.file.Sync(); err != nil {
			return err
		}
		return a.store.publish(part, at)
	})
	if err == nil {
		err = absent(os.Remove(part)) // where the file of another store is used
	}
	if err != nil {
		return fmt.Errorf("blob: %s: %w", a.manifest.Root, full(err))
	}
	a.store.add(a.manifest)
	return nil
}

func (a *diskAssembly) Close() error {
	if !a.close() {
		return nil
	}
	defer a.store.release(a.manifest.Root)
	return a.file.Close()
}
