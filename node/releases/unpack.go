package releases

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	maxProgram = 1 << 30 // bytes of a program that is unpacked
	maxEntries = 10_000  // files of an archive
)

// unpack takes the programs out of an archive, as scripts/release makes them, into a folder that is there when they all
// are.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), ".part-*")
	if err != nil {
		return err
	}
	found, err := programs(f, part)
	if err == nil && !found {
		err = errors.New("it has no program")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("releases: %s: %w", filepath.Base(archive), err), os.RemoveAll(part))
	}
	return errors.Join(os.RemoveAll(dir), os.Rename(part, dir))
}

// programs writes the programs of an archive, which lie in its one folder, and reports whether starling is one.
func programs(archive io.Reader, dir string) (found bool, err error) {
	z, err := gzip.NewReader(archive)
	if err != nil {
		return false, err
	}
	t := tar.NewReader(z)
	for range maxEntries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return false, err
		}
		name := path.Base(h.Name)
		switch stem := strings.TrimSuffix(name, ".exe"); {
		case h.Typeflag != tar.TypeReg || strings.Count(path.Clean(h.Name), "/") != 1:
		case stem == "starling" || stem == "starling-device":
			if err := write(filepath.Join(dir, name), t, h.Size); err != nil {
				return false, err
			}
			found = found || stem == "starling"
		}
	}
	return false, fmt.Errorf("it has more than %d files", maxEntries)
}

func write(name string, from io.Reader, size int64) error {
	if size > maxProgram {
		return fmt.Errorf("%s has %d bytes, at most %d are taken", filepath.Base(name), size, maxProgram)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, from, size)
	return errors.Join(err, f.Sync(), f.Close())
}
