// Package jobtest makes jobs and base models that train in seconds, for tests. It starts no network and trains nothing.
package jobtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
)

// Small writes a job that trains in seconds: three workers, three rounds of four steps.
func Small(t *testing.T) *job.Job {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&text, "line %d: the bird sings %d times.\n", i, i%7)
	}
	file := `apiVersion: starling/v1
kind: TrainingJob
name: small
model:
  architecture: gpt2
  config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}
  tokenizer: byte-level
datasets: [{path: text.txt, format: text}]
val_set_size: 0.05
sequence_len: 16
training: {max_steps: 12, global_batch_size: 6, learning_rate: 1.0e-2, warmup_steps: 2}
strategy: {sync_steps: 4, workers: 3, optimizer_state_rounds: 1, verification: {fraction: 0.5}}
checkpoint: {keep_last: 2}
`
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(file), 0o644)); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// CheckMetrics reports records of training that lack a gradient norm, or rounds that lack an agreement of their
// updates.
func CheckMetrics(t *testing.T, metrics []api.Metric) {
	t.Helper()
	if len(metrics) == 0 {
		t.Error("there are no metrics")
	}
	for _, m := range metrics {
		trained, round := m.Round > 0, m.Round > 0 && m.Kind == "round"
		if trained != (m.GradNorm != nil) || trained && !(*m.GradNorm > 0) || round != (m.Agreement != nil) || round &&
			!(*m.Agreement > 0 && *m.Agreement <= 1) {
			t.Errorf("%s %d of round %d: gradient norm %v, agreement %v", m.Kind, m.Step, m.Round, m.GradNorm, m.Agreement)
		}
		if bits := m.BitsPerByte; (bits != nil) != (m.EvalLoss != nil) || bits != nil && !(*bits > 0 &&
			*bits < *m.EvalLoss*2) {
			t.Errorf("round %d: eval loss %v and %v bits a byte", m.Round, m.EvalLoss, bits)
		}
	}
}

// WriteReward writes the folder of a small reward model with the tokens of WriteBase, for texts of up to positions
// tokens. Its weights are drawn from the seed.
func WriteReward(t *testing.T, dir string, positions int, seed uint64, labels ...string) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 256, "hidden_size": 16,
		"max_position_embeddings": positions, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2})
	if err != nil {
		t.Fatal(err)
	}
	n, err := textclass.New(c, append(labels, "LABEL_0"), positions, 256)
	if err != nil {
		t.Fatal(err)
	}
	writeModel(t, dir, n.Tensors(), n.Begin(nil, seed), map[string][]byte{"config.json": n.JSON(),
		"tokenizer.json": tokenizer.Bytes().JSON()})
}

// WriteBase writes the folder of a small Llama with a chat template, as a base model to tune.
func WriteBase(t *testing.T, dir string) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama,
		map[string]any{"vocab_size": 256, "max_position_embeddings": 32, "hidden_size": 16, "intermediate_size": 24,
			"num_hidden_layers": 1, "num_attention_heads": 2})
	if err != nil {
		t.Fatal(err)
	}
	template := []byte(`{"chat_template": "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% ` +
		`endfor %}{% if add_generation_prompt %}<assistant>{% endif %}", "eos_token": "\\n"}`)
	writeModel(t, dir, c.Tensors(), c.Init(3), map[string][]byte{"tokenizer_config.json": template,
		"config.json": c.JSON(), "tokenizer.json": tokenizer.Bytes().JSON()})
}

// writeModel writes the folder of a model with some files besides its weights.
func writeModel(t *testing.T, dir string, list []architecture.Named, tensors map[string]*tensor.Tensor,
	files map[string][]byte) {
	t.Helper()
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	var weights bytes.Buffer
	if err := safetensors.EncodeAs(&weights, names, tensors, nil, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files["model.safetensors"] = weights.Bytes()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
