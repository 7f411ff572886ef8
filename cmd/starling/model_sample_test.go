package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/diffusion"
	"github.com/starling-network/starling/compute/model/safetensors"
)

// Images are drawn into a file, the same ones for the same seed.
func TestModelSamplesImages(t *testing.T) {
	dir := t.TempDir()
	n, err := diffusion.Parse(diffusion.MLP, map[string]any{"hidden_sizes": []any{5}},
		picture.Size{Rows: 3, Columns: 2, Channels: 1}, 50)
	if err != nil {
		t.Fatal(err)
	}
	weights := architecture.Init(n.Tensors(), 7)
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(safetensors.EncodeAs(file, slices.Sorted(maps.Keys(weights)), weights, nil, nil), file.Close(),
		os.WriteFile(filepath.Join(dir, "config.json"), n.JSON(), 0o644)); err != nil {
		t.Fatal(err)
	}
	draw := func(name, seed string) []byte {
		t.Helper()
		path := filepath.Join(dir, name)
		code, stdout, stderr := starling(t, "model", "sample", dir, "--out", path, "--count", "3", "--columns", "2",
			"--seed", seed, "-o", "json")
		if code != 0 || !strings.Contains(stdout, `"images":3`) {
			t.Fatalf("exit %d: %s%s", code, stdout, stderr)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	first, again, other := draw("a.png", "1"), draw("b.png", "1"), draw("c.png", "2")
	if !bytes.Equal(first, again) || bytes.Equal(first, other) {
		t.Error("the seed does not decide the images")
	}
	if p, err := picture.Decode(first); err != nil || p.Rows != 7 || p.Columns != 5 {
		t.Errorf("%v, %v", p.Size, err)
	}
	out := filepath.Join(dir, "d.png")
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{{[]string{dir}, 2, "--out"}, {[]string{"--out", out}, 2, "the folder of a model"},
		{[]string{dir, "--out", out, "--count", "0"}, 2, "--count"}, {[]string{dir, "--out", out, "--columns", "17"}, 2,
			"--columns"}, {[]string{t.TempDir(), "--out", out}, 3, "MODEL_UNREADABLE"}} {
		code, _, stderr := starling(t, append([]string{"model", "sample"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%q: exit %d, want %d: %s", c.args, code, c.code, stderr)
		}
	}
}
