package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/client/job/problem"
)

// smallDisk is a folder on a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	return dir
}

// A disk that fills leaves nothing that is half written: of tokens that are asked for, and of those of a job.
func TestDiskFull(t *testing.T) {
	small := smallDisk(t)
	dir := folder(t, "[{path: long.txt}]", "byte-level")
	path := filepath.Join(dir, "long.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("one two ", 36<<17)), 0o644); err != nil { // 36 MiB
		t.Fatal(err)
	}
	files, err := Named([]string{path}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Vocabulary{{}, {Size: 260}} {
		if _, err := Tokenize(files, v, filepath.Join(small, "new"), nil); !errors.Is(err, ErrFull) {
			t.Errorf("tokenize: %v", err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(small, "cache"))
	j := load(t, dir)
	sources, err := Sources(j)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Tokenizer(j, sources)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Corpus(j, sources, tok, nil)
	var list *problem.ErrorList
	if !errors.As(err, &list) || list.Errors[0].Code != problem.DiskFull || !strings.Contains(list.Errors[0].Fix, small) {
		t.Errorf("a job: %v", err)
	}
	err = filepath.WalkDir(small, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
