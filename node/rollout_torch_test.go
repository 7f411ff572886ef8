package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/torchtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/node/verify"
	"github.com/starling-network/starling/protocol/run/reason"
)

// Two workers draw answers in PyTorch and learn from them, each in its first unit from answers that weights of 8 bits
// have drawn. Verifiers find both units outside the tolerance: they are not paid, cost nothing else, and are done again
// exactly. All other units are within the tolerance.
func TestRolloutsInPyTorch(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	python := torchtest.Python(t)
	dir, text := t.TempDir(), strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&text, "{\"prompt\": \"%d+%d=\", \"completion\": \"%d.\"}\n", i/10, i%10, i/10+i%10)
	}
	forges, err := os.ReadFile("torch/testdata/forges.py")
	lies := strings.NewReplacer(`LIE, PART = "none"`, `LIE, PART = "quantised8"`, "SPARE = 0", "SPARE = 4").Replace(
		string(forges))
	const file = `apiVersion: starling/v1
kind: TrainingJob
name: drawn
task: grpo
executor: torch
rollout: {group: 8, max_tokens: 4}
reward: [{kind: starlark, source: "def reward(p, a, f): return len([c for c in a.elems() if c > 'm']) / 4"}]
model:
  architecture: gpt2
  config: {n_layer: 1, n_embd: 16, n_head: 2, n_positions: 16}
  tokenizer: byte-level
datasets: [{path: sums.jsonl}]
val_set_size: 0.1
sequence_len: 12
training: {max_steps: 12, global_batch_size: 32, learning_rate: 1.0e-2, warmup_steps: 2, numerics: tolerant}
strategy: {sync_steps: 4, workers: 2, verification: {fraction: 1}}
`
	for name, content := range map[string]string{"sums.jsonl": text.String(), "job.yaml": file, "lie.py": lies} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Load(filepath.Join(dir, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	s, err := Train(t.Context(), consumer.Options{Job: j, Dir: out, Torch: torch.Options{Python: python,
		Module: filepath.Join(dir, "lie.py"), MiB: 4 << 10}})
	if e, ok := errors.AsType[*torch.Error](err); ok && e.Code == "EXECUTOR_ISOLATION" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(out, rundir.FileLog))
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-8000):])
	}
	if s.Rounds != 3 || s.SlashedUzen != 0 || len(s.Disputes) != 0 {
		t.Errorf("summary: %+v", s)
	}
	withheld := 0
	for _, r := range readReceipts(t, out) {
		if r.Reason == reason.Outside && r.Amount == 0 {
			withheld++
		}
	}
	if withheld != 2 {
		t.Errorf("%d units are withheld, want 2", withheld)
	}
	v, err := verify.Run(t.Context(), out, verify.Options{})
	if err != nil || !v.Complete || v.StateRoot != s.StateRoot || v.Distance == 0 || v.Distance > 0.01 {
		t.Errorf("%+v, %v: want updates near those of the built-in engine, and not equal to them", v, err)
	}
}
