// Package files lists the files of a model that enters a contest: its config.json and its safetensors, and no others,
// so that no code travels with a model. A list has the digest that an entry commits to.
package files

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

// Names of files: of the list of a model, and of a hidden set, at the URL where they are.
const (
	NameList = "entry.cbor"
	NameSet  = "set.cbor"
)

// MaxList is the limit of a list in bytes, and mostFiles that of its files.
const (
	MaxList   = 256 << 10
	mostFiles = 1024
)

// Errors of lists.
var (
	ErrList = errors.New("files: not the list of a model")
	ErrCode = errors.New("files: the folder has code, or weights in a format that can carry code")
	ErrNone = errors.New("files: the folder has no model in safetensors")
)

var (
	names = regexp.MustCompile(`^(config\.json|model\.safetensors|model\.safetensors\.index\.json|` +
		`model-[0-9]{5}-of-[0-9]{5}\.safetensors)$`)
	// endings of files that other programs execute
	code = []string{".py", ".pyc", ".so", ".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".sh", ".js", ".onnx", ".h5"}
)

// File is a file of a model.
type File struct {
	Name  string       `cbor:"1,keyasint"`
	Bytes uint64       `cbor:"2,keyasint"`
	Sum   canon.Digest `cbor:"3,keyasint"` // SHA-256
}

// List are the files of a model, by their names.
type List struct {
	Files []File `cbor:"1,keyasint"`
}

// Find lists the files of the model in a folder. Files with code next to them are refused: an entrant that has some
// expects that they are executed, and they are not. progress gets bytes; it may be nil.
func Find(dir string, progress func(done, total int64)) (l List, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	total, weights := int64(0), false
	var found []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case slices.Contains(code, strings.ToLower(filepath.Ext(name))):
			return l, fmt.Errorf("%w: %s", ErrCode, name)
		case !names.MatchString(name):
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return l, err
		}
		if !info.Mode().IsRegular() {
			return l, fmt.Errorf("%w: %s is no regular file", ErrList, name)
		}
		total += info.Size()
		weights = weights || filepath.Ext(name) == ".safetensors"
		found = append(found, name)
	}
	if !weights || !slices.Contains(found, "config.json") {
		return l, fmt.Errorf("%w: %s", ErrNone, dir)
	}
	slices.Sort(found)
	done := int64(0)
	for _, name := range found {
		f, err := read(dir, name)
		if err != nil {
			return l, err
		}
		if done += int64(f.Bytes); progress != nil {
			progress(done, total)
		}
		l.Files = append(l.Files, f)
	}
	return l, l.check()
}

func read(dir, name string) (File, error) {
	in, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	h := sha256.New()
	n, err := io.Copy(h, in)
	return File{name, uint64(n), canon.Digest(h.Sum(nil))}, err
}

// Encode is the file of a list.
func (l List) Encode() []byte { return canon.MustMarshal(l) }

// Decode reads the file of a list.
func Decode(b []byte) (l List, err error) {
	if len(b) > MaxList {
		return l, fmt.Errorf("%w: %d bytes, at most %d", ErrList, len(b), MaxList)
	}
	if err := canon.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("%w: %w", ErrList, err)
	}
	return l, l.check()
}

func (l List) check() error {
	if len(l.Files) < 2 || len(l.Files) > mostFiles {
		return fmt.Errorf("%w: %d files, wanted 2 to %d", ErrList, len(l.Files), mostFiles)
	}
	for i, f := range l.Files {
		switch {
		case !names.MatchString(f.Name):
			return fmt.Errorf("%w: a file with the name %.60q", ErrList, f.Name)
		case i > 0 && l.Files[i-1].Name >= f.Name:
			return fmt.Errorf("%w: %s is not in order", ErrList, f.Name)
		case f.Bytes == 0 || f.Bytes > arena.MaxBytes:
			return fmt.Errorf("%w: %s has %d bytes", ErrList, f.Name, f.Bytes)
		}
	}
	return nil
}

// Digest of the model.
func (l List) Digest() canon.Digest { return canon.Hash("starling/arena-model/1", l) }

// Bytes of all files.
func (l List) Bytes() (sum uint64) {
	for _, f := range l.Files {
		sum += f.Bytes
	}
	return sum
}
