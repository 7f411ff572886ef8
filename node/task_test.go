package node

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/classes"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/prepare"
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

// The example of rewards draws answers, with a worker that cheats, and is verified.
func TestExampleOfRewards(t *testing.T) {
	onlyLong(t)
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
	mustTrain(t, consumer.Options{Dir: answers, Job: load("sft", "training.max_steps=100",
		"training.warmup_steps=5", "training.global_batch_size=32", "strategy.sync_steps=10")})
	rewards := load("grpo", "training.max_steps=10", "training.global_batch_size=16", "strategy.sync_steps=5",
		"training.warmup_steps=2", "reward={exact: 1, prefix: 1}", "model.base_model="+answers)
	out := filepath.Join(dir, "grpo")
	s := mustTrain(t, consumer.Options{Dir: out, Job: rewards, Dishonest: 1})
	if reward := s.FinalMeasured["reward"]; !(reward > 0 && reward < 1) || s.BitsPerByte != 0 ||
		math.Abs(s.FinalEvalLoss+reward-1) > 1e-6 {
		t.Errorf("%+v", s)
	}
	if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
		t.Errorf("the worker that cheats was not caught: %+v", s)
	}
	v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
	if err != nil || v.StateRoot != s.StateRoot {
		t.Errorf("verified %+v, %v", v, err)
	}
}

// The examples of classifiers learn in fewer steps, with a worker that cheats, and are verified from the data that they
// shipped.
func TestExamplesOfClassifiers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		example string
		set     []string
		least   float64 // accuracy
		long    bool    // trained with -long only
	}{{"image", []string{"model={architecture: mlp, config: {hidden_sizes: [64]}}"}, 0.4, false},
		{"image", nil, 0.7, true},
		{"text-classify", nil, 0.7, true},
		{"reward", []string{"training.max_steps=100"}, 0.75, true},
		{"text-classify", []string{"model={architecture: gpt2, config: {n_embd: 32, n_layer: 2, n_head: 4, " +
			"n_positions: 32}, tokenizer: {train: {type: bpe, vocab_size: 400}}}", "training.precision=bf16",
			"training.dropout=0.05"}, 0.5, true},
		{"graph", []string{"training.max_steps=200"}, 0.8, true},
		{"graph", []string{"training.max_steps=200", "model.architecture=sage"}, 0.6, true}} {
		if c.long && !*long {
			continue
		}
		j, err := job.Load("../examples/"+c.example+".yaml", append([]string{"training.max_steps=50"}, c.set...)...)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if s.FinalMeasured["accuracy"] < c.least || s.FinalEvalLoss > 0.8*s.FirstEvalLoss || s.BitsPerByte != 0 {
			t.Errorf("%s: %+v", c.example, s)
		}
		if len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("%s: the worker that cheats was not caught: %+v", c.example, s)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("%s: verified %+v, %v", c.example, v, err)
		}
		e, err := verify.EvaluateRun(t.Context(), out, 1)
		if err != nil || e.Loss != s.FinalEvalLoss || e.Measured["accuracy"] != s.FinalMeasured["accuracy"] {
			t.Errorf("%s: measured again: %+v, %v", c.example, e, err)
		}
	}
}

// A reward model rewards the answers of a job, with a worker that cheats, and whether units that learn draw them or
// others. The run is verified from the folder of the reward model and from the
// data that it shipped, and not with another reward model in its place.
func TestRewardsByARewardModel(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for _, apart := range []bool{false, true} {
		if apart && !*long {
			continue
		}
		dir := t.TempDir()
		base, judge := filepath.Join(dir, "base"), filepath.Join(dir, "judge")
		jobtest.WriteBase(t, base)
		jobtest.WriteReward(t, judge, 16, 1)
		set := []string{"model.base_model=" + base, "rollout={group: 4, max_tokens: 4}", "training.max_steps=4",
			"training.global_batch_size=8", "strategy.sync_steps=2", "eval.every_steps=2", "training.warmup_steps=1",
			"reward=[{kind: model, model: " + judge + "}, {kind: json}]"}
		if apart {
			set[1] = "rollout={group: 4, max_tokens: 4, staleness: 1, generators: 1}"
		}
		j, err := job.Load("../examples/grpo.yaml", set...)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if reward := s.FinalMeasured["reward"]; reward == 0 || math.Abs(s.FinalEvalLoss+reward-1) > 1e-6 ||
			len(s.Disputes) == 0 || s.SlashedUzen == 0 {
			t.Errorf("%+v", s)
		}
		for _, shipped := range []bool{false, true} {
			v, err := verify.Run(t.Context(), out, verify.Options{Shipped: shipped})
			if err != nil || v.StateRoot != s.StateRoot {
				t.Errorf("verified %+v, %v", v, err)
			}
		}
		e, err := verify.EvaluateRun(t.Context(), out, 1)
		if err != nil || e.Loss != s.FinalEvalLoss {
			t.Errorf("measured again: %+v, %v", e, err)
		}
		if err := os.RemoveAll(judge); err != nil {
			t.Fatal(err)
		}
		jobtest.WriteReward(t, judge, 16, 2)
		_, err = verify.Run(t.Context(), out, verify.Options{})
		if err == nil || !strings.Contains(err.Error(), "reward model") {
			t.Errorf("with another reward model: %v", err)
		}
	}
}

