package prepare

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/train"
)

const outlined = `apiVersion: starling/v1
kind: TrainingJob
name: outline
model:
  architecture: llama
  config: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1,
    intermediate_size: 16, max_position_embeddings: 16}
  tokenizer: byte-level
datasets: [{path: data.txt, format: text}]
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8, learning_rate: 1.0e-3}
strategy: {sync_steps: 4}
budget: {max_cost: 2000000}
`

func outlinedJob(t *testing.T, set ...string) *job.Job {
	t.Helper()
	dir := t.TempDir()
	text := []byte(strings.Repeat("the quick brown fox. ", 2000))
	path := filepath.Join(dir, "job.yaml")
	for name, b := range map[string][]byte{"data.txt": text, "job.yaml": []byte(outlined)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j, err := job.Load(path, set...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// An outline has the identifiers of the job, and whatever the first checkpoint depends on changes them.
func TestOutline(t *testing.T) {
	of := func(set ...string) (job, plan string) {
		t.Helper()
		b, err := Outline(outlinedJob(t, set...))
		if err != nil {
			t.Fatal(err)
		}
		return b.JobID(), b.PlanID()
	}
	b, err := New(outlinedJob(t))
	if err != nil {
		t.Fatal(err)
	}
	id, plan := of()
	if id != b.JobID() || plan != b.PlanID() {
		t.Errorf("the outline is %s, %s; the job %s, %s", id, plan, b.JobID(), b.PlanID())
	}
	for _, set := range []string{"seed=3", "model.config.initializer_range=0.01", "model.config.hidden_size=32",
		"strategy.outer_optimizer.lr=0.3"} {
		if other, _ := of(set); other == id {
			t.Errorf("with %s it has the same identifier", set)
		}
	}
}

// The folder of a run that is named after the bytes of its first checkpoint is still that of the job.
func TestNameAfterTheFirstCheckpoint(t *testing.T) {
	b, err := New(outlinedJob(t))
	if err != nil {
		t.Fatal(err)
	}
	old := idOf(b.Spec)
	if old == b.JobID() || !b.Is(old) || b.JobID() != old {
		t.Errorf("a run of the name %s is that of another job, %s", old, b.JobID())
	}
}

// A unit of more operations than can be counted is refused: its price would be that of the overflowed count.
func TestUnitsThatCannotBeCounted(t *testing.T) {
	_, err := Outline(outlinedJob(t, "model.config={hidden_size: 10240, num_hidden_layers: 80, num_attention_heads: 80, "+
		"num_key_value_heads: 8, intermediate_size: 35840, max_position_embeddings: 4096, vocab_size: 128256}",
		"sequence_len=4096", "val_set_size=0", "training.global_batch_size=1024", "training.max_steps=1000",
		"strategy.sync_steps=500", "strategy.workers=8", "budget.max_cost=2000000000"))
	var list *problem.ErrorList
	if !errors.As(err, &list) || list.Errors[0].Code != problem.TooLarge ||
		!strings.Contains(err.Error(), "sync_steps") {
		t.Errorf("refused with %v", err)
	}
}

// The plan of a model of a hundred billion parameters makes none of them.
func TestOutlineOfAnySize(t *testing.T) {
	for name, set := range map[string][]string{
		"7 B": {"model.config={hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: 32, " +
			"num_key_value_heads: 8, " +
			"intermediate_size: 14336, max_position_embeddings: 4096, vocab_size: 128256}"},
		"100 B": {"model.config={hidden_size: 10240, num_hidden_layers: 80, num_attention_heads: 80, " +
			"num_key_value_heads: 8, " +
			"intermediate_size: 35840, max_position_embeddings: 4096, vocab_size: 128256}"},
	} {
		j := outlinedJob(t, append(set, "sequence_len=4096", "val_set_size=0", "strategy.workers=8",
			"budget.max_cost=2000000000")...)
		if _, err := Outline(j); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The base model of an adapter is frozen where it lies in its files.
func TestBaseModelIsMapped(t *testing.T) {
	j := outlinedJob(t)
	c, err := architecture.Parse(architecture.Llama, map[string]any{"hidden_size": 512, "num_hidden_layers": 1,
		"num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 512, "max_position_embeddings": 16, "vocab_size": 512})
	if err != nil {
		t.Fatal(err)
	}
	weights := c.Init(3)
	files, err := (&folder.Model{Config: c, Tensors: weights}).Files(folder.DefaultShardBytes)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(j.Dir(), "base")
	if err := os.Mkdir(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var text bytes.Buffer
		if err := f.Write(&text); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, f.Name), text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(j.Dir(), "tune.yaml")
	text := regexp.MustCompile(`(?s)  architecture: .*?  tokenizer: byte-level\n`).ReplaceAllString(outlined,
		"  base_model: base\n  adapter: {lora: {r: 2}}\n")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if j, err = job.Load(path); err != nil {
		t.Fatal(err)
	}
	b, err := New(j)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range train.Frozen(b.Step) {
		if b.Frozen[i].Root() != weights[n].Root() {
			t.Errorf("%s is not that of the base", n)
		}
	}
	if b.Spec.Frozen != train.FrozenRoot(train.Roots(b.Frozen)) {
		t.Error("the specification freezes other tensors")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A job has the version of the numerics that its network asks for, in all its programs, and another identifier in each.
// A version that this build does not compute is refused.
func TestNumericsOfAJob(t *testing.T) {
	ids := map[string]uint32{}
	for given, want := range map[uint32]uint32{0: kernel.Version1, 1: kernel.Version1, 2: kernel.Version2} {
		j := outlinedJob(t)
		j.Numerics = given
		b, err := Outline(j)
		if err != nil {
			t.Fatal(err)
		}
		if b.Spec.Numerics != want || b.Step.Numerics != want || b.Eval.Numerics != want {
			t.Errorf("asked for %d: the job has %d, %d and %d", given, b.Spec.Numerics, b.Step.Numerics, b.Eval.Numerics)
		}
		ids[b.JobID()] = want
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("two versions have the identifiers %v", ids)
	}
	j := outlinedJob(t)
	j.Numerics = kernel.Newest + 1
	if _, err := Outline(j); !errors.Is(err, kernel.ErrVersion) {
		t.Errorf("an unknown version: %v", err)
	}
}
