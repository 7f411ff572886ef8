package memory

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("weight"), leastMapped)
	for name, data := range map[string][]byte{"small": []byte("text"), "large": large} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := OpenFolder(dir)
	for name, want := range map[string][]byte{"small": []byte("text"), "large": large} {
		got, err := fs.ReadFile(d, name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if _, err := d.ReadFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	first, err := d.ReadFile("large")
	if err != nil {
		t.Fatal(err)
	}
	again, err := d.ReadFile("large")
	if err != nil || &first[0] != &again[0] {
		t.Errorf("a file is mapped twice: %v", err)
	}
	heap := bytes.Repeat([]byte{1}, 1<<16)
	for _, part := range [][]byte{first[5000:300000], first, first[:1], nil, heap} {
		d.Rest(part)
	}
	if !bytes.Equal(first, large) || !bytes.Equal(heap, bytes.Repeat([]byte{1}, 1<<16)) {
		t.Error("bytes that rested are others")
	}
	if err := d.Close(); err != nil || d.Close() != nil {
		t.Errorf("closed: %v", err)
	}
}

func TestWithin(t *testing.T) {
	data := make([]byte, 100)
	for _, c := range []struct {
		part []byte
		from int
		ok   bool
	}{{data, 0, true}, {data[99:], 99, true}, {data[10:20], 10, true}, {data[:0], 0, false}, {make([]byte, 8), 0, false},
		{make([]byte, 200), 0, false}} {
		if from, ok := within(data, c.part); from != c.from || ok != c.ok {
			t.Errorf("%d bytes: at %d, %v", len(c.part), from, ok)
		}
	}
}
