package node

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/verify"
)

// The examples of tasks train one after the other, in fewer steps: a model learns to answer, then to prefer answers,
// with a worker that cheats, and both runs are verified.
func TestExamplesOfTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(name string, set ...string) *job.Job {
		t.Helper()
		j, err := job.Load("../examples/"+name+".yaml", append(set, "eval.every_steps=20", "checkpoint.every_steps=20",
			"strategy.sync_steps=10")...)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	answers := filepath.Join(dir, "sft")
	steps, adapters := 20, []string{"{lora: {r: 4}}"}
	if *long {
		steps, adapters = 60, append(adapters, "null")
	}
	first := mustTrain(t, consumer.Options{Dir: answers,
		Job: load("sft", fmt.Sprint("training.max_steps=", steps), "training.warmup_steps=10",
			"training.global_batch_size=32")})
	if first.FinalEvalLoss > 0.9*first.FirstEvalLoss || first.FinalMeasured != nil || first.BitsPerByte == 0 {
		t.Errorf("answers: %+v", first)
	}
	for _, adapter := range adapters {
		out := filepath.Join(dir, fmt.Sprintf("dpo%d", len(adapter)))
		s := mustTrain(t, consumer.Options{Dir: out, Dishonest: 1, Job: load("dpo", "training.max_steps=20",
			"training.global_batch_size=16", "training.learning_rate=3e-4", "model.adapter="+adapter,
			"model.base_model="+answers)})
		_, measured := s.FinalMeasured["margin"]
		if math.Abs(s.FirstEvalLoss-math.Ln2) > 1e-6 || s.FinalEvalLoss == s.FirstEvalLoss || !measured ||
			!(s.FinalMeasured["accuracy"] > 0 && s.FinalMeasured["accuracy"] < 1) || s.BitsPerByte != 0 {
			t.Errorf("preferences, adapter %s: %+v", adapter, s)
		}
		if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("adapter %s: the worker that cheats was not caught: %+v", adapter, s)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
		e, err := verify.EvaluateRun(t.Context(), out, 1)
		if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["accuracy"] != s.FinalMeasured["accuracy"] ||
			e.Perplexity != 0 {
			t.Errorf("measured again: %+v, %v", e, err)
		}
	}
}

// The example of rewards draws answers, with a worker that cheats and without, to the same model, and is verified.
func TestExampleOfRewards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(name string, set ...string) *job.Job {
		t.Helper()
		j, err := job.Load("../examples/"+name+".yaml", append(set, "eval.every_steps=10", "checkpoint.every_steps=10")...)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	answers := filepath.Join(dir, "sft")
	shown, rewarded, prompts := 10, 4, 4
	if *long {
		shown, rewarded, prompts = 100, 20, 16
	}
	mustTrain(t, consumer.Options{Dir: answers, Job: load("sft", fmt.Sprint("training.max_steps=", shown),
		"training.warmup_steps=5", "training.global_batch_size=32", "strategy.sync_steps=10")})
	rewards := load("grpo", fmt.Sprint("training.max_steps=", rewarded),
		fmt.Sprint("training.global_batch_size=", prompts),
		fmt.Sprint("strategy.sync_steps=", rewarded/4), "training.warmup_steps=2",
		"reward={exact: 1, prefix: 1}", "model.base_model="+answers)
	var roots []string
	for dishonest := range 2 {
		out := filepath.Join(dir, fmt.Sprint("grpo", dishonest))
		s := mustTrain(t, consumer.Options{Dir: out, Job: rewards, Dishonest: dishonest})
		if reward := s.FinalMeasured["reward"]; !(reward > 0 && reward < 1) || s.BitsPerByte != 0 ||
			math.Abs(s.FinalEvalLoss+reward-1) > 1e-6 {
			t.Errorf("%+v", s)
		}
		if dishonest > 0 && (len(s.Disputes) == 0 || s.SlashedUzen == 0) {
			t.Errorf("the worker that cheats was not caught: %+v", s)
		}
		roots = append(roots, s.StateRoot.String())
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("verified %+v, %v", v, err)
		}
	}
	if roots[0] != roots[1] {
		t.Error("a worker that cheats changed the model")
	}
}

// The examples of classifiers learn in fewer steps, with a worker that cheats and without, to the same model, and are
// verified from the data that they shipped.
func TestExamplesOfClassifiers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		example string
		set     []string
		least   float64 // accuracy
		long    bool    // trained with -long only
	}{{"image", []string{"training.max_steps=50", "model={architecture: mlp, config: {hidden_sizes: [64]}}"}, 0.4, false},
		{"image", nil, 0.7, true},
		{"graph", []string{"training.max_steps=200"}, 0.8, false},
		{"graph", []string{"training.max_steps=200", "model.architecture=sage"}, 0.6, true}} {
		if c.long && !*long {
			continue
		}
		var roots []string
		for dishonest := range 2 {
			j, err := job.Load("../examples/"+c.example+".yaml", append([]string{"training.max_steps=100"}, c.set...)...)
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out")
			s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: dishonest})
			if s.FinalMeasured["accuracy"] < c.least || s.FinalEvalLoss > 0.8*s.FirstEvalLoss || s.BitsPerByte != 0 {
				t.Errorf("%s: %+v", c.example, s)
			}
			if dishonest > 0 && (len(s.Disputes) == 0 || s.SlashedUzen == 0) {
				t.Errorf("%s: the worker that cheats was not caught: %+v", c.example, s)
			}
			roots = append(roots, s.StateRoot.String())
			for _, shipped := range []bool{false, true} {
				v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped})
				if err != nil || v.StateRoot != s.StateRoot {
					t.Errorf("%s: verified %+v, %v", c.example, v, err)
				}
			}
			e, err := verify.EvaluateRun(t.Context(), out, 1)
			if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["accuracy"] != s.FinalMeasured["accuracy"] {
				t.Errorf("%s: measured again: %+v, %v", c.example, e, err)
			}
		}
		if roots[0] != roots[1] {
			t.Errorf("%s: a worker that cheats changed the model", c.example)
		}
	}
}
