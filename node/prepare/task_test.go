package prepare

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/jobtest"
)

// A job of preferences begins at ln 2 on held-out pairs, whether an adapter or the whole model is trained, and reads
// the base model as its reference.
func TestPreferences(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	pair := `{"prompt": "a + b = ", "chosen": "c", "rejected": "no"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "pairs.jsonl"), []byte(strings.Repeat(pair, 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(path, []byte(`apiVersion: starling/v1
kind: TrainingJob
task: dpo
model: {base_model: ./base}
datasets: [{path: pairs.jsonl}]
val_set_size: 0.2
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]string{"whole": "model.adapter=null", "adapter": "model.adapter={lora: {r: 2}}"} {
		j, err := job.Load(path, set)
		if err != nil {
			t.Fatal(name, err)
		}
		b, err := New(j)
		if err != nil {
			t.Fatal(name, err)
		}
		defer b.Close()
		references := 0
		for _, n := range train.Frozen(b.Step) {
			if strings.HasPrefix(n, model.Reference) {
				references++
			}
		}
		held := b.Corpus.ValBatches(b.EvalBatch, int(b.Spec.Length), 1)
		if whole := name == "whole"; whole != (references > 0) || b.Spec.Length != 32 || len(held) == 0 {
			t.Errorf("%s: %d references, rows of %d, %d batches held out", name, references, b.Spec.Length, len(held))
		}
		exec, err := cpu.Compile(b.Eval, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := b.EvalInputs(b.Genesis)
		in["tokens"] = tensor.FromI32(held[0], b.EvalBatch, int(b.Spec.Length)+1)
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		if loss := out["loss"].F32()[0]; math.Abs(float64(loss)-math.Ln2) > 1e-6 {
			t.Errorf("%s: the first loss is %v", name, loss)
		}
		j, err = job.Load(path, set, "dpo.beta=0.2")
		if err != nil {
			t.Fatal(name, err)
		}
		other, err := New(j)
		if err != nil {
			t.Fatal(name, err)
		}
		defer other.Close()
		if other.JobID() == b.JobID() {
			t.Errorf("%s: beta has no effect", name)
		}
	}
}
