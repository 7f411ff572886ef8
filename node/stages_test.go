package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/verify"
)

// staged is the example of stages, shorter.
func staged(t *testing.T, set ...string) *job.Job {
	t.Helper()
	j, err := job.Load("../examples/pipeline.yaml", append([]string{"training.max_steps=6", "strategy.sync_steps=3",
		"training.warmup_steps=1", "eval.every_steps=6", "checkpoint.every_steps=6", "training.global_batch_size=8",
		"sequence_len=32", "model.config.n_layer=2", "model.config.n_embd=32"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A model whose stages are units of their own has the bits of the model that is not cut, also when a stage lies, which
// loses its stake.
func TestStagesAreUnits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := mustTrain(t, consumer.Options{Dir: filepath.Join(dir, "whole"), Job: staged(t, "parallel=null",
		"strategy.workers=1", "strategy.optimizer_state_rounds=1", "training.gradient_accumulation_steps=4")})
	liars := []int{1}
	if *long {
		liars = []int{1, 0}
	}
	for _, n := range liars {
		out := filepath.Join(dir, fmt.Sprint(n))
		s := mustTrain(t, consumer.Options{Dir: out, Dishonest: n, Job: staged(t, "parallel.replicas=1")})
		if s.StateRoot != whole.StateRoot || s.FinalEvalLoss != whole.FinalEvalLoss {
			t.Errorf("in stages with %d liars the root is %s, and %s of the whole model", n, s.StateRoot.Short(),
				whole.StateRoot.Short())
		}
		if convicted := len(s.Disputes) > 0 && s.SlashedUzen > 0; convicted != (n > 0) {
			t.Errorf("%d liars: %d disputes, %d slashed", n, len(s.Disputes), s.SlashedUzen)
		}
		page, err := os.ReadFile(filepath.Join(out, rundir.FileReport))
		if err != nil || !strings.Contains(string(page), "work unit 2 (stage 2 of replica 0)") ||
			!strings.Contains(string(page), "3 of a replica; replicas: 1, microbatches a step: 4") {
			t.Errorf("the report names no stages, %v", err)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{})
		if err != nil || v.StateRoot != whole.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
}

// Stages that diverge exchange values that are not finite like others, and the run ends for that.
func TestStagesThatDiverge(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	j := staged(t, "parallel.replicas=1")
	j.Training.LearningRate, j.Training.Optimizer.WeightDecay = 1000, 1
	_, err := Train(t.Context(), consumer.Options{Job: j, Dir: filepath.Join(t.TempDir(), "out")})
	if why := (*train.DivergedError)(nil); !errors.As(err, &why) {
		t.Errorf("got %v", err)
	}
}

// A stage that lies may send values that are not finite, as operators of a Llama do where another takes their place: it
// loses its stake like any other, and the run continues with the bits of the model that is not cut.
func TestALieThatIsNotFinite(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir := t.TempDir()
	llama := func(set ...string) *job.Job {
		return staged(t, append([]string{"model.architecture=llama", "model.config={num_hidden_layers: 3, hidden_size: 32, " +
			"intermediate_size: 64, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64, " +
			"vocab_size: 256, tie_word_embeddings: false}"}, set...)...)
	}
	whole := mustTrain(t, consumer.Options{Dir: filepath.Join(dir, "whole"), Job: llama("parallel=null",
		"strategy.workers=1", "strategy.optimizer_state_rounds=1", "training.gradient_accumulation_steps=4")})
	s := mustTrain(t, consumer.Options{Dir: filepath.Join(dir, "liar"), Dishonest: 1, Job: llama("parallel.replicas=1")})
	if s.StateRoot != whole.StateRoot {
		t.Errorf("the root is %s, and %s of the whole model", s.StateRoot.Short(), whole.StateRoot.Short())
	}
	if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
		t.Errorf("%d disputes, %d slashed", len(s.Disputes), s.SlashedUzen)
	}
}
