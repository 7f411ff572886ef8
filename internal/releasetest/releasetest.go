// Package releasetest makes repositories of releases for tests. It is no part of the program.
package releasetest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/starling-network/starling/node/releases"
	"github.com/starling-network/starling/node/releases/publish"
)

// Repository is a repository in a folder, of which two of three keys must sign.
type Repository struct {
	t    *testing.T
	keys string
	publish.Folder
}

// New makes a repository without releases.
func New(t *testing.T) *Repository {
	t.Helper()
	r := &Repository{t: t, keys: t.TempDir(), Folder: publish.Folder(t.TempDir())}
	for _, name := range []string{"a", "b", "c", "online"} {
		r.must(publish.NewKey(r.Key(name)))
	}
	r.must(r.Init(2, r.Key("online.pub"), r.Key("a.pub"), r.Key("b.pub"), r.Key("c.pub")))
	r.Release()
	return r
}

// Key is the file of a key: a, b, c or online, or its public half.
func (r *Repository) Key(name string) string { return filepath.Join(r.keys, name) }

// URL of the repository.
func (r *Repository) URL() string { return "file://" + string(r.Folder) }

// RootFile names the trusted keys.
func (r *Repository) RootFile() string {
	return filepath.Join(string(r.Folder), "metadata", "root.json")
}

// Root is the content of RootFile.
func (r *Repository) Root() []byte {
	text, err := os.ReadFile(r.RootFile())
	r.must(err)
	return text
}

// Archive packs a program as a release of this port, and returns its file.
func (r *Repository) Archive(version, program string) string {
	r.t.Helper()
	text, err := os.ReadFile(program)
	r.must(err)
	name := "starling-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH
	file := filepath.Join(r.t.TempDir(), name+".tar.gz")
	f, err := os.Create(file)
	r.must(err)
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for path, text := range map[string][]byte{"/starling": text, "/LICENSE": []byte("words")} {
		r.must(w.WriteHeader(&tar.Header{Name: name + path, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))}))
		_, err := w.Write(text)
		r.must(err)
	}
	r.must(errors.Join(w.Close(), z.Close(), f.Close()))
	return file
}

// Add puts a program into the next list.
func (r *Repository) Add(version, program string, n releases.Notes) {
	r.t.Helper()
	n.Version, n.OS, n.Arch = version, runtime.GOOS, runtime.GOARCH
	r.must(r.Folder.Add(r.Archive(version, program), n))
}

// Release lets two people sign, and publishes.
func (r *Repository) Release() {
	r.t.Helper()
	r.must(errors.Join(r.Sign(r.Key("a")), r.Sign(r.Key("b")), r.Publish(r.Key("online"))))
}

func (r *Repository) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
