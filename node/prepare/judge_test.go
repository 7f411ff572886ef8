package prepare

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/jobtest"
)

// A reward model is part of a job by its weights and by that of its score. One that cannot score the answers is
// refused.
func TestRewardModels(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	jobtest.WriteBase(t, at("base"))
	jobtest.WriteReward(t, at("judge"), 16, 1)
	jobtest.WriteReward(t, at("other"), 16, 2)
	jobtest.WriteReward(t, at("short"), 8, 1)
	jobtest.WriteReward(t, at("classes"), 16, 1, "bad")
	for _, name := range []string{"foreign", "lower", "shorter"} {
		jobtest.WriteReward(t, at(name), 16, 1)
	}
	var foreign map[string]any
	if err := json.Unmarshal(tokenizer.Bytes().JSON(), &foreign); err != nil {
		t.Fatal(err)
	}
	vocabulary := foreign["model"].(map[string]any)["vocab"].(map[string]any)
	vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
	words, err := json.Marshal(foreign)
	if err != nil {
		t.Fatal(err)
	}
	vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
	foreign["normalizer"] = map[string]any{"type": "Lowercase"}
	lower, err := json.Marshal(foreign)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"foreign/tokenizer.json": string(words),
		"lower/tokenizer.json":          string(lower),
		"shorter/tokenizer_config.json": `{"model_max_length": 8}`,
		"sums.jsonl":                    strings.Repeat(`{"prompt": "a + b = ", "completion": "cd."}`+"\n", 40),
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
task: grpo
rollout: {group: 4, max_tokens: 4}
reward: [{kind: model, model: judge}]
model: {base_model: ./base}
datasets: [{path: sums.jsonl}]
val_set_size: 0.2
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8}
strategy: {method: fedavg, sync_steps: 4}
`} {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prepared := func(set ...string) (*CompiledJob, error) {
		t.Helper()
		j, err := job.Load(at("job.yaml"), set...)
		if err != nil {
			t.Fatal(set, err)
		}
		return New(j)
	}
	var known []string
	for _, set := range [][]string{nil, {"reward=[{kind: model, model: other}]"},
		{"reward=[{kind: model, model: judge}, {kind: model, model: other}]"},
		{"reward=[{kind: model, model: judge}, {kind: json}]"},
		{"reward=[{kind: model, model: judge, weight: 2}, {kind: json}]"},
		{"reward=[{kind: model, model: judge}, {kind: json, weight: 3}]"}, {"rollout.kl=0.1"}, {"rollout.stop=."},
		{"model.adapter={lora: {r: 2}}"}, {"rollout.staleness=1", "rollout.generators=1"},
		{"rollout.staleness=1", "rollout.correction=tapered"},
		{"model={architecture: gpt2, config: {n_embd: 16, n_layer: 1, n_head: 2, n_positions: 16, vocab_size: 300}, " +
			"tokenizer: byte-level}"}} {
		b, err := prepared(set...)
		if err != nil {
			t.Fatal(set, err)
		}
		if id := b.JobID(); slices.Contains(known, id) {
			t.Errorf("%v is the same job as another", set)
		} else {
			known = append(known, id)
		}
		if names := train.Frozen(b.Step); !slices.ContainsFunc(names, model.IsJudge) || len(names) != len(b.Frozen) {
			t.Errorf("%v: %d of the tensors %v", set, len(b.Frozen), names)
		}
		_ = b.Close()
	}
	for name, why := range map[string]string{"short": "8 positions", "classes": "2 classes", "foreign": "as token",
		"base": "config.json", "lower": "other rules", "shorter": "at most 8 tokens",
		"judge}, {kind: model, model: judge": "named twice"} {
		_, err := prepared("reward=[{kind: json}, {kind: model, model: " + name + "}]")
		var list *problem.ErrorList
		if !errors.As(err, &list) || !strings.Contains(list.Errors[0].Why, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	j, err := job.Load(at("job.yaml"), "reward=[{kind: model, model: nothing}]")
	if err == nil {
		err = j.CheckFiles()
	}
	if err == nil {
		t.Error("a reward model that is missing is taken")
	}
}
