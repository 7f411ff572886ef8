package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/textclass"
)

// writeClassifier writes the folder of a classifier of texts.
func writeClassifier(t *testing.T, dir string, labels ...string) {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 256, "n_positions": 16, "n_embd": 8,
		"n_layer": 1, "n_head": 2})
	if err != nil {
		t.Fatal(err)
	}
	n, err := textclass.New(c, labels, 16, 256)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, named := range n.Tensors() {
		names = append(names, named.Name)
	}
	weights, err := os.Create(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(safetensors.EncodeAs(weights, names, n.Begin(nil, 3), nil, nil), weights.Close(),
		os.WriteFile(filepath.Join(dir, "config.json"), n.JSON(), 0o644),
		os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Texts are classified from flags and from lines of standard input, to the same probabilities.
func TestModelClassifiesTexts(t *testing.T) {
	dir, png := t.TempDir(), filepath.Join(t.TempDir(), "x.png")
	writeClassifier(t, dir, "bad", "good")
	type answer struct {
		Texts []struct {
			Text, Label   string
			Probability   float64
			Probabilities map[string]float64
		}
	}
	lines := command(t, "model", "classify", dir, "-o", "json")
	lines.Stdin = strings.NewReader("so it rains\n\n  the sun! \n")
	out, err := lines.Output()
	var first, second answer
	if err := errors.Join(err, json.Unmarshal(out, &first)); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := starling(t, "model", "classify", dir, "--text", "so it rains", "--text", "the sun!", "-o",
		"json")
	if err := json.Unmarshal([]byte(stdout), &second); err != nil || code != 0 {
		t.Fatalf("%v, exit %d: %s", err, code, stderr)
	}
	if stdout != string(out) || len(first.Texts) != 2 || first.Texts[1].Text != "the sun!" ||
		first.Texts[0].Probability != first.Texts[0].Probabilities[first.Texts[0].Label] {
		t.Errorf("%s\n%s", out, stdout)
	}
	long := strings.Repeat("long ", 30)
	if code, stdout, _ := starling(t, "model", "classify", dir, "--text", long); code != 0 ||
		!strings.Contains(stdout, "TEXT") || !strings.Contains(stdout, "...") || strings.Contains(stdout, long) {
		t.Errorf("exit %d:\n%s", code, stdout)
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{{[]string{dir, png, "--text", "x"}, 2, "either images or texts"}, {nil, 2, "either images or texts"},
		{[]string{dir}, 3, "FILE_UNUSABLE"}, {[]string{dir, png}, 3, "MODEL_UNREADABLE"},
		{[]string{t.TempDir(), "--text", "x"}, 3, "MODEL_UNREADABLE"}} {
		code, _, stderr := starling(t, append([]string{"model", "classify"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.say) {
			t.Errorf("%q: exit %d, want %d: %s", c.args, code, c.code, stderr)
		}
	}
}

// A reward model gives texts scores, which do not depend on the other texts.
func TestRewardModelScoresTexts(t *testing.T) {
	dir := t.TempDir()
	writeClassifier(t, dir, "LABEL_0")
	type answer struct {
		Texts []struct {
			Text  string
			Score *float64
		}
	}
	scores := func(texts ...string) (a answer) {
		t.Helper()
		args := []string{"model", "classify", dir, "-o", "json"}
		for _, text := range texts {
			args = append(args, "--text", text)
		}
		code, stdout, stderr := starling(t, args...)
		if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != 0 || len(a.Texts) != len(texts) {
			t.Fatalf("exit %d: %s%s", code, stdout, stderr)
		}
		return a
	}
	two, one := scores("so it rains", "the sun!"), scores("the sun!")
	first, second, alone := two.Texts[0].Score, two.Texts[1].Score, one.Texts[0].Score
	if first == nil || *first == *second || *second != *alone || two.Texts[1].Text != "the sun!" {
		t.Errorf("%+v, %+v", two, one)
	}
	if code, stdout, _ := starling(t, "model", "classify", dir, "--text", "so it rains"); code != 0 ||
		!strings.Contains(stdout, "SCORE") || strings.Contains(stdout, "LABEL_0") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}
