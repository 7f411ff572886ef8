package compat

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
)

var rewrite = flag.Bool("rewrite", false, "write the digests of Hugging Face's library anew")

// TestTokenizersAreThoseOfHuggingFace holds the ids of 1,000 lines of mixed scripts against those of Hugging Face's
// library.
func TestTokenizersAreThoseOfHuggingFace(t *testing.T) {
	list, err := Tokenizers()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		if k.Error != "" || k.Different > 0 || k.Lines < 1000 {
			t.Errorf("%s: %d of %d lines differ, the first is %q; %s", k.Name, k.Different, k.Lines, k.First, k.Error)
		}
	}
	if len(list) < 15 {
		t.Errorf("%d tokenizers", len(list))
	}
}

// TestHuggingFaceGivesTheDigests makes the files and the digests again, where the npm package is installed.
func TestHuggingFaceGivesTheDigests(t *testing.T) {
	const clients = "../../web/clients/x.js"
	if _, err := os.Stat("../../web/clients/node_modules/tokenizers"); err != nil {
		t.Skip("the npm package tokenizers is not installed: cd web/clients && npm ci --ignore-scripts")
	}
	dir := t.TempDir()
	if *rewrite {
		dir = "tokenizers"
	}
	inputs.Of(t, "tokenizers.mjs")
	if out, err := exec.Command("node", "tokenizers.mjs", "make", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines, err := json.Marshal(Lines())
	if err != nil {
		t.Fatal(err)
	}
	clientsPath, err := filepath.Abs(clients)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", "tokenizers.mjs", "encode", dir, clientsPath)
	node.Stdin, node.Stderr = bytes.NewReader(lines), os.Stderr
	got, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("tokenizers.expected.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, digests) {
		t.Error("the library gives other digests; see the difference after -rewrite")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		made, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if kept, err := files.ReadFile("tokenizers/" + e.Name()); err != nil || !bytes.Equal(kept, made) {
			t.Errorf("%s is made otherwise now (%v)", e.Name(), err)
		}
	}
}
