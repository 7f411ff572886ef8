package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The data of the example is what the program draws.
func TestCommunities(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, 1, 600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nodes.jsonl", "edges.csv"} {
		drawn, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile(filepath.Join("../../examples/communities", name))
		if err != nil || !bytes.Equal(drawn, kept) {
			t.Errorf("%s: the example has another, %v", name, err)
		}
	}
}