// A base model becomes a reward model, by an adapter: the run is verified from the data that it shipped, and its output
// folder scores texts.
func TestRewardModelFromABaseModel(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, base)
	j, err := job.Load("../examples/reward.yaml", "model={base_model: "+base+", adapter: {lora: {r: 4}}}",
		"datasets=[{path: arithmetic/pairs.jsonl}]", "sequence_len=16", "training.max_steps=40", "strategy.sync_steps=20")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
	if _, measured := s.FinalMeasured["margin"]; !measured || len(s.Disputes) == 0 || s.SlashedUzen == 0 {
		t.Errorf("%+v", s)
	}
	v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
	if err != nil || v.StateRoot != s.StateRoot {
		t.Errorf("verified %+v, %v", v, err)
	}
	m, err := classes.OpenTexts(os.DirFS(out))
	if err != nil {
		t.Fatal(err)
	}
	scores, err := m.Rewards(t.Context(), []string{"12 + 30 = 42.", "12 + 30 = 39."}, 1)
	if err != nil || !m.Ranks() || len(scores) != 2 || scores[0] == scores[1] {
		t.Errorf("%v, %v", scores, err)
	}
}

// A base model learns to classify texts, by an adapter or as a whole: the run is verified from the data that
// it shipped, and its output folder classifies texts.
func TestTextsFromABaseModel(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, base)
	adapters := []string{"{lora: {r: 4}}"}
	if *long {
		adapters = append(adapters, "null")
	}
	for _, adapter := range adapters {
		j, err := job.Load("../examples/text-classify.yaml", "model={base_model: "+base+"}", "model.adapter="+adapter,
			"sequence_len=32", "training.max_steps=100", "strategy.sync_steps=20", "val_set_size=0.3")
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out")
		s := mustTrain(t, consumer.Options{Dir: out, Job: j, Dishonest: 1})
		if s.FinalMeasured["accuracy"] < 0.3 || s.FinalEvalLoss > 0.97*s.FirstEvalLoss || len(s.Disputes) == 0 {
			t.Errorf("adapter %s: %+v", adapter, s)
		}
		v, err := verify.Run(t.Context(), out, verify.Options{Shipped: true})
		if err != nil || v.StateRoot != s.StateRoot {
			t.Errorf("adapter %s: verified %+v, %v", adapter, v, err)
		}
		m, err := classes.OpenTexts(os.DirFS(out))
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.Classify(t.Context(), []string{"The lamp is bad.", "Is the lamp bad?"}, 1)
		if err != nil || len(all) != 2 || len(all[0]) != 4 || all[0][0] == all[1][0] {
			t.Errorf("adapter %s: %v, %v", adapter, all, err)
		}
		raw, err := os.ReadFile(filepath.Join(out, prepare.FileAdapter))
		if adapter == "null" {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if f, err := safetensors.Open(raw); err != nil || f.DType("base_model.model.score.weight") != "F32" {
			t.Errorf("the adapter lacks the layer that names classes: %v", err)
		}
		raw, err = os.ReadFile(filepath.Join(out, prepare.FileAdapterConfig))
		if text := string(raw); err != nil || !strings.Contains(text, `"SEQ_CLS"`) || !strings.Contains(text, `"score"`) {
			t.Errorf("%s, %v", text, err)
		}
	}
}
