// Package task makes prompts with right answers, of which a model learns to reason by steps or to call a tool. It
// trains nothing.
package task

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// Task makes prompts with right answers.
type Task struct {
	Name    string
	Batch   int                                              // examples of a step of training
	Length  int                                              // tokens of an example, which are its bytes
	Example func(r *rand.Rand) (prompt, text, answer string) // text ends with the answer and a full stop
}

// Steps are sums of four numbers below 100, which are added one after the other, a line each.
var Steps = Task{Name: "steps", Batch: 64, Length: 48, Example: func(r *rand.Rand) (string, string, string) {
	var terms []string
	var lines strings.Builder
	sum := 0
	for i := range 4 {
		n := r.IntN(100)
		terms = append(terms, strconv.Itoa(n))
		if i > 0 {
			fmt.Fprintf(&lines, "%d+%d=%d", sum, n, sum+n)
			lines.WriteByte("\n\n."[i-1])
		}
		sum += n
	}
	return strings.Join(terms, "+") + "\n", lines.String(), strconv.Itoa(sum)
}}

// Calls are sums of two numbers of four digits, which a tool adds.
var Calls = Task{Name: "calls", Batch: 16, Length: 128, Example: func(r *rand.Rand) (string, string, string) {
	a, b := 1000+r.IntN(9000), 1000+r.IntN(9000)
	sum := strconv.Itoa(a + b)
	return fmt.Sprintf("%d+%d=", a, b), fmt.Sprintf(`<tool_call>{"name":"add","arguments":{"a":%d,"b":%d}}</tool_call>`+
		`<tool_response>%s</tool_response>%s.`, a, b, sum, sum), sum
}}

// Adder is the tool.
const Adder = "def add(arguments):\n    return arguments[\"a\"] + arguments[\"b\"]\n"

// Question is a prompt with its answer.
type Question struct{ Prompt, Answer string }

// Write writes n examples to a file, and returns questions whose prompts are not among them. Both follow from a seed.
func (t Task) Write(path string, n, questions int, seed uint64) ([]Question, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	e := json.NewEncoder(f)
	for range n {
		prompt, text, _ := t.Example(r)
		seen[prompt] = true
		if err := e.Encode(map[string]string{"prompt": prompt, "completion": text}); err != nil {
			return nil, err
		}
	}
	var asked []Question
	for len(asked) < questions {
		if prompt, _, answer := t.Example(r); !seen[prompt] {
			seen[prompt] = true
			asked = append(asked, Question{prompt, answer})
		}
	}
	return asked, f.Close()
}

// Job is the file of the job that trains a model on the examples of a file.
func (t Task) Job(examples, out string, steps int, seed uint64) string {
	return fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: %s-%d
task: sft
seed: %d
model:
  architecture: gpt2
  config: {n_layer: 3, n_embd: 96, n_head: 4, n_positions: %d, vocab_size: 256}
  tokenizer: byte-level
datasets: [{path: %q}]
sequence_len: %d
training: {max_steps: %d, global_batch_size: %d, learning_rate: 3.0e-3, warmup_steps: %d}
strategy: {workers: 1, sync_steps: %d}
output: {dir: %q}
budget: {max_cost: 1000}
`, t.Name, seed, seed, t.Length, examples, t.Length, steps, t.Batch, max(1, steps/50), min(100, max(1, steps/4)), out)
}

// Last returns what follows the last sign that is no digit.
func Last(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })+1:]
}
