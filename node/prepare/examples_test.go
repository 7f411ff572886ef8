package prepare

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/jobtest"
)

// ring is a job with a graph of twenty nodes, of which the last has no class.
func ring(t *testing.T) (path string) {
	t.Helper()
	lines, rows := "", "source,target\n"
	for i := range 20 {
		name := string(rune('a' + i))
		lines += `{"id": "` + name + `", "label": ` + []string{`"x"`, `"y"`}[i%2] + `, "features": [1, ` +
			[]string{"0", "1"}[i%2] + "]}\n"
		rows += name + "," + string(rune('a'+(i+1)%20)) + "\n"
	}
	lines = strings.Replace(lines, `{"id": "t", "label": "y"`, `{"id": "t", "label": null`, 1)
	dir := t.TempDir()
	path = filepath.Join(dir, "job.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "nodes.jsonl"), []byte(lines), 0o644),
		os.WriteFile(filepath.Join(dir, "edges.csv"), []byte(rows), 0o644), os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
task: graph
model: {architecture: gcn, config: {hidden_sizes: [3]}}
datasets: [{path: "*.jsonl"}, {path: edges.csv}]
val_set_size: 0.3
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`), 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// The graph is frozen, and binds the job; nodes without a class are in it, and are no examples.
func TestGraph(t *testing.T) {
	path, ids := ring(t), map[string]string{}
	for _, set := range []string{"seed=42", "graph.directed=true", "model.architecture=sage"} {
		j, err := job.Load(path, set)
		if err != nil {
			t.Fatal(err)
		}
		outlined, err := Outline(j)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(j)
		if err != nil {
			t.Fatal(err)
		}
		if names := train.Frozen(b.Step); !slices.Equal(names, []string{"graph.source", "graph.target", "graph.weight",
			"graph.features"}) || len(b.Frozen) != 4 || b.Spec.Frozen.IsZero() || outlined.JobID() != b.JobID() {
			t.Errorf("%s: %q, root %s, %s and %s", set, names, b.Spec.Frozen, outlined.JobID(), b.JobID())
		}
		messages := map[string]int{"seed=42": 60, "graph.directed=true": 40, "model.architecture=sage": 40}[set]
		if got := b.Frozen[0].Shape.Dims[0]; got != messages {
			t.Errorf("%s: %d messages, want %d", set, got, messages)
		}
		train, val := b.Corpus.Train.Len()/nodes.RowTokens, b.Corpus.Val.Len()/nodes.RowTokens
		if train != 14 || val != 5 || b.EvalBatch != 4 {
			t.Errorf("%s: %d to train on, %d held out, %d at a time", set, train, val, b.EvalBatch)
		}
		exec, err := cpu.Compile(b.Eval, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := b.EvalInputs(b.Genesis)
		in["tokens"] = tensor.FromI32(b.Corpus.ValBatches(4, nodes.RowTokens, 1)[0], 4, nodes.RowTokens+1)
		out, err := exec.Run(in)
		if err != nil || !(math.Abs(float64(out["loss"].F32()[0])-math.Ln2) < 1) {
			t.Errorf("%s: loss %v, %v", set, out["loss"], err)
		}
		ids[b.JobID()] = set
	}
	if len(ids) != 3 {
		t.Errorf("jobs %v", ids)
	}
	var list *problem.ErrorList
	j, err := job.Load(path, "model.config={hidden_sizes: [0]}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(j); !errors.As(err, &list) || !strings.Contains(err.Error(), "hidden_sizes") {
		t.Errorf("%v", err)
	}
}

// A classifier of texts starts from scratch or from a base model, with an adapter or without one, and its settings
// make another job.
func TestTexts(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	path := filepath.Join(dir, "job.yaml")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(strings.Repeat(
		`{"text": "the fox", "label": "x", "kind": 2}`+"\n"+`{"text": "a dog, a cat", "label": "y", "kind": 2}`+"\n"+
			`{"text": "an owl", "label": "y", "kind": 1}`+"\n", 20)), 0o644), os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
task: classify
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 8, n_head: 2, n_positions: 16}}
datasets: [{path: a.jsonl}]
sequence_len: 8
val_set_size: 0.3
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`), 0o644)); err != nil {
		t.Fatal(err)
	}
	const base = "model={base_model: base, tokenizer: byte-level}"
	ids, scores := map[string]bool{}, map[float32]bool{}
	for _, set := range [][]string{{"seed=42"}, {"datasets=[{path: a.jsonl, label_field: kind}]"}, {"sequence_len=6"},
		{"training.precision=exact15"}, {base}, {base, "model.adapter={lora: {r: 2}}"},
		{base, "model.adapter={lora: {r: 2, dropout: 0.1}}", "model.load_in_4bit=true"}} {
		j, err := job.Load(path, set...)
		if err != nil {
			t.Fatal(set, err)
		}
		outlined, err := Outline(j)
		if err != nil {
			t.Fatal(set, err)
		}
		b, err := New(j)
		if err != nil {
			t.Fatal(set, err)
		}
		defer b.Close()
		defer outlined.Close()
		adapted := len(set) > 1
		if outlined.JobID() != b.JobID() || ids[b.JobID()] || b.Spec.Frozen.IsZero() == adapted ||
			(len(train.Frozen(b.Step)) > 0) != adapted || b.EvalBatch != 8 || b.Example != 1+j.SequenceLen {
			t.Errorf("%s: job %s, outlined %s, frozen %q", set, b.JobID(), outlined.JobID(), train.Frozen(b.Step))
		}
		ids[b.JobID()] = true
		exec, err := cpu.Compile(b.Eval, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := b.EvalInputs(b.Genesis)
		in["tokens"] = tensor.FromI32(b.Corpus.ValBatches(8, b.Example, 1)[0], 8, b.Example+1)
		out, err := exec.Run(in)
		if err != nil || !(math.Abs(float64(out["loss"].F32()[0])-math.Ln2) < 0.5) {
			t.Errorf("%s: loss %v, %v", set, out["loss"], err)
		}
		weights, err := b.Weights(b.Genesis)
		if err != nil || len(weights) != len(b.Model.Tensors()) {
			t.Fatalf("%s: %d weights, %v", set, len(weights), err)
		}
		scores[weights[textclass.ScoreName].F32()[0]] = true
	}
	if len(ids) != 7 || len(scores) < 3 {
		t.Errorf("jobs %v, scores %v", ids, scores)
	}
	for _, c := range []struct {
		set  []string
		want string
	}{{[]string{"sequence_len=17"}, "17 tokens against 16"},
		{[]string{"model.config.vocab_size=200"}, "256 ids, the model 200"},
		{[]string{"model.config.n_head=3"}, "n_head"}, {[]string{"val_set_size=0.01"}, "too little data to evaluate"},
		{[]string{base, "model.architecture=gpt2"}, "it is llama, the job says gpt2"},
		{[]string{base, "model.adapter={lora: {target_modules: [c_attn]}}"}, "c_attn"},
		{[]string{"datasets=[{path: a.jsonl, label_field: none}]"}, "no field \"none\""}} {
		j, err := job.Load(path, c.set...)
		if err != nil {
			t.Fatal(c.set, err)
		}
		var list *problem.ErrorList
		if _, err := New(j); !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// An encoder of texts starts from scratch or from a base model, with an adapter or without one, and its settings make
// another job.
func TestPairs(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	path := filepath.Join(dir, "job.yaml")
	var lines strings.Builder
	rows := "positive,anchor,other\n"
	for i := range 60 {
		fmt.Fprintf(&lines, "{\"anchor\": \"where is %d\", \"positive\": \"%d is at home\", \"other\": \"%d\"}\n", i, i, i/2)
		rows += fmt.Sprintf("%d is at home,where is %d,%d\n", i, i, i/2)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte(lines.String()), 0o644),
		os.WriteFile(filepath.Join(dir, "rows.csv"), []byte(rows), 0o644), os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
task: embed
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 8, n_head: 2, n_positions: 16}}
datasets: [{path: a.jsonl}]
sequence_len: 12
val_set_size: 0.3
training: {max_steps: 8, global_batch_size: 16}
strategy: {sync_steps: 4}
`), 0o644)); err != nil {
		t.Fatal(err)
	}
	const base = "model={base_model: base, tokenizer: byte-level}"
	ids := map[string]bool{}
	for _, set := range [][]string{{"seed=42"}, {"datasets=[{path: a.jsonl, positive_field: other}]"}, {"sequence_len=10"},
		{"embed.temperature=0.1"}, {"training.precision=exact15"}, {"training.precision=bf16"},
		{"model.tokenizer={train: {type: bpe, vocab_size: 270}}"}, {base}, {base, "model.adapter={lora: {r: 2}}"},
		{base, "model.adapter={lora: {r: 2, dropout: 0.1}}", "model.load_in_4bit=true"}} {
		j, err := job.Load(path, set...)
		if err != nil {
			t.Fatal(set, err)
		}
		outlined, err := Outline(j)
		if err != nil {
			t.Fatal(set, err)
		}
		b, err := New(j)
		if err != nil {
			t.Fatal(set, err)
		}
		defer b.Close()
		defer outlined.Close()
		adapted := len(set) > 1
		if outlined.JobID() != b.JobID() || ids[b.JobID()] || b.Spec.Frozen.IsZero() == adapted ||
			(len(train.Frozen(b.Step)) > 0) != adapted || b.EvalBatch != 17 || b.Example != 2+2*j.SequenceLen {
			t.Errorf("%s: job %s, outlined %s, frozen %q, %d pairs at a time", set, b.JobID(), outlined.JobID(),
				train.Frozen(b.Step), b.EvalBatch)
		}
		ids[b.JobID()] = true
		exec, err := cpu.Compile(b.Eval, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := b.EvalInputs(b.Genesis)
		in["tokens"] = tensor.FromI32(b.Corpus.ValBatches(17, b.Example, 1)[0], 17, b.Example+1)
		out, err := exec.Run(in)
		if loss := float64(out["loss"].F32()[0]); err != nil || !(loss > 0.5 && loss < 20) {
			t.Errorf("%s: loss %v, %v", set, loss, err)
		}
		weights, err := b.Weights(b.Genesis)
		if err != nil || len(weights) != len(b.Model.Tensors()) {
			t.Fatalf("%s: %d weights, %v", set, len(weights), err)
		}
	}
	load := func(set ...string) string {
		t.Helper()
		j, err := job.Load(path, set...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Outline(j)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		return b.JobID()
	}
	if !ids[load("datasets=[{path: rows.csv}]")] {
		t.Error("the rows of CSV are other pairs")
	}
	const bpe = "model.tokenizer={train: {type: bpe, vocab_size: 270}}"
	if !ids[load("datasets=[{path: rows.csv}]", bpe)] {
		t.Error("a tokenizer that is trained on rows of CSV has seen other texts")
	}
	for _, c := range []struct {
		set  []string
		want string
	}{{[]string{"sequence_len=17"}, "17 tokens against 16"}, {[]string{"sequence_len=1"}, "there are 1 anchors"},
		{[]string{"model.config.vocab_size=200"}, "256 ids, the model 200"},
		{[]string{"val_set_size=0.01"}, "too little data to evaluate"},
		{[]string{base, "model.architecture=gpt2"}, "it is llama, the job says gpt2"},
		{[]string{"datasets=[{path: a.jsonl, positive_field: none}]"}, "no field \"none\""}} {
		j, err := job.Load(path, c.set...)
		if err != nil {
			t.Fatal(c.set, err)
		}
		var list *problem.ErrorList
		if _, err := New(j); !errors.As(err, &list) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// A network that draws images has its keys, and images need no class.
func TestDiffusion(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
task: diffusion
model: {architecture: mlp, config: {hidden_sizes: [8]}}
datasets: [{path: "*.png"}]
val_set_size: 0.3
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		m := image.NewGray(image.Rect(0, 0, 4, 3))
		m.SetGray(i%4, i%3, color.Gray{Y: uint8(4 * i)})
		var file bytes.Buffer
		if err := errors.Join(png.Encode(&file, m),
			os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.png", i)), file.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[string]bool{}
	for _, set := range [][]string{{"seed=42"}, {"diffusion.timesteps=100"}, {"training.dropout=0.1"},
		{"training.micro_batch_size=1"}, {"model={architecture: cnn, config: {conv_channels: [3]}}"}} {
		j, err := job.Load(path, set...)
		if err != nil {
			t.Fatal(set, err)
		}
		b, err := New(j)
		if err != nil {
			t.Fatal(set, err)
		}
		defer b.Close()
		if ids[b.JobID()] || b.Example != 12 || b.EvalBatch != 32 || b.Tokenizer != nil {
			t.Errorf("%s: job %s", set, b.JobID())
		}
		ids[b.JobID()] = true
	}
	j, err := job.Load(path, "model.config={conv_channels: [3]}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(j); err == nil || !strings.Contains(err.Error(), "conv_channels") {
		t.Errorf("%v", err)
	}
}
