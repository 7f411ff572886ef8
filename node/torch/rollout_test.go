package torch

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/node/prepare"
)

// drawing are the keys of a job whose workers draw answers and learn from them.
const drawing = `task: grpo
executor: torch
rollout: {group: 8, max_tokens: 3}
reward: {exact: 1, prefix: 1}
training: {max_steps: 20, global_batch_size: 32, learning_rate: 1.0e-3, numerics: tolerant}
`

// shown are those of one that shows right answers to the same model.
const shown = `task: sft
training: {max_steps: 600, global_batch_size: 32, learning_rate: 3.0e-3, warmup_steps: 10}
`

// answering is a job with some keys, whose model has learnt to give some right answers.
func answering(t *testing.T, keys string) (*train.Task, *train.Checkpoint) {
	t.Helper()
	before, genesis := sums(t, shown, 300)
	r, err := before.Run(genesis, 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	task, base := sums(t, keys, 10)
	copy(base.Params, r.End)
	return task, base
}

// sums is a job about sums of one digit, with some keys and a number of steps of a unit.
func sums(t *testing.T, keys string, steps int) (*train.Task, *train.Checkpoint) {
	t.Helper()
	dir, text := t.TempDir(), strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&text, "{\"prompt\": \"%d+%d=\", \"completion\": \"%d.\"}\n", i/10, i%10, i/10+i%10)
	}
	file := fmt.Sprintf(`apiVersion: starling/v1
kind: TrainingJob
name: sums
%smodel:
  architecture: llama
  config: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2,
    intermediate_size: 64, max_position_embeddings: 32}
  tokenizer: byte-level
datasets: [{path: sums.jsonl}]
sequence_len: 12
strategy: {method: fedavg, sync_steps: %d, workers: 2}
`, keys, steps)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(file), 0o644),
		os.WriteFile(filepath.Join(dir, "sums.jsonl"), []byte(text.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	exec, err := cpu.Compile(b.Step, kernel.Cores)
	if err != nil {
		t.Fatal(err)
	}
	return &train.Task{Spec: b.Spec, Step: b.Step, Exec: exec, Corpus: b.Corpus, Frozen: b.Frozen}, b.Genesis
}

// forger writes a step that learns from forged answers: of a part of all answers of a step, or at least one; in all
// steps, or (above 0) in a number of them.
func forger(t *testing.T, lie string, part float64, steps int) string {
	t.Helper()
	text, err := os.ReadFile("testdata/forges.py")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "step.py")
	lies := strings.NewReplacer(`LIE, PART = "none", 1.0`, fmt.Sprintf("LIE, PART = %q, %v", lie, part), "SPARE = 0",
		fmt.Sprintf("SPARE = %d", steps)).Replace(string(text))
	if err := os.WriteFile(path, []byte(lies), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A worker that draws its answers in PyTorch draws those of the built-in engine, and its update is within the
// tolerance. The update of one that learns from other answers is outside.
func TestDrawnInPyTorch(t *testing.T) {
	o := options(t)
	task, base := answering(t, drawing)
	want, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lie    string
		part   float64
		steps  int // in which it lies; 0: all
		within bool
	}{{"none", 1, 0, true}, {"other seed", 1, 0, false}, {"other model", 1, 0, false}, {"bfloat16", 1, 0, true},
		{"quantised8", 1, 0, false}, {"quantised4", 1, 0, false}, {"edited", 1, 0, false}, {"edited", 0.1, 0, false},
		{"edited", 0.02, 0, false}, {"edited", 0, 0, false}, {"edited", 1, 1, false}, {"edited", 0, 1, true}} {
		if !*long && c.lie != "quantised8" { // TestGradedForPyTorch has an honest worker
			continue
		}
		o := o
		o.Module = forger(t, c.lie, c.part, c.steps)
		x := New(t.Context(), o, task)
		got, err := task.RunOn(x, base, 1, nil)
		x.Close()
		if unless(t, err); err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i := range want.Losses {
			worst = max(worst, math.Abs(float64(got.Losses[i])-float64(want.Losses[i])))
		}
		like := screen.Compare(got.Delta, want.Delta)
		t.Logf("%-12s of %-4v in %d steps: loss %.4f to %.4f, differs by %.2g, distance %.4g, cosine %.6f", c.lie, c.part,
			c.steps, got.Losses[0], got.Losses[len(got.Losses)-1], worst, like.Distance, like.Cosine)
		if within := like.Distance <= 0.1 && like.Cosine >= 0.99; within != c.within {
			t.Errorf("%s of %v: within the tolerance: %t", c.lie, c.part, within)
		}
	}
}

// PyTorch draws the tokens that the built-in engine draws: no update of an honest worker is outside the tolerance.
func TestDrawnInPyTorchAreTheSame(t *testing.T) {
	if !*long {
		t.Skip("it takes a minute: run it with -long")
	}
	o := options(t)
	task, base := answering(t, drawing)
	x := New(t.Context(), o, task)
	defer x.Close()
	worst, tokens := 0.0, 0
	for task.Spec.Seed = range uint64(10) {
		got, err := task.RunOn(x, base, 1, nil)
		if unless(t, err); err != nil {
			t.Fatal(err)
		}
		want, err := task.Run(base, 1, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, screen.Compare(got.Delta, want.Delta).Distance)
		tokens += int(task.Spec.Steps*task.Spec.Batch) * 8 * 3
	}
	t.Logf("%d tokens: the largest distance is %.2g", tokens, worst)
	if worst > 1e-3 {
		t.Errorf("an honest update is at a distance of %v", worst)
	}
}

// Rewards by rules, and by a function of the job's author, are computed by the worker: the child asks for them.
func TestGradedForPyTorch(t *testing.T) {
	o := options(t)
	task, base := answering(t, strings.Replace(drawing, "{exact: 1, prefix: 1}", `
  - {kind: numeric}
  - {kind: starlark, source: "def reward(p, a, f): return len(a) / 8"}`, 1))
	worst, like, r := parity(t, o, task, base)
	t.Logf("loss %.4f to %.4f, differs by %.2g, distance %.4g", r.Losses[0], r.Losses[len(r.Losses)-1], worst,
		like.Distance)
	if worst > lossParity || like.Distance > 1e-3 || r.Losses[0] == 1 {
		t.Error("these are not the rewards of the built-in engine")
	}
}

// A child that asks for a reward that there is none of, or for rewards without an end, is ended.
func TestAChildThatAsksForRewards(t *testing.T) {
	task, base := sums(t, strings.Replace(drawing, "{exact: 1, prefix: 1}", "[{kind: numeric}]", 1), 10)
	const step = "import os, struct\ndef step(task, state, batch):\n    while True:\n        body = b'%s'\n" +
		"        os.write(4, struct.pack('<I', len(body)) + body)\n        os.read(3, 1 << 16)\n"
	op := layoutOf(task).Grades[0].Op
	for body, says := range map[string]string{fmt.Sprintf(`{"type":"grade","op":%d}`, op): "again and again",
		`{"type":"grade","op":1}`: "no reward"} {
		x := New(t.Context(), bare(t, fmt.Sprintf(step, body)), task)
		state, err := task.Begin(base, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = x.Begin(state.Tensors())
		if unless(t, err); err == nil {
			_, err = x.Step(make([]int32, 32*13), task.Spec.Dice(0, 0, 0), 1, 1, 1)
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != codeProtocol || !strings.Contains(e.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		x.Close()
	}
}
