package goods

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

// Source says which files are sold.
type Source struct {
	Folder string   // or one file
	Files  []string // paths below the folder, with slashes; empty: all files of the folder but those with a leading dot
}

// reader is a folder that files are read from. Links that lead out of it cannot be opened.
type reader struct {
	root     *os.Root
	parts    []Part
	modified []time.Time // of the parts
}

// open lists the files.
func (from Source) open() (*reader, error) {
	info, err := os.Stat(from.Folder)
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	dir, names := from.Folder, slices.Clone(from.Files)
	if !info.IsDir() {
		dir, names = filepath.Dir(from.Folder), []string{filepath.Base(from.Folder)}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	s := &reader{root: root}
	if len(names) == 0 {
		names, err = s.walk()
	}
	slices.Sort(names)
	for _, name := range names {
		if err == nil {
			err = s.add(name)
		}
	}
	if err == nil {
		err = checkParts(s.parts)
	}
	if n := countLeaves(s.parts); err == nil && (n == 0 || n > MaxIndex/uint64(len(canon.Digest{}))) {
		err = fmt.Errorf("it has %d leaves of %d bytes, and an index of at most %d bytes has 32 for each", n, sale.LeafBytes,
			MaxIndex)
	}
	if err != nil {
		return nil, &fault.Error{Code: fault.BadFolder, What: "the files of " + from.Folder + " cannot be offered",
			Err: errors.Join(err, root.Close()),
			Fix: "give a folder that holds the files to sell and nothing else, such as a copy of a model"}
	}
	return s, nil
}

// walk lists the files of the folder, without those whose path has a name with a leading dot. A folder of a run or of a
// party is refused: it holds keys.
func (s *reader) walk() (names []string, _ error) {
	err := fs.WalkDir(s.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil || name == ".":
			return err
		case strings.HasPrefix(base, ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(base, "."), d.IsDir():
			return nil
		case base == "key" || base == "run.json" || strings.HasSuffix(base, ".key") || strings.HasSuffix(base, ".pem"):
			return fmt.Errorf("it holds %s, so that it is no folder of a model alone and may hold keys", name)
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// add adds a file. A link is followed within the folder.
func (s *reader) add(name string) error {
	info, err := s.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	s.parts = append(s.parts, Part{Path: name, Bytes: uint64(info.Size())})
	s.modified = append(s.modified, info.ModTime())
	return nil
}

// read reads a block.
func (s *reader) read(to *scratch, b block) error {
	f, err := s.root.Open(filepath.FromSlash(s.parts[b.part].Path))
	if err != nil {
		return err
	}
	return errors.Join(to.read(f, b.at, b.size), f.Close())
}

// unchanged reports an error if a file has changed since it was listed.
func (s *reader) unchanged() error {
	for i, p := range s.parts {
		info, err := s.root.Stat(filepath.FromSlash(p.Path))
		if err != nil {
			return err
		}
		if uint64(info.Size()) != p.Bytes || !info.ModTime().Equal(s.modified[i]) {
			return &fault.Error{Code: fault.BadFolder, What: p.Path + " changed while it was read",
				Fix: "end the program that writes it, and give the same command again"}
		}
	}
	return nil
}

// Seal encrypts files by a scheme with a key into the files index and sealed of a folder, and returns what an offer
// says of them. A folder that has an index already is refused: a key must encrypt one content only. progress gets
// bytes; it may be nil.
func Seal(ctx context.Context, from Source, to string, scheme sale.Scheme, key []byte,
	progress func(done, total int64)) (sale.Content, error) {
	if _, err := os.Stat(filepath.Join(to, FileIndex)); err == nil {
		return sale.Content{}, &fault.Error{Code: fault.Exists, What: to + " holds encrypted files already",
			Fix: "give another folder"}
	}
	s, err := from.open()
	if err != nil {
		return sale.Content{}, err
	}
	defer s.root.Close()
	content, err := s.seal(ctx, to, scheme, key, progress)
	return content, fault.OnDisk(err)
}

func (s *reader) seal(ctx context.Context, to string, scheme sale.Scheme, key []byte,
	progress func(done, total int64)) (c sale.Content, err error) {
	cipher, err := scheme.NewCipher(key)
	if err != nil {
		return c, err
	}
	n := countLeaves(s.parts)
	x := &Index{Format: format, Parts: s.parts, Digests: make([]byte, n*uint64(len(canon.Digest{})))}
	sealed := make([]canon.Digest, n)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return c, err
	}
	name := filepath.Join(to, FileSealed)
	out, err := os.Create(name + ".part")
	if err != nil {
		return c, err
	}
	err = each(ctx, cut(s.parts), progress, func(m *scratch, b block) error {
		if err := s.read(m, b); err != nil {
			return err
		}
		x.put(m, b)
		m.crypt(cipher, b.leaf)
		copy(sealed[b.leaf:], canon.Leaves(m.leaves))
		_, err := out.WriteAt(m.data[:b.size], b.from)
		return err
	})
	if err == nil {
		err = s.unchanged()
	}
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return c, errors.Join(err, os.Remove(name+".part"))
	}
	data := canon.MustMarshal(x)
	if len(data) > MaxIndex {
		return c, &fault.Error{Code: fault.BadFolder, Fix: "sell fewer or shorter files at a time",
			What: fmt.Sprintf("the index has %d bytes, at most %d", len(data), MaxIndex)}
	}
	c = sale.Content{Plain: x.tree().Root(), Sealed: canon.NewTree(sealed).Root(), Leaves: n, Bytes: x.Bytes(),
		Key: scheme.KeyDigest(key), Index: indexDigest(data), Scheme: scheme}
	if err := os.Rename(name+".part", name); err != nil {
		return c, err
	}
	return c, folder.WriteFile(filepath.Join(to, FileIndex), data)
}
