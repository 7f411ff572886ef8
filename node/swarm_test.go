package node

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/verify"
)

// Each worker of a swarm trains a model of its own, and one cheats. The best model on held-out prompts is that of the
// job, which verification trains and chooses again.
func TestSwarm(t *testing.T) {
	t.Parallel()
	for _, set := range [][]string{{}, {"rollout={group: 4, max_tokens: 4, sharing: swarm, own: 2, shared: 0, " +
		"staleness: 1}", "strategy.compression={quantize: int8}"}, {"model.adapter={lora: {r: 4}}"}} {
		if len(set) > 0 && !*long {
			continue
		}
		dir := t.TempDir()
		base := filepath.Join(dir, "base")
		jobtest.WriteBase(t, base)
		set = append([]string{"model.base_model=" + base, "training.max_steps=4", "strategy.workers=3",
			"rollout={group: 4, max_tokens: 4, sharing: swarm, own: 2, shared: 2}", "strategy.sync_steps=2",
			"eval.every_steps=2", "training.warmup_steps=1", "training.learning_rate=0.01",
			`reward=[{kind: starlark, source: "def reward(p, a, f): return len([c for c in a.elems() if c < 'm'])"}]`}, set...)
		j, err := job.Load("../examples/swarm.yaml", set...)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("the worker that cheats was not caught: %+v", s)
		}
		m := s.FinalMeasured
		best := int(m["best_node"])
		for k := range 3 {
			if x, has := m[fmt.Sprintf("node_%d_reward", k)]; !has || x > m["reward"] || k == best && x != m["reward"] {
				t.Errorf("node %d: %v", k, m)
			}
		}
		same := map[bool]int{}
		for k := range 3 {
			same[equalWeights(t, filepath.Join(out, "models", fmt.Sprint(k, ".safetensors")),
				filepath.Join(out, "models", fmt.Sprint(best, ".safetensors")))]++
		}
		if j.Model.Adapter == nil && !equalWeights(t, filepath.Join(out, "model.safetensors"),
			filepath.Join(out, "models", fmt.Sprint(best, ".safetensors"))) || same[true] != 1 {
			t.Errorf("the model is not that of node %d, or is that of others: %v", best, same)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
		e, err := verify.EvaluateRun(t.Context(), out, 1)
		if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["best_node"] != m["best_node"] {
			t.Errorf("measured again: %+v, %v", e, err)
		}
		other := (best + 1) % 3 // of which verification must not take the weights for those of the job
		b, err := os.ReadFile(filepath.Join(out, "models", fmt.Sprint(other, ".safetensors")))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, "models", fmt.Sprint(best, ".safetensors")), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := verify.Run(t.Context(), out, verify.Options{Shipped: true}); err == nil {
			t.Error("the model of another node is verified")
		}
	}
}

// equalWeights reports whether two files have the same bytes.
func equalWeights(t *testing.T, a, b string) bool {
	t.Helper()
	x, err1 := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return bytes.Equal(x, y)
}
