package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/canon"
)

func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the file "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The files of a model are listed, and no others; a folder with code is refused.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json")
	if _, err := Find(dir, nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	write(t, dir, "model.safetensors", "tokenizer.json", "README.md", "lineage.jsonl")
	read := int64(0)
	l, err := Find(dir, func(done, _ int64) { read = done })
	if err != nil || len(l.Files) != 2 || l.Files[1].Name != "model.safetensors" || read != int64(l.Bytes()) {
		t.Fatalf("%+v, %v", l, err)
	}
	back, err := Decode(l.Encode())
	if err != nil || back.Digest() != l.Digest() {
		t.Errorf("%+v, %v", back, err)
	}
	for _, name := range []string{"modeling_mine.py", "pytorch_model.bin", "weights.PT", "run.sh"} {
		write(t, dir, name)
		if _, err := Find(dir, nil); !errors.Is(err, ErrCode) {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(filepath.Join(dir, "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The list of a stranger decodes to the same bytes, or is refused, and names no file outside of the folder of the
// model.
func FuzzDecode(f *testing.F) {
	l := List{Files: []File{{"config.json", 1, canon.Sum("a")}, {"model-00001-of-00002.safetensors", 2, canon.Sum("b")}}}
	f.Add(l.Encode())
	f.Add(List{Files: []File{{"../config.json", 1, canon.Sum("a")}, {"model.safetensors", 2, canon.Sum("b")}}}.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Decode(data)
		if err != nil {
			return
		}
		if string(l.Encode()) != string(data) {
			t.Errorf("%x is taken", data)
		}
		for _, f := range l.Files {
			if filepath.Base(f.Name) != f.Name || !filepath.IsLocal(f.Name) {
				t.Errorf("%q is taken", f.Name)
			}
		}
	})
}
