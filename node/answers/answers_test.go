package answers

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
)

// The answers of a step are those that its loss is of, with the rewards that the rules give their texts.
func TestAnswersOfTheFirstStep(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteBase(t, filepath.Join(dir, "base"))
	for name, text := range map[string]string{
		"sums.jsonl": strings.Repeat(`{"prompt": "a+b=", "completion": "ab"}`+"\n", 20) +
			strings.Repeat(`{"prompt": "b+c=", "completion": "bc"}`+"\n", 20),
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
task: grpo
rollout: {group: 4, max_tokens: 3}
reward: [{kind: starlark, source: "def reward(p, a, f): return len([c for c in a.elems() if c > 'm']) / 4"}]
model: {base_model: ./base}
datasets: [{path: sums.jsonl}]
val_set_size: 0.2
sequence_len: 12
training: {max_steps: 8, global_batch_size: 16}
strategy: {sync_steps: 4, workers: 2}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	of := func(set ...string) (*prepare.CompiledJob, Groups) {
		t.Helper()
		j, err := job.Load(filepath.Join(dir, "job.yaml"), set...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepare.New(j)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		a, err := Of(b, b.Genesis, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return b, a
	}
	b, a := of()
	mean, equal := 0.0, 0
	for _, g := range a {
		if len(g.Texts) != 4 || g.Prompt != "a+b=" && g.Prompt != "b+c=" {
			t.Fatalf("%+v", g)
		}
		if g.Rewards[0] == g.Rewards[1] && g.Rewards[1] == g.Rewards[2] && g.Rewards[2] == g.Rewards[3] {
			equal++
		}
		for i, text := range g.Texts {
			n := 0
			for _, c := range []byte(text) {
				if c > 'm' {
					n++
				}
			}
			if g.Rewards[i] != float64(n)/4 {
				t.Errorf("%q has the reward %v", text, g.Rewards[i])
			}
			mean += g.Rewards[i] / 4 / 8
		}
	}
	if len(a) != 8 || a.Equal() != float64(equal)/8 {
		t.Errorf("%d groups, of which %v are equal and not %d", len(a), a.Equal(), equal)
	}
	x, err := cpu.Compile(b.Step.Only("loss"), 1)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]int32, 8*13)
	if err := b.Corpus.Batch(rows, b.Spec.Address(1, 0, 0), 12); err != nil {
		t.Fatal(err)
	}
	in := b.EvalInputs(b.Genesis)
	in["tokens"], in["dice"] = tensor.FromI32(rows, 8, 13), b.Spec.Dice(1, 0, 0)
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if loss := float64(out["loss"].F32()[0]); math.Abs(loss-(1-mean)) > 1e-6 {
		t.Errorf("the loss is %v, and the mean reward %v", loss, mean)
	}
	m := a.Measured(b, 1)
	if math.Abs(m["drawn_reward"]-mean) > 1e-6 || m["answer_length"] <= 0 || m["answer_length"] > 3 || len(m) != 3 {
		t.Errorf("measured %v, a mean reward of %v", m, mean)
	}
	if b, a := of("reward={exact: 1}", "rollout.kl=0.1"); len(a) != 8 || len([]rune(a[0].Texts[0])) > 3 ||
		a.Measured(b, 1)["kl"] != 0 { // the reference is the model of the first round
		t.Errorf("%+v, %v", a, a.Measured(b, 1))
	}
	b, a = of("strategy.method=fedavg", "rollout.staleness=2")
	if m := a.Measured(b, 1); m["staleness"] != 1 || a.Measured(b, 4)["staleness"] != 2 {
		t.Errorf("measured %v", m)
	}
}
