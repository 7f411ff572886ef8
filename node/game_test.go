package node

import (
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/verify"
)

// Games are played and learnt from with a worker that cheats, to a model that verification computes again: where the
// unit that learns plays them, where others do, and in a swarm, each node by itself or about answers of the others.
func TestGame(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for rollout, heavy := range map[string]bool{
		"rollout={group: 4, max_tokens: 3, stages: 3, reads: 2, stop: y}":                                           false,
		"rollout={group: 4, max_tokens: 3, stages: 2, reads: 4, stop: y}":                                           true,
		"rollout={group: 4, max_tokens: 3, stages: 3, reads: 2, stop: y, staleness: 1}":                             true,
		"rollout={group: 4, max_tokens: 3, stages: 3, reads: 2, stop: y, sharing: swarm, own: 2, shared: 2}":        true,
		"rollout={group: 4, max_tokens: 3, stages: 3, stop: y, sharing: swarm, own: 2, shared: 2, critics: others}": true,
	} {
		if heavy && !*long {
			continue
		}
		dir := t.TempDir()
		base := filepath.Join(dir, "base")
		jobtest.WriteBase(t, base)
		j, err := job.Load("../examples/game.yaml", rollout, "model.base_model="+base, "training.max_steps=4",
			"strategy={workers: 2, sync_steps: 2, method: fedavg}", "training.global_batch_size=4", "eval.every_steps=2",
			"training.warmup_steps=1",
			`reward=[{kind: starlark, source: "def reward(p, a, f): return len([c for c in a.elems() if c < 'm'])"}]`)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("%s: the worker that cheats was not caught: %+v", rollout, s)
		}
		for _, name := range []string{"resolve_reward", "drawn_reward", "drawn_resolve_reward"} {
			if _, has := s.FinalMeasured[name]; !has {
				t.Errorf("%s: %s is missing in %v", rollout, name, s.FinalMeasured)
			}
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("%s: verified %+v, %v", rollout, v, err)
		}
	}
}
