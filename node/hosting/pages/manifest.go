// Package pages sells data sets page by page: a page is some bytes of the files, one after another, for which a reader
// pays as for an answer of a hosted model. A manifest has the digests of all pages, and the network has its digest, so
// that a reader checks each page before it pays for the next.
//
// The package registers nothing and redeems no vouchers: node/hosting/pages/host does.
package pages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/hosting"
)

// Limits of data sets.
const (
	MinPage     = 4 << 10 // bytes
	MaxPage     = 4 << 20
	MaxPages    = 1 << 19
	MaxFiles    = 1 << 16
	MaxManifest = MaxPages*sha256.Size + MaxFiles*128 + 4096 // bytes
	maxName     = 1024                                       // bytes
	maxDepth    = 32                                         // folders of a name, with the file

	magic = "starling pages 1\n"
)

// Errors of data sets.
var (
	ErrFolder   = errors.New("not a folder of data that can be sold by pages")
	ErrManifest = errors.New("not a manifest of pages")
	ErrPage     = errors.New("not a page of the data set")
)

// File is a file of a data set.
type File struct {
	Name  string `cbor:"1,keyasint"` // below the folder, with slashes; no part of it is hidden
	Bytes uint64 `cbor:"2,keyasint"`
}

// Manifest says which files a data set has, and the digests of its pages.
type Manifest struct {
	Page    uint32 `cbor:"1,keyasint"` // bytes of each page but the last
	Files   []File `cbor:"2,keyasint"` // by name, ascending
	Digests []byte `cbor:"3,keyasint"` // SHA-256 of each page
}

// Encode returns the bytes of a manifest.
func (m Manifest) Encode() []byte { return append([]byte(magic), canon.MustMarshal(m)...) }

// Names are the digests by which the network knows the data set: of the manifest, and of the pages.
func (m Manifest) Names() (files, weights canon.Digest) {
	return canon.Sum("starling/pages/1", m.Encode()), canon.Sum("starling/pages/digests/1", m.Digests)
}

// Is checks that the manifest is that of a data set on the network.
func (m Manifest) Is(of hosting.Model) error {
	if files, weights := m.Names(); files != of.Files || weights != of.Weights {
		return fmt.Errorf("%w: it is %s, and %d is %s", ErrManifest, files.Short(), of.ID, of.Files.Short())
	}
	return nil
}

// Bytes of all files.
func (m Manifest) Bytes() (n uint64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

// Pages is the number of pages.
func (m Manifest) Pages() int { return len(m.Digests) / sha256.Size }

// Size of a page in bytes.
func (m Manifest) Size(page int) int {
	return int(min(uint64(m.Page), m.Bytes()-uint64(page)*uint64(m.Page)))
}

// Check compares a page with its digest.
func (m Manifest) Check(page int, data []byte) error {
	if page < 0 || page >= m.Pages() || len(data) != m.Size(page) ||
		sha256.Sum256(data) != [sha256.Size]byte(m.Digests[page*sha256.Size:]) {
		return fmt.Errorf("%w: %d bytes are not page %d", ErrPage, len(data), page)
	}
	return nil
}

// Decode reads a manifest of a stranger.
func Decode(data []byte) (m Manifest, err error) {
	if len(data) > MaxManifest || !strings.HasPrefix(string(data[:min(len(data), len(magic))]), magic) {
		return m, fmt.Errorf("%w: %d bytes, or another beginning than %q", ErrManifest, len(data), magic)
	}
	if err := canon.Unmarshal(data[len(magic):], &m); err != nil {
		return m, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	return m, m.validate()
}

func (m Manifest) validate() error {
	reject := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrManifest, fmt.Sprintf(format, args...))
	}
	if m.Page < MinPage || m.Page > MaxPage || len(m.Files) == 0 || len(m.Files) > MaxFiles {
		return reject("pages of %d bytes, and %d files", m.Page, len(m.Files))
	}
	const most = uint64(MaxPage) * MaxPages
	total, files := uint64(0), map[string]bool{}
	for i, f := range m.Files {
		if !named(f.Name, files) || i > 0 && f.Name <= m.Files[i-1].Name {
			return reject("the name %.80q", f.Name)
		}
		files[f.Name] = true
		if f.Bytes > most || total+f.Bytes > most {
			return reject("more than %d bytes", most)
		}
		total += f.Bytes
	}
	if pages := (total + uint64(m.Page) - 1) / uint64(m.Page); pages == 0 || pages > MaxPages ||
		len(m.Digests) != int(pages)*sha256.Size {
		return reject("%d bytes of digests for %d pages", len(m.Digests), pages)
	}
	return nil
}

