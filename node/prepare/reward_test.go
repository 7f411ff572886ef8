package prepare

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
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

// Rules reward the text of answers: each of their keys changes the work, a source in a file is that in the job, and
// what cannot be computed is refused at its place.
func TestRewardRules(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	const source = "def reward(prompt, answer, fields):\n    return len(answer) / fields['m']\n"
	for name, text := range map[string]string{
		"facts.jsonl":  strings.Repeat(`{"prompt": "a+b=", "m": 4, "s": "c, d", "x": 0}`+"\n", 40),
		"words.jsonl":  strings.Repeat(`{"prompt": "a + b = ", "completion": "c and d, of course."}`+"\n", 40),
		"reward.star":  source,
		"wrong.star":   "def reward(prompt, answer, fields):\n    return fields['l']\n",
		"endless.star": "def reward(prompt, answer, fields):\n    return len([i for i in range(1 << 30)])\n",
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
task: grpo
rollout: {group: 4, max_tokens: 4, stop: "."}
reward:
  - {kind: exact, field: s}
  - {kind: starlark, file: reward.star}
model: {base_model: ./base}
datasets: [{path: facts.jsonl, reward_fields: [m, s]}]
val_set_size: 0.2
sequence_len: 32
training: {max_steps: 8, global_batch_size: 8}
strategy: {sync_steps: 4}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	prepared := func(set ...string) (*CompiledJob, error) {
		t.Helper()
		j, err := job.Load(filepath.Join(dir, "job.yaml"), set...)
		if err != nil {
			t.Fatal(set, err)
		}
		return New(j)
	}
	digest := func(set ...string) canon.Digest {
		t.Helper()
		b, err := prepared(set...)
		if err != nil {
			t.Fatal(set, err)
		}
		defer b.Close()
		return b.Spec.Program
	}
	plain := digest()
	inline, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	if digest("reward=[{kind: exact, field: s}, {kind: starlark, source: "+string(inline)+"}]") != plain {
		t.Error("a source in the job is another than the same one in a file")
	}
	for _, set := range []string{"reward.0.weight=2", "reward.0.kind=prefix", "reward.0.kind=numeric",
		"reward.1.step_limit=60000", "rollout.stop=d", "reward=[{kind: length, max_length: 3}]", "reward=[{kind: json}]",
		"reward=[{kind: regex, pattern: a}]", "datasets.0.reward_fields=[m, s, x]"} {
		if set == "datasets.0.reward_fields=[m, s, x]" {
			b, err := prepared(set)
			if err != nil || b.Spec.Program != plain || b.Spec.Data.IsZero() {
				t.Errorf("%s: %v", set, err)
			}
			continue
		}
		if digest(set) == plain {
			t.Errorf("%s changes nothing", set)
		}
	}
	digest("datasets=[{path: words.jsonl}]", "reward=[{kind: contains}]") // longer than an answer that is drawn
	for set, says := range map[string]string{
		"rollout.stop=ab":                       "rollout.stop",
		"reward.1.file=wrong.star":              "no key l",
		"reward.1.file=endless.star":            "too costly",
		"datasets.0.reward_fields=[m, gone, s]": `"gone"`,
		"sequence_len=10":                       data.ErrAnswer.Error(),
	} {
		var list *problem.ErrorList
		if _, err := prepared(set); !errors.As(err, &list) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
