package reasoning

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesEndWithTheirAnswer also holds questions apart from examples, and both in the length of the model.
func TestExamplesEndWithTheirAnswer(t *testing.T) {
	for _, task := range []task{steps, calls} {
		r := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			prompt, text, answer := task.example(r)
			if last(strings.TrimSuffix(text, ".")) != answer || !strings.HasSuffix(text, ".") {
				t.Fatalf("%q ends with another answer than %s", text, answer)
			}
			if n := len(prompt) + len(text); n > task.length {
				t.Errorf("%s: %d tokens, at most %d", task.name, n, task.length)
			}
		}
		path := filepath.Join(t.TempDir(), "examples.jsonl")
		asked, err := task.write(path, 500, 20, 3)
		if err != nil || len(asked) != 20 {
			t.Fatalf("%d questions, %v", len(asked), err)
		}
		seen := map[string]bool{}
		for _, q := range asked {
			if seen[q.prompt] {
				t.Errorf("%q is asked twice", q.prompt)
			}
			seen[q.prompt] = true
		}
	}
}
