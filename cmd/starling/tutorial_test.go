package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// blocks are the ```sh blocks of a page, in order.
func blocks(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, part := range strings.Split(string(text), "\n```") {
		if code, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			script.WriteString(code + "\n")
		}
	}
	return script.String()
}

// onPath makes the test binary the program starling of a child.
func onPath(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := "#!/bin/sh\n" + asProgram + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "starling"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
}

// TestServeTutorial runs the page as it stands, and looks at what its commands left.
func TestServeTutorial(t *testing.T) {
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the tutorial needs " + program)
		}
	}
	dir := t.TempDir()
	script := "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" + blocks(t, filepath.Join("..", "..", "docs", "tutorials", "serve.md"))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, onPath(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	var first struct{ Choices []struct{ Text string } }
	if err := json.Unmarshal([]byte(read("first.json")), &first); err != nil || len(first.Choices) != 1 {
		t.Fatal(err, read("first.json"))
	}
	var streamed string
	for _, e := range strings.Split(read("stream.txt"), "\n\n") {
		var part struct{ Choices []struct{ Text string } }
		if data, ok := strings.CutPrefix(e, "data: "); ok && data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &part); err != nil {
				t.Error(err)
			}
			streamed += part.Choices[0].Text
		}
	}
	if streamed != first.Choices[0].Text || !strings.Contains(read("stream.txt"), "data: [DONE]") {
		t.Errorf("the stream gave %q, the whole answer %q", streamed, first.Choices[0].Text)
	}
	if card := read("out/tiny/README.md"); !strings.Contains(card, "license: apache-2.0") || !strings.Contains(card, "## Contributors") {
		t.Errorf("the card:\n%s", card)
	}
	for name, want := range map[string]string{"chat.json": `"role":"assistant"`, "metrics.csv": "kind,round,step,loss", "out/tiny/trainer_state.json": `"eval_loss"`} {
		if !strings.Contains(read(name), want) {
			t.Errorf("%s does not say %s:\n%s", name, want, read(name))
		}
	}
	var summary struct {
		Loss float64 `json:"final_eval_loss"`
	}
	if err := json.Unmarshal([]byte(read("out/tiny/summary.json")), &summary); err != nil {
		t.Error(err)
	}
	eval := exec.CommandContext(t.Context(), "starling", "model", "eval", "out/tiny", "-o", "json")
	eval.Dir, eval.Env = dir, cmd.Env
	eval.Path = filepath.Join(strings.SplitN(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "PATH="), ":", 2)[0], "starling")
	eval.Err = nil
	var got struct{ Loss float64 }
	raw, err := eval.Output()
	if err != nil || json.Unmarshal(raw, &got) != nil || got.Loss != summary.Loss {
		t.Errorf("eval says %s, training %v (%v)", raw, summary.Loss, err)
	}
	if boards, err := filepath.Glob(filepath.Join(dir, "tb", "*tfevents*")); err != nil || len(boards) != 1 {
		t.Error(boards, err)
	}
}
