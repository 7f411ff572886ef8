// Package goods encrypts files for a sale, and checks and decrypts them. The files lie in two public files: the index
// with the paths, the sizes and the digests of all plain leaves, and the encrypted leaves one after another. A third
// file may open some of the leaves, with a proof. It knows no network and no prices.
package goods

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/sale"
)

// Names of the public files.
const (
	FileIndex   = "index"
	FileSealed  = "sealed"
	FileOpening = "opening" // of drawn leaves, with a proof; of a sale with a key for each leaf alone
)

// Limits of an index.
const (
	MaxIndex = 64 << 20 // bytes
	maxParts = 100_000
	maxPath  = 1024 // bytes
	maxDepth = 8    // folders
	format   = 1    // version
)

// Part is a file that is sold.
type Part struct {
	Path  string `cbor:"1,keyasint"` // with slashes, relative
	Bytes uint64 `cbor:"2,keyasint"`
}

// Index is the public description of files that are sold. Leaves of sale.LeafBytes are numbered through all parts; the
// last leaf of a part is shorter, and an empty part has none. Its encoding is canonical CBOR.
type Index struct {
	Format  uint32 `cbor:"1,keyasint"`
	Parts   []Part `cbor:"2,keyasint"` // in ascending order of their paths
	Digests []byte `cbor:"3,keyasint"` // of the plain leaves, 32 bytes each
}

var errIndex = errors.New("not an index of files")

// parse reads the canonical bytes of an index.
func parse(data []byte) (*Index, error) {
	if len(data) > MaxIndex {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errIndex, len(data), MaxIndex)
	}
	x := &Index{}
	if err := canon.Unmarshal(data, x); err != nil {
		return nil, fmt.Errorf("%w: %w", errIndex, err)
	}
	return x, x.validate()
}

// validate checks an index by itself.
func (x *Index) validate() error {
	if x.Format != format {
		return fmt.Errorf("%w: format %d, wanted %d", errIndex, x.Format, format)
	}
	if err := checkParts(x.Parts); err != nil {
		return fmt.Errorf("%w: %w", errIndex, err)
	}
	if n := countLeaves(x.Parts); n == 0 || uint64(len(x.Digests)) != n*uint64(len(canon.Digest{})) {
		return fmt.Errorf("%w: %d bytes of digests for %d leaves", errIndex, len(x.Digests), n)
	}
	return nil
}

// checkParts checks the paths and sizes of parts. Two paths that differ only in the case of letters are refused: on
// some systems they are one file.
func checkParts(parts []Part) error {
	if len(parts) > maxParts {
		return fmt.Errorf("%d files, at most %d", len(parts), maxParts)
	}
	files, folders := map[string]bool{}, map[string]bool{}
	total := uint64(0)
	for i, p := range parts {
		if err := checkPath(p.Path); err != nil {
			return err
		}
		if i > 0 && parts[i-1].Path >= p.Path {
			return fmt.Errorf("%q is not in order after %q", p.Path, parts[i-1].Path)
		}
		name := strings.ToLower(p.Path)
		if files[name] {
			return fmt.Errorf("two files have the path %q, apart from the case of letters", p.Path)
		}
		files[name] = true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
		if p.Bytes > sale.MaxLeaves*sale.LeafBytes {
			return fmt.Errorf("%q has %d bytes, at most %d", p.Path, p.Bytes, uint64(sale.MaxLeaves*sale.LeafBytes))
		}
		if total += (p.Bytes + sale.LeafBytes - 1) / sale.LeafBytes; total > sale.MaxLeaves {
			return fmt.Errorf("more than %d leaves", sale.MaxLeaves)
		}
	}
	for name := range files {
		if folders[name] {
			return fmt.Errorf("%q is both a file and a folder", name)
		}
	}
	return nil
}

// checkPath refuses a path that is not a file below the folder on every system.
func checkPath(name string) error {
	if len(name) > maxPath || !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("%.100q is not a clean relative path of at most %d bytes", name, maxPath)
	}
	if strings.Count(name, "/") > maxDepth {
		return fmt.Errorf("%.100q is more than %d folders deep", name, maxDepth)
	}
	if strings.ContainsAny(name, `\:*?"<>|`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("%q has a character that some systems do not permit", name)
	}
	for _, s := range strings.Split(name, "/") {
		if len(s) > 255 || strings.HasSuffix(s, ".") || strings.HasSuffix(s, " ") || reserved(s) {
			return fmt.Errorf("%q has a name that some systems do not permit", name)
		}
	}
	return nil
}

// reserved reports whether Windows takes a name for a device.
func reserved(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch base = strings.TrimSpace(base); base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	rest, com := strings.CutPrefix(base, "com")
	if !com {
		rest, com = strings.CutPrefix(base, "lpt")
	}
	return com && (len(rest) == 1 && rest >= "0" && rest <= "9" || rest == "¹" || rest == "²" || rest == "³")
}

// countLeaves is the number of leaves of all parts.
func countLeaves(parts []Part) (n uint64) {
	for _, p := range parts {
		n += (p.Bytes + sale.LeafBytes - 1) / sale.LeafBytes
	}
	return n
}

// Bytes is the size of all parts together.
func (x *Index) Bytes() (n uint64) {
	for _, p := range x.Parts {
		n += p.Bytes
	}
	return n
}

// digest returns the digest of plain leaf i.
func (x *Index) digest(i int) canon.Digest {
	const size = len(canon.Digest{})
	return canon.Digest(x.Digests[i*size : (i+1)*size])
}

// other returns the number of the first of some plain leaves that is not its digest, or -1. first is the number of the
// first leaf.
func (x *Index) other(first int, leaves [][]byte) int {
	for i, d := range canon.Leaves(leaves) {
		if d != x.digest(first+i) {
			return first + i
		}
	}
	return -1
}

// tree is the tree over the digests of the plain leaves.
func (x *Index) tree() *canon.Tree {
	digests := make([]canon.Digest, len(x.Digests)/len(canon.Digest{}))
	for i := range digests {
		digests[i] = x.digest(i)
	}
	return canon.NewTree(digests)
}

// indexDigest commits to the encoded index.
func indexDigest(data []byte) canon.Digest { return canon.Sum("starling/sale/index/1", data) }
