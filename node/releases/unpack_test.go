package releases

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

func packed(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Only programs leave an archive, for the folder alone.
func FuzzPrograms(f *testing.F) {
	f.Add(packed(f, &tar.Header{Name: "a/starling", Typeflag: tar.TypeReg, Size: 3}))
	f.Add(packed(f, &tar.Header{Name: "../starling", Typeflag: tar.TypeReg, Size: 3}))
	f.Add(packed(f, &tar.Header{Name: "a/starling", Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}))
	f.Add(packed(f, &tar.Header{Name: "a/starling", Typeflag: tar.TypeReg, Size: 1},
		&tar.Header{Name: "a/starling", Typeflag: tar.TypeReg, Size: 2}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := filepath.Join(t.TempDir(), "in", "it")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		found, err := programs(bytes.NewReader(archive), dir)
		info, there := os.Lstat(filepath.Join(dir, "starling"))
		if err == nil && found && (there != nil || !info.Mode().IsRegular()) {
			t.Error("the program is not there, or is no file")
		}
		if all, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	})
}