// named reports whether a reader can write a file of a name next to files before it: below its folder, not hidden, as a
// program would take it for settings, and not below a file.
func named(name string, files map[string]bool) bool {
	if !fs.ValidPath(name) || len(name) > maxName || strings.ContainsAny(name, "\\:\x00") ||
		strings.Count(name, "/") >= maxDepth || name[0] == '.' || strings.Contains(name, "/.") {
		return false
	}
	for i, c := range name {
		if c == '/' && files[name[:i]] {
			return false
		}
	}
	return true
}

// span is a part of a file that lies in a page.
type span struct {
	file string
	at   int64
	n    int
}

// spans are the parts of a page.
func (m Manifest) spans(page int) (list []span) {
	from := uint64(page) * uint64(m.Page)
	end := from + uint64(m.Size(page))
	begin := uint64(0)
	for _, f := range m.Files {
		if a, b := max(from, begin), min(end, begin+f.Bytes); a < b {
			list = append(list, span{f.Name, int64(a - begin), int(b - a)})
		}
		begin += f.Bytes
	}
	return list
}

// Read reads a page from a folder. It checks no digest.
func (m Manifest) Read(root *os.Root, page int) ([]byte, error) {
	data := make([]byte, 0, m.Size(page))
	for _, s := range m.spans(page) {
		f, err := root.Open(s.file)
		if err != nil {
			return nil, err
		}
		part := data[len(data) : len(data)+s.n]
		_, err = f.ReadAt(part, s.at)
		if err := errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		data = data[:len(data)+s.n]
	}
	return data, nil
}

// Write writes a page into a folder.
func (m Manifest) Write(root *os.Root, page int, data []byte) error {
	if err := m.Check(page, data); err != nil {
		return err
	}
	for _, s := range m.spans(page) {
		if err := root.MkdirAll(path.Dir(s.file), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(s.file, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(data[:s.n], s.at)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		data = data[s.n:]
	}
	return nil
}

// Describe makes the manifest of the regular files of a folder, of which hidden ones are left out.
func Describe(ctx context.Context, dir string, page int) (m Manifest, err error) {
	m.Page = uint32(page)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	if err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(path.Base(name), ".") && name != "."
		switch {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return fs.SkipDir
		case hidden || !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Size() > 0 {
			m.Files = append(m.Files, File{name, uint64(info.Size())})
		}
		return err
	}); err != nil {
		return m, err
	}
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if page < MinPage || page > MaxPage || len(m.Files) == 0 || m.Bytes() > uint64(page)*MaxPages {
		return m, fmt.Errorf("%w: %s has %d files and %d bytes; a page has %d to %d bytes, and there are 1 to %d pages",
			ErrFolder, dir, len(m.Files), m.Bytes(), MinPage, MaxPage, MaxPages)
	}
	for i := range int((m.Bytes() + uint64(page) - 1) / uint64(page)) {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		data, err := m.Read(root, i)
		if err != nil {
			return m, err
		}
		d := sha256.Sum256(data)
		m.Digests = append(m.Digests, d[:]...)
	}
	if err := m.validate(); err != nil {
		return m, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return m, nil
}
