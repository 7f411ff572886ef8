package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"testing"
	"time"
)

// entries are the files of an archive.
func entries(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uname != "" || h.Gname != "" || !h.ModTime.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s differs from machine to machine: %+v", h.Name, h)
		}
		if all[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Two images of one program have one digest. Every digest in an image is that of a blob, and the layer holds the
// program.
func TestImage(t *testing.T) {
	program := []byte("a program")
	make := func(program []byte) ([]byte, string) {
		t.Helper()
		archive, digest, err := imageOf(program, "amd64", "a commit", time.Unix(1_700_000_000, 0).UTC())
		if err != nil {
			t.Fatal(err)
		}
		return archive, digest
	}
	archive, digest := make(program)
	if again, same := make(program); !bytes.Equal(archive, again) || same != digest {
		t.Error("two images of one program")
	}
	if _, other := make([]byte("another")); other == digest {
		t.Error("one image of two programs")
	}
	files := entries(t, archive)
	read := func(name string, v any) {
		t.Helper()
		if err := json.Unmarshal(files[name], v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	type blob struct {
		MediaType, Digest string
		Size              int
	}
	at := func(b blob) string {
		t.Helper()
		name := "blobs/sha256/" + b.Digest[len("sha256:"):]
		if data := files[name]; sha(data) != b.Digest || len(data) != b.Size {
			t.Fatalf("%s is not the blob of %+v", name, b)
		}
		return name
	}
	var index struct{ Manifests []blob }
	read("index.json", &index)
	var manifest struct {
		Config blob
		Layers []blob
	}
	read(at(index.Manifests[0]), &manifest)
	if index.Manifests[0].Digest != digest || len(manifest.Layers) != 1 {
		t.Errorf("%s: %+v, %+v", digest, index, manifest)
	}
	var config struct {
		Config struct{ Entrypoint []string }
		RootFS struct {
			Diffs []string `json:"diff_ids"`
		}
	}
	read(at(manifest.Config), &config)
	z, err := gzip.NewReader(bytes.NewReader(files[at(manifest.Layers[0])]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(z)
	if err != nil || sha(layer) != config.RootFS.Diffs[0] {
		t.Fatalf("the layer is %s, want %s (%v)", sha(layer), config.RootFS.Diffs[0], err)
	}
	if in := entries(t, layer); !bytes.Equal(in[config.Config.Entrypoint[0][1:]], program) {
		t.Errorf("the layer holds %d files, and not the program at %v", len(in), config.Config.Entrypoint)
	}
}
