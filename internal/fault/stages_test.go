package fault

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// stages makes the jobs that follow ones whose model is cut into two stages, of two replicas, with further keys of
// their section.
func (n *network) stages(further string) {
	n.t.Helper()
	dir := n.t.TempDir()
	n.file = filepath.Join(dir, "job.yaml")
	for name, text := range map[string]string{
		"data.txt": strings.Repeat("the quick brown fox jumps over the lazy dog. ", 400),
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
model: {architecture: gpt2, config: {n_layer: 2, n_embd: 32, n_head: 2, n_positions: 32, vocab_size: 256,
  tie_word_embeddings: false}, tokenizer: byte-level}
datasets: [{path: data.txt, format: text}]
val_set_size: 0.1
sequence_len: 32
training: {max_steps: 8, global_batch_size: 8, learning_rate: 3.0e-3}
parallel: {stages: 2, replicas: 2, microbatches: 2` + further + `}
strategy: {method: diloco, sync_steps: 4, verification: {fraction: 1}}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	n.units, n.set = 4, nil
	n.undo = []string{"--set", "parallel=null", "--set", "strategy.workers=2",
		"--set", "strategy.optimizer_state_rounds=1", "--set", "training.gradient_accumulation_steps=2",
		"--set", "strategy.verification.screen=off"}
}

// TestStages trains a model in stages on processes, with a worker that sends false gradients, and kills another worker
// in the middle of a unit. The liar loses stake, and the model is that of an undisturbed run whose model is not cut.
func TestStages(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("lies-backward")
	n.invite(liars)
	n.stages("")
	n.disturb("stages", liars)
}

// TestLateStages is TestStages of stages that do not wait for each other between steps, with a worker that sends false
// activations. The model is that of an undisturbed run of such stages.
func TestLateStages(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("lies-forward")
	n.invite(liars)
	n.stages(", schedule: asynchronous, delay: 2")
	n.undo = nil
	n.disturb("late-stages", liars)
}

// TestSkippedStages is TestStages of a model in four stages: each microbatch leaves out the second or the third.
// The model is that of an undisturbed run of such stages.
func TestSkippedStages(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("lies-backward")
	n.invite(liars)
	n.stages("")
	n.set = []string{"--set", "parallel={stages: 4, microbatches: 4, skip: 0.25}", "--set", "model.config.n_layer=6"}
	n.undo = nil
	n.disturb("skipped-stages", liars)
}

// disturb plays a job in stages with liars, and kills a worker in the middle of a unit.
func (n *network) disturb(name string, liars []liar) {
	n.t.Helper()
	const rounds = 8
	j := n.order(name, rounds)
	var victim *process
	s := j.until("a worker in the middle of a unit", func(s run.State) bool {
		if s.Round < 3 || s.Phase != progress.Train {
			return false
		}
		for _, w := range n.workers {
			if slices.ContainsFunc(s.Units, func(u *work.Unit) bool {
				return u.Status == work.Assigned && u.Worker == w.address
			}) {
				victim = w
			}
		}
		return victim != nil
	})
	victim.kill()
	n.t.Logf("%s is killed in round %d", victim.name, s.Round)
	j.verdict(liars)
	n.t.Log(j.pace())
}
