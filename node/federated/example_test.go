package federated_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/owner"
)

const labelled = `apiVersion: starling/v1
kind: FederatedJob
name: moods
task: classify
model:
  architecture: llama
  config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 2,
    max_position_embeddings: 16}
  tokenizer: byte-level
datasets: [{path: "*.jsonl"}]
sequence_len: 8
val_set_size: 0.2
training: {max_steps: 12, global_batch_size: 5, learning_rate: 1.0e-2}
strategy: {method: fedavg, sync_steps: 4, round_timeout: 60s}
federated: {owners: 3, clip: 10, classes: [down, up], example_noise: {multiplier: 1, min_examples: 20}}
`

// moods writes a number of examples into a folder.
func moods(t *testing.T, dir string, examples int) {
	t.Helper()
	var text strings.Builder
	for i := range examples {
		of := []string{`"+%d", "label": "up"`, `"-%d", "label": "down"`}[i%2]
		fmt.Fprintf(&text, "{\"text\": "+of+"}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "moods.jsonl"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Owners add noise in each of their steps: the report and the ledger of an owner say what that means for an example,
// and an owner with too few examples, or with a smaller budget, sends nothing.
func TestNoiseForExamples(t *testing.T) {
	dir := t.TempDir()
	c, s := coordinatorOfFile(t, labelled, func(data string) { moods(t, data, 40) }, federated.Options{Dir: dir})
	var running sync.WaitGroup
	var all []owner.Options
	for i := range 4 {
		o := one(t, i, s.URL)
		o.Data = t.TempDir()
		moods(t, o.Data, []int{20, 25, 50, 19}[i])
		all = append(all, o)
	}
	few := all[3]
	if _, err := owner.Join(context.Background(), few); !errors.Is(err, owner.ErrJob) {
		t.Errorf("an owner of 19 examples: %v", err)
	}
	strict := few
	moods(t, few.Data, 20)
	strict.Budget = owner.Budget{Unit: protocol.OfExample, Epsilon: 4, Delta: 1e-5}
	if _, err := owner.Join(context.Background(), strict); !errors.Is(err, owner.ErrBudget) {
		t.Errorf("a budget of 4 for an example: %v", err)
	}
	for i, o := range all[:3] {
		o.Budget = owner.Budget{Unit: protocol.OfExample, Epsilon: 12, Delta: 1e-5}
		running.Go(func() {
			r, err := owner.Join(context.Background(), o)
			if err != nil || r.Sent != 3 || r.Epsilon != nil || r.Example == nil || !(*r.Example > 0.5) {
				t.Errorf("owner %d: %+v, %v", i, r, err)
			}
		})
	}
	r, err := c.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c.Linger(context.Background(), 10*time.Second)
	running.Wait()
	want := protocol.Epsilon(protocol.OfExample, 1e-5, protocol.Spent{ExampleNoise: 1, Rate: 0.25, Steps: 4, Rounds: 3})
	if r.Rounds != 3 || r.Epsilon != nil || r.Example == nil || r.Example.Epsilon != want || r.Example.Steps != 12 {
		t.Errorf("%+v %+v, wanted epsilon %v", r, r.Example, want)
	}
	if text := strings.Join(r.Assumptions, "\n"); !strings.Contains(text, "probability of at most 0.25") {
		t.Error(text)
	}
}
