package simulate

import (
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/sim"
)

// staged is the example of stages, shorter.
func staged(t *testing.T, set ...string) *job.Job {
	t.Helper()
	j, err := job.Load("../../examples/pipeline.yaml", append([]string{"training.max_steps=6", "strategy.sync_steps=3",
		"training.warmup_steps=1", "eval.every_steps=6", "checkpoint.every_steps=6", "training.global_batch_size=8",
		"sequence_len=32", "model.config.n_layer=2", "model.config.n_embd=32"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// A model in stages has the bits of the model that is not cut in the simulated network too, also when a stage lies,
// which loses its stake, and when a worker stops in the middle of a unit.
func TestStages(t *testing.T) {
	whole := simulate(t, Options{Seed: 1, Job: staged(t, "parallel=null", "strategy.workers=1",
		"strategy.optimizer_state_rounds=1", "training.gradient_accumulation_steps=4")}).StateRoot
	var honest *Simulation
	for i, opt := range []Options{
		{},
		{Acts: map[string]string{"worker-1": "lies-forward"}},
		{Acts: map[string]string{"worker-1": "lies-backward"}},
		{Faults: []sim.Fault{{Who: "worker-1", At: 6 * time.Second, For: time.Minute}}},
		{Faults: []sim.Fault{{Who: "worker-1", At: 10 * time.Second, For: time.Minute}}},
	} {
		opt.Seed, opt.Job = 1, staged(t, "parallel.replicas=1")
		s := simulate(t, opt)
		if s.StateRoot != whole || (s.SlashedUzen > 0) != (len(opt.Acts) > 0) {
			t.Errorf("%d: root %s, wanted %s, %d slashed", i, s.StateRoot.Short(), whole.Short(), s.SlashedUzen)
		}
		if i == 0 {
			honest = s
		} else if s.Blocks <= honest.Blocks {
			t.Errorf("%d: %d blocks, and %d without a disturbance", i, s.Blocks, honest.Blocks)
		}
	}
}

// So has one whose stages do not wait for each other between steps: the bits are those of the same job without a
// disturbance, also with a stage that lies, or one that stops.
func TestLateStages(t *testing.T) {
	late := []string{"parallel.replicas=1", "parallel.schedule=asynchronous", "parallel.microbatches=2"}
	var honest *Simulation
	for i, opt := range []Options{
		{},
		{Acts: map[string]string{"worker-1": "lies-backward"}},
		{Faults: []sim.Fault{{Who: "worker-1", At: 6 * time.Second, For: time.Minute}}},
	} {
		opt.Seed, opt.Job = 1, staged(t, late...)
		s := simulate(t, opt)
		if i == 0 {
			honest = s
		}
		if s.StateRoot != honest.StateRoot || (s.SlashedUzen > 0) != (len(opt.Acts) > 0) {
			t.Errorf("%d: root %s, wanted %s, %d slashed", i, s.StateRoot.Short(), honest.StateRoot.Short(), s.SlashedUzen)
		}
	}
}

// Fewer workers than stages of replicas, of unequal speed, have several stages each, and the bits are those of the
// model that is not cut, though one of them is gone for a while.
func TestStagesOfUnequalWorkers(t *testing.T) {
	whole := simulate(t, Options{Seed: 1, Job: staged(t, "parallel=null", "strategy.workers=4",
		"strategy.optimizer_state_rounds=1", "training.gradient_accumulation_steps=2")}).StateRoot
	s := simulate(t, Options{Seed: 1, Gflops: []float64{0.3, 0.1},
		Faults: []sim.Fault{{Who: "worker-1", At: 8 * time.Second, For: time.Minute}},
		Job:    staged(t, "parallel={stages: 3, replicas: 4, microbatches: 2}", "strategy.workers=5")})
	if s.StateRoot != whole || s.SlashedUzen > 0 {
		t.Errorf("root %s, wanted %s, %d slashed", s.StateRoot.Short(), whole.Short(), s.SlashedUzen)
	}
}
