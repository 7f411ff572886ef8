package hubfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestIsAt: a file is the one that is written only if all of its bytes are.
func TestIsAt(t *testing.T) {
	want := bytes.Repeat([]byte("weights"), comparedBytes/5)
	path := filepath.Join(t.TempDir(), "model")
	export := File{Name: "model", Write: func(w io.Writer) error {
		for _, part := range [][]byte{want[:10], want[10:]} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}}
	for name, change := range map[string]func([]byte) []byte{
		"same":    func(b []byte) []byte { return b },
		"flipped": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"shorter": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":  func(b []byte) []byte { return append(b, 0) },
		"empty":   func([]byte) []byte { return nil },
	} {
		if err := os.WriteFile(path, change(bytes.Clone(want)), 0o644); err != nil {
			t.Fatal(err)
		}
		if same, err := export.IsAt(path); err != nil || same != (name == "same") {
			t.Errorf("%s: %v, %v", name, same, err)
		}
	}
	if _, err := export.IsAt(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	failed := errors.New("failed")
	if _, err := (File{Write: func(io.Writer) error { return failed }}).IsAt(path); err != failed {
		t.Errorf("no export: %v", err)
	}
}
