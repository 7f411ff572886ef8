package goods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

// Lie says that the key of a seller does not decrypt the files to those that it offered. The evidence is complete.
type Lie struct{ Evidence sale.Evidence }

// OfKey reports whether the key is not the one that the seller committed to. No leaf is shown then.
func (l *Lie) OfKey() bool { return len(l.Evidence.Leaf) == 0 }

func (l *Lie) Error() string {
	if l.OfKey() {
		return "sale: the seller gave another key than it committed to"
	}
	return fmt.Sprintf("sale: leaf %d does not decrypt to the files that the seller offered", l.Evidence.Index)
}

// Unseal decrypts DIR/sealed to a folder, which appears when it is complete. A folder that holds anything is refused.
// The error is a *Lie if the key is not that of the content, or a leaf does not decrypt to its digest. Until all files
// are there, they lie in a folder with the suffix .unsealing, which is replaced. All leaves are compared before one is
// written: a disk that is full hides no lie. progress gets bytes; it may be nil.
func Unseal(ctx context.Context, dir, to string, c sale.Content, x *Index, key []byte,
	progress func(done, total int64)) error {
	if c.Scheme.KeyDigest(key) != c.Key {
		return &Lie{}
	}
	cipher, err := c.Scheme.NewCipher(key)
	if err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(dir, FileSealed))
	if err != nil {
		return fault.OnDisk(err)
	}
	defer f.Close()
	bad, err := decrypt(ctx, f, nil, x, cipher, nil)
	if bad >= 0 {
		return lie(ctx, f, c, x, bad, key)
	}
	if err != nil {
		return fault.OnDisk(err)
	}
	if empty, err := isEmpty(to); err != nil {
		return err
	} else if !empty {
		return occupied(to)
	}
	part := filepath.Clean(to) + ".unsealing"
	if err := unpack(ctx, f, part, x, cipher, progress); err != nil {
		return fault.OnDisk(err)
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.OnDisk(err)
	}
	return fault.OnDisk(os.Rename(part, to))
}

func occupied(to string) error {
	return &fault.Error{Code: fault.Exists, What: to + " holds other files",
		Fix: "give a folder that is empty or does not exist"}
}

// isEmpty reports whether a folder has no entries, or does not exist.
func isEmpty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return len(entries) == 0, fault.OnDisk(err)
}

var errLeaf = errors.New("a leaf is not its digest")

// unpack writes the parts to a folder.
func unpack(ctx context.Context, sealed *os.File, to string, x *Index, cipher sale.Cipher,
	progress func(done, total int64)) error {
	root, err := create(to, x.Parts)
	if err != nil {
		return err
	}
	defer root.Close()
	bad, err := decrypt(ctx, sealed, root, x, cipher, progress)
	if bad >= 0 { // it was right a moment ago
		err = errLeaf
	}
	for i := 0; err == nil && i < len(x.Parts); i++ {
		err = syncFile(root, x.Parts[i].Path)
	}
	return err
}

// decrypt decrypts the parts and compares them, and writes them to a folder, if it is not nil. bad is the first leaf
// that is not its digest, or -1.
func decrypt(ctx context.Context, sealed *os.File, to *os.Root, x *Index, cipher sale.Cipher,
	progress func(done, total int64)) (bad int, err error) {
	bad = -1
	var mu sync.Mutex
	err = each(ctx, cut(x.Parts), progress, func(s *scratch, b block) error {
		if err := s.read(sealed, b.from, b.size); err != nil {
			return err
		}
		s.crypt(cipher, b.leaf)
		if i := x.other(b.leaf, s.leaves); i >= 0 {
			mu.Lock()
			defer mu.Unlock()
			if bad < 0 || i < bad {
				bad = i
			}
			return errLeaf
		}
		if to == nil {
			return nil
		}
		return write(to, x.Parts[b.part].Path, s.data[:b.size], b.at)
	})
	if bad >= 0 {
		return bad, nil
	}
	return -1, err
}

// create makes a folder with empty files in place of one that is there.
func create(to string, parts []Part) (*os.Root, error) {
	if err := errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		name := filepath.FromSlash(p.Path)
		err := root.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			var f *os.File
			if f, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
				err = f.Close()
			}
		}
		if err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	return root, nil
}

func write(root *os.Root, name string, data []byte, at int64) error {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, at)
	return errors.Join(err, f.Close())
}

func syncFile(root *os.Root, name string) error {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// lie makes the evidence of a leaf that is not its digest, or an error if the file is not the encrypted one any more.
func lie(ctx context.Context, sealed *os.File, c sale.Content, x *Index, leaf int, key []byte) error {
	t, err := sealedTree(ctx, sealed, x, c)
	if err != nil {
		return err
	}
	shown, err := sealedLeaf(sealed, cut(x.Parts), leaf)
	if err != nil {
		return fault.OnDisk(err)
	}
	e := sale.Evidence{Index: uint64(leaf), Leaf: shown, Plain: x.digest(leaf)}
	if e.Sealed, err = t.Proof(leaf); err != nil {
		return err
	}
	if e.Path, err = x.tree().Proof(leaf); err != nil {
		return err
	}
	if err := e.Shows(c, key); err != nil {
		return &fault.Error{Code: fault.BadSealed, What: "the encrypted file changed while it was read", Err: err,
			Fix: "check the disk, and run the command again"}
	}
	return &Lie{Evidence: e}
}

// Present reports whether a folder has the plain files of an index. A folder that has other files is an error with the
// code SALE_EXISTS; one that is empty or does not exist has none.
func Present(ctx context.Context, dir string, x *Index) (bool, error) {
	if empty, err := isEmpty(dir); err != nil || empty {
		return false, err
	}
	same, err := holds(ctx, dir, x)
	if err == nil && !same {
		err = occupied(dir)
	}
	return same, err
}

func holds(ctx context.Context, dir string, x *Index) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fault.OnDisk(err)
	}
	defer root.Close()
	for _, p := range x.Parts {
		info, err := root.Stat(filepath.FromSlash(p.Path))
		if err != nil || !info.Mode().IsRegular() || uint64(info.Size()) != p.Bytes {
			return false, nil //nolint:nilerr // it is another folder
		}
	}
	s := &reader{root: root, parts: x.Parts}
	err = each(ctx, cut(x.Parts), nil, func(m *scratch, b block) error {
		if err := s.read(m, b); err != nil {
			return err
		}
		if x.other(b.leaf, m.leaves) >= 0 {
			return errLeaf
		}
		return nil
	})
	if errors.Is(err, errLeaf) {
		return false, nil
	}
	return err == nil, fault.OnDisk(err)
}
