package task

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesEndWithTheirAnswer also holds questions apart from examples, and both in the length of the model.
func TestExamplesEndWithTheirAnswer(t *testing.T) {
	for _, task := range []Task{Steps, Calls} {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			prompt, text, answer := task.Example(r)
			if Last(strings.TrimSuffix(text, ".")) != answer || !strings.HasSuffix(text, ".") {
				t.Fatalf("%q ends with another answer than %s", text, answer)
			}
			if n := len(prompt) + len(text); n > task.Length {
				t.Errorf("%s: %d tokens, at most %d", task.Name, n, task.Length)
			}
		}
		path := filepath.Join(t.TempDir(), "examples.jsonl")
		asked, err := task.Write(path, 500, 20, 3)
		if err != nil || len(asked) != 20 {
			t.Fatalf("%d questions, %v", len(asked), err)
		}
		seen := map[string]bool{}
		for _, q := range asked {
			if seen[q.Prompt] {
				t.Errorf("%q is asked twice", q.Prompt)
			}
			seen[q.Prompt] = true
		}
	}
}
