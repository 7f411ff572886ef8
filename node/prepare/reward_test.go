package prepare

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/jobtest"
)

// A job of rewards draws answers in its step, and each key of rollouts and rewards changes its work. A prompt or an
// answer that is too long is refused.
func TestRewards(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sums.jsonl", strings.Repeat(`{"prompt": "a + b = ", "completion": "cd."}`+"\n", 40))
	write("long.jsonl", strings.Repeat(`{"prompt": "a + b = ", "completion": "c and d, of course."}`+"\n", 40))
	write("job.yaml", `apiVersion: starling/v1
kind: TrainingJob
task: grpo
rollout: {group: 4, max_tokens: 4}
model: {base_model: ./base}
datasets: [{path: sums.jsonl}]
val_set_size: 0.2
sequence_len: 16
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`)
	prepared := func(set ...string) (*CompiledJob, error) {
		t.Helper()
		j, err := job.Load(filepath.Join(dir, "job.yaml"), set...)
		if err != nil {
			t.Fatal(set, err)
		}
		return New(j)
	}
	b, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if dice := b.Step.InputShapes()["dice"]; !dice.Equal(tensor.Make(tensor.Int64, 3)) {
		t.Errorf("dice are %v", dice)
	}
	exec, err := cpu.Compile(b.Eval, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := b.EvalInputs(b.Genesis)
	in["tokens"] = tensor.FromI32(b.Corpus.ValBatches(b.EvalBatch, int(b.Spec.Length), 1)[0], b.EvalBatch,
		int(b.Spec.Length)+1)
	out, err := exec.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	loss, reward := out["loss"].F32()[0], out["reward"].F32()[0]
	if loss+reward != 1 || reward != out["accuracy"].F32()[0] {
		t.Errorf("a loss of %v, a reward of %v", loss, reward)
	}
	for _, set := range []string{"rollout.group=5", "rollout.max_tokens=5", "rollout.temperature=0.5", "reward.prefix=1",
		"rollout.kl=0.1", "reward={exact: 1, prefix: 3}", "model.adapter={lora: {r: 2}}", "training.micro_batch_size=1"} {
		other, err := prepared(set)
		if err != nil {
			t.Fatal(set, err)
		}
		if other.Spec.Program == b.Spec.Program {
			t.Errorf("%s changes nothing", set)
		}
		other.Close()
	}
	var list *problem.ErrorList
	deep := "model={architecture: gpt2, config: {n_layer: 12, n_embd: 16, n_head: 2, n_positions: 128}}"
	if _, err := prepared(deep, "sequence_len=128", "rollout.max_tokens=100"); !errors.As(err, &list) ||
		list.Errors[0].Code != problem.TooLarge || !strings.Contains(err.Error(), "rollout.max_tokens") {
		t.Errorf("answers of 100 tokens: %v", err)
	}
	if _, err := prepared("datasets=[{path: long.jsonl}]"); err == nil ||
		!strings.Contains(err.Error(), "long.jsonl: example 1: "+data.ErrAnswer.Error()) {
		t.Errorf("long answers: %v", err)
	}
}
