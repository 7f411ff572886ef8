package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestModelTune runs the loop of docs/serving.md as it stands, but for the address and the name of the model, and reads
// the weights that it saves.
func TestModelTune(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python to run the loop with")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "serving.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, loop, _ := strings.Cut(string(page), "```python\n")
	loop, _, _ = strings.Cut(loop, "```")
	dir, out := llamaFolder(t), t.TempDir()
	c := command(t, "model", "tune", dir, "--name", "quickstart", "--out", out, "--listen", "127.0.0.1:0", "-o", "json")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	var served struct {
		Base string `json:"base_url"`
	}
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&served); err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), python, "-c", strings.Replace(loop, "http://127.0.0.1:7320", served.Base, 1))
	heard, err := p.CombinedOutput()
	lines := strings.Fields(string(heard))
	if err != nil || len(lines) != 21 {
		t.Fatalf("%v: %s", err, heard)
	}
	if first, last := lines[1], lines[19]; last <= first {
		t.Errorf("the mean reward went from %s to %s", first, last)
	}
	saved := filepath.Join(out, strings.TrimPrefix(lines[20], "tinker://"))
	code, text, errs := starling(t, "model", "generate", saved, "--prompt", "a", "--tokens", "8", "--temperature", "0")
	if code != 0 || text == "" {
		t.Errorf("the saved weights give exit %d: %s%s", code, text, errs)
	}
}
