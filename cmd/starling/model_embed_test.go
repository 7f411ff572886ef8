package main

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/safetensors"
)

// writeEncoder writes the folder of an encoder of texts.
func writeEncoder(t *testing.T, dir string) {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 256, "n_positions": 16, "n_embd": 8,
		"n_layer": 1, "n_head": 2, "initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	n, err := embed.New(c, 16, 256)
	if err != nil {
		t.Fatal(err)
	}
	w := n.Begin(nil, 3)
	file, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(safetensors.EncodeAs(file, slices.Sorted(maps.Keys(w)), w, nil, nil), file.Close(),
		os.WriteFile(filepath.Join(dir, "config.json"), n.JSON(), 0o644),
		os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Texts get vectors from flags and from lines of standard input, the same ones, as objects or as lines; their cosines
// are in a table.
func TestModelEmbedsTexts(t *testing.T) {
	dir := t.TempDir()
	writeEncoder(t, dir)
	type line struct {
		Text   string
		Vector []float32
	}
	var whole struct {
		Texts   []line
		Cosines [][]float64
	}
	lines := command(t, "model", "embed", dir, "-o", "jsonl")
	lines.Stdin = strings.NewReader("so it rains\n\n  the sun! \nso it rains\n")
	out, err := lines.Output()
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := starling(t, "model", "embed", dir, "--text", "so it rains", "--text", "the sun!", "--text",
		"so it rains", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &whole); err != nil || code != 0 || len(whole.Texts) != 3 {
		t.Fatalf("%v, exit %d: %s", err, code, stderr)
	}
	for i, text := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var one line
		if err := json.Unmarshal([]byte(text), &one); err != nil || one.Text != whole.Texts[i].Text || len(one.Vector) != 8 ||
			!slices.Equal(one.Vector, whole.Texts[i].Vector) {
			t.Errorf("%s\n%+v, %v", text, whole.Texts[i], err)
		}
	}
	c := whole.Cosines
	if math.Abs(c[0][2]-1) > 1e-6 || !(c[0][1] < 0.999) || c[0][1] != c[1][0] {
		t.Errorf("%v", c)
	}
	if code, stdout, _ := starling(t, "model", "embed", dir, "--text", "a", "--text", "b"); code != 0 ||
		!strings.Contains(stdout, "TEXT") || !strings.Contains(stdout, "1.000") {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{{[]string{dir, "a.txt"}, 2, "the folder of a model"}, {nil, 2, "the folder of a model"},
		{[]string{dir}, 3, "FILE_UNUSABLE"}, {[]string{t.TempDir(), "--text", "x"}, 3, "MODEL_UNREADABLE"}} {
		code, _, stderr := starling(t, append([]string{"model", "embed"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%q: exit %d, want %d: %s", c.args, code, c.code, stderr)
		}
	}
}
