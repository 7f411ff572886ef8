package prepare

import (
	"errors"
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
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
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
