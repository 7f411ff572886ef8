package tuning

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/node/dataset"
	"github.com/starling-network/starling/web/failure"
)

// workshop is a tuner with a model, which is never loaded, and two files.
func workshop(t *testing.T) (tuner *Tuner, train, held string) {
	t.Helper()
	data, runs := t.TempDir(), t.TempDir()
	c, err := architecture.Parse(architecture.Llama,
		map[string]any{"vocab_size": 256, "max_position_embeddings": 128, "hidden_size": 16, "intermediate_size": 24,
			"num_hidden_layers": 1, "num_attention_heads": 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(data, "models", "tiny"), filepath.Join(data, ".hidden"),
		filepath.Join(runs, "done")} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "config.json"), c.JSON(), 0o644),
			os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s := NewExampleStore(data)
	one, err1 := s.Keep("train", strings.NewReader(strings.Repeat(talk, 10)))
	two, err2 := s.Keep("held", strings.NewReader(talk))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return NewTuner(s, runs), one.ID, two.ID
}

// The job of a request is a job file that holds, and says again what was asked for.
func TestJob(t *testing.T) {
	tuner, train, held := workshop(t)
	for _, name := range []string{"models/tiny", "done"} {
		spec, err := tuner.Job(api.FineTuningRequest{Model: name, TrainingFile: train, ValidationFile: held, Suffix: "mine",
			Hyperparameters: api.Hyperparameters{Epochs: 2, Rate: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		j, err := job.Parse([]byte(spec.Config), filepath.Join(tuner.data, "job.yaml"))
		if err == nil {
			err = errors.Join(j.Confine(tuner.runs), j.CheckFiles())
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, spec.Config)
		}
		// "User: Hi\n\nAssistant: Hello!\n\n" is 29 bytes, and so many tokens: 2*290/(8*28) is above 2.
		if j.SequenceLen != 28 || j.Training.MaxSteps != 3 || j.Rounds() != 1 || j.Training.GlobalBatchSize != 8 ||
			j.Training.LearningRate != 1.5e-4 || int(319*j.ValSetSize) != 29 || len(j.Datasets) != 2 {
			t.Errorf("%s", spec.Config)
		}
		again, err := tuner.Job(api.FineTuningRequest{Model: name, TrainingFile: train, ValidationFile: held, Suffix: "mine",
			Hyperparameters: api.Hyperparameters{Epochs: 2, Rate: 0.5}})
		if err != nil || again.Config != spec.Config {
			t.Errorf("the same request is another job: %v\n%s", err, again.Config)
		}
		run := filepath.Join(tuner.runs, "ftjob-1")
		if err := errors.Join(os.MkdirAll(run, 0o755),
			os.WriteFile(filepath.Join(run, "job.yaml"), []byte(spec.Config), 0o644)); err != nil {
			t.Fatal(err)
		}
		r, err := tuner.Request("ftjob-1")
		if err != nil || r.Tuned("ftjob-1") != "ft:"+name+":mine:ftjob-1" || r.TrainingFile != train ||
			r.Hyperparameters != (api.Hyperparameters{Epochs: 2, Batch: 8, Rate: 0.5}) || *r.Seed != 42 {
			t.Errorf("%+v %v", r, err)
		}
	}
	for _, run := range []string{"done", "nobody", "../x", ""} {
		if _, err := tuner.Request(run); !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("%s: %v", run, err)
		}
	}
	if list := tuner.Models(); len(list) != 0 { // there are no weights
		t.Errorf("%+v", list)
	}
}

// The job of pairs of answers learns preferences, from the data that it is given.
func TestJobOfPairs(t *testing.T) {
	tuner, _, _ := workshop(t)
	const pair = `{"input": {"messages": [{"role": "user", "content": "Hi"}]}, "preferred_output": [{"role": ` +
		`"assistant", "content": "Hello!"}], "non_preferred_output": [{"role": "assistant", "content": "No."}]}` + "\n"
	one, err := tuner.Keep("pairs", strings.NewReader(strings.Repeat(pair, 10)))
	if err != nil {
		t.Fatal(err)
	}
	two, err := tuner.Keep("held", strings.NewReader(pair))
	if err != nil {
		t.Fatal(err)
	}
	asked := api.FineTuningRequest{Model: "done", TrainingFile: one.ID, ValidationFile: two.ID, Method: &api.TuningMethod{
		Type: "dpo", DPO: api.DPOMethod{Hyperparameters: api.DPOHyperparameters{Epochs: 2, Batch: 4}}}}
	made, err := tuner.Job(asked)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse([]byte(made.Config), filepath.Join(tuner.data, "job.yaml"))
	if err == nil {
		err = errors.Join(j.Confine(tuner.runs), j.CheckFiles())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, made.Config)
	}
	// "User: Hi\n\nAssistant: Hello!\n\n" is 29 bytes, and its end is a token.
	if j.Task != "dpo" || j.DPO.Beta != 0.1 || j.SequenceLen != 30 || j.Training.MaxSteps != 5 ||
		j.Training.LearningRate != 5e-5 || int(11*j.ValSetSize) != 1 || len(j.Datasets) != 2 {
		t.Errorf("%s", made.Config)
	}
	tuning := filepath.Join(tuner.runs, "ftjob-1")
	if err := errors.Join(os.MkdirAll(tuning, 0o755),
		os.WriteFile(filepath.Join(tuning, "job.yaml"), []byte(made.Config), 0o644)); err != nil {
		t.Fatal(err)
	}
	r, err := tuner.Request("ftjob-1")
	settled := api.DPOHyperparameters{Epochs: 2, Batch: 4, Rate: 1, Beta: 0.1}
	if err != nil || r.Method == nil || r.Method.DPO.Hyperparameters != settled ||
		r.Hyperparameters != (api.Hyperparameters{Epochs: 2, Batch: 4, Rate: 1}) {
		t.Errorf("%+v %v", r, err)
	}
	asked.Method = nil
	var refused *failure.Error
	if _, err := tuner.Job(asked); !errors.As(err, &refused) || refused.Param != "training_file" {
		t.Errorf("pairs without a method for them: %v", err)
	}
}

// graded is a method whose grader compares answers with a key of the examples.
func graded() *api.TuningMethod {
	return &api.TuningMethod{Type: "reinforcement", Reinforcement: &api.ReinforcementMethod{Grader: api.Grader{
		Type: "string_check", Name: "same", Operation: "eq", Input: "{{ sample.output_text }}",
		Reference: "{{item.reference_answer}}"}}}
}

const question = `{"messages": [{"role": "user", "content": "2+2"}], "reference_answer": "4.", "topic": "sums"}` + "\n"

// The job of questions draws answers, and rewards those that are the text to which the grader refers.
func TestJobOfRewards(t *testing.T) {
	tuner, _, _ := workshop(t)
	one, err := tuner.Keep("questions", strings.NewReader(strings.Repeat(question, 10)))
	if err != nil {
		t.Fatal(err)
	}
	two, err := tuner.Keep("held", strings.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	asked := api.FineTuningRequest{Model: "done", TrainingFile: one.ID, ValidationFile: two.ID, Method: graded()}
	asked.Method.Reinforcement.Hyperparameters = api.ReinforcementHyperparameters{Epochs: 2, Batch: 4, Compute: 0.5,
		Interval: 2, Reasoning: "default"}
	made, err := tuner.Job(asked)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Parse([]byte(made.Config), filepath.Join(tuner.data, "job.yaml"))
	if err == nil {
		err = errors.Join(j.Confine(tuner.runs), j.CheckFiles())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, made.Config)
	}
	// "User: 2+2\n\nAssistant:" is 21 bytes, and " 4.\n\n" with its end 6 tokens.
	if j.Task != "grpo" || j.Rollout.Group != 8 || j.Rollout.MaxTokens != 6 || j.SequenceLen != 27 ||
		j.Reward.Exact != 1 || j.Reward.Prefix != 0 || j.Training.MaxSteps != 6 || j.Rounds() != 3 ||
		j.Eval.EverySteps != 2 ||
		int(11*j.ValSetSize) != 1 || len(j.Datasets) != 2 {
		t.Errorf("%s", made.Config)
	}
	raw, err := os.ReadFile(filepath.Join(tuner.data, filepath.FromSlash(j.Datasets[1].Path)))
	if want := `{"messages":[{"content":"2+2","role":"user"},{"content":"4.","role":"assistant"}]}` + "\n"; err != nil ||
		string(raw) != want {
		t.Errorf("%s %v", raw, err)
	}
	asked.Method.Reinforcement.Grader.Reference = "{{item.answer}}"
	var refused *failure.Error
	if _, err := tuner.Job(asked); !errors.As(err, &refused) || refused.Param != "training_file" {
		t.Errorf("a key that the examples do not have: %v", err)
	}
	asked.Method = nil
	if _, err := tuner.Job(asked); !errors.As(err, &refused) || refused.Param != "training_file" {
		t.Errorf("questions without a method for them: %v", err)
	}
}

// Graders that compare no tokens become functions of the job, and those of python read all keys of an example.
func TestJobOfFunctions(t *testing.T) {
	tuner, _, _ := workshop(t)
	one, err := tuner.Keep("questions", strings.NewReader(strings.Repeat(question, 10)))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		grader api.Grader
		fields []string
	}{
		"like": {api.Grader{Type: "string_check", Operation: "ilike", Input: "{{sample.output_text}}",
			Reference: "{{item.reference_answer}}"}, nil},
		"similar": {api.Grader{Type: "text_similarity", Metric: "rouge_l", Input: "{{sample.output_text}}",
			Reference: "{{item.reference_answer}}"}, []string{"reference_answer", "topic"}},
		"multi": {api.Grader{Type: "multi", Formula: "2 * a", Graders: map[string]api.GraderPart{"a": {Type: "string_check",
			Operation: "like", Input: "{{sample.output_text}}", Reference: "{{item.topic}}"}}},
			[]string{"reference_answer", "topic"}},
		"python": {api.Grader{Type: "python", Source: "def grade(sample: dict[str, Any], item: dict[str, Any]) -> float:\n" +
			"    return 1.0 if item[\"topic\"] in sample[\"output_text\"] else 0.0\n"}, []string{"reference_answer", "topic"}},
	} {
		asked := api.FineTuningRequest{Model: "done", TrainingFile: one.ID, Method: graded()}
		asked.Method.Reinforcement.Grader = c.grader
		made, err := tuner.Job(asked)
		if err != nil {
			t.Fatal(name, err)
		}
		j, err := job.Parse([]byte(made.Config), filepath.Join(tuner.data, "job.yaml"))
		if err == nil {
			err = errors.Join(j.Confine(tuner.runs), j.CheckFiles())
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, made.Config)
		}
		if len(j.Reward.Rules) != 1 || j.Reward.Rules[0].Kind != "starlark" || j.Rollout.MaxTokens != 32 ||
			!slices.Equal(j.Datasets[0].RewardFields, c.fields) {
			t.Errorf("%s: %s", name, made.Config)
		}
		sources, err := dataset.Sources(j)
		if err != nil {
			t.Fatal(err)
		}
		corpus, opened, err := dataset.Corpus(j, sources, tokenizer.Bytes(), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := corpus.Train.Len(); n != 10*j.SequenceLen {
			t.Errorf("%s: %d tokens of 10 examples of %d", name, n, j.SequenceLen)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
}

// rewards changes a method that would be accepted.
func rewards(change func(m *api.ReinforcementMethod)) func(r *api.FineTuningRequest) {
	return func(r *api.FineTuningRequest) {
		r.Method = graded()
		change(r.Method.Reinforcement)
	}
}

// A wrong request is refused by its parameter, without information about this machine.
func TestJobRefuses(t *testing.T) {
	tuner, train, held := workshop(t)
	good := api.FineTuningRequest{Model: "done", TrainingFile: train}
	for name, c := range map[string]struct {
		change func(r *api.FineTuningRequest)
		param  string
	}{
		"no model":         {func(r *api.FineTuningRequest) { r.Model = "" }, "model"},
		"unknown model":    {func(r *api.FineTuningRequest) { r.Model = "gpt-4o-mini" }, "model"},
		"a model above":    {func(r *api.FineTuningRequest) { r.Model = "../done" }, "model"},
		"an absolute path": {func(r *api.FineTuningRequest) { r.Model = filepath.Join(tuner.runs, "done") }, "model"},
		"a hidden model":   {func(r *api.FineTuningRequest) { r.Model = ".hidden" }, "model"},
		"hidden below":     {func(r *api.FineTuningRequest) { r.Model = "models/../.hidden" }, "model"},
		"a tuned path":     {func(r *api.FineTuningRequest) { r.Model = "ft:a:b:../done" }, "model"},
		"no file":          {func(r *api.FineTuningRequest) { r.TrainingFile = "" }, "training_file"},
		"a file path":      {func(r *api.FineTuningRequest) { r.TrainingFile = "../" + train }, "training_file"},
		"unknown held":     {func(r *api.FineTuningRequest) { r.ValidationFile = "file-1" }, "validation_file"},
		"held is as large": {func(r *api.FineTuningRequest) { r.TrainingFile, r.ValidationFile = held, train },
			"validation_file"},
		"half an epoch": {func(r *api.FineTuningRequest) { r.Hyperparameters.Epochs = 0.5 }, "hyperparameters.n_epochs"},
		"many epochs":   {func(r *api.FineTuningRequest) { r.Hyperparameters.Epochs = 51 }, "hyperparameters.n_epochs"},
		"an odd batch":  {func(r *api.FineTuningRequest) { r.Hyperparameters.Batch = 3 }, "hyperparameters.batch_size"},
		"a high rate": {func(r *api.FineTuningRequest) { r.Hyperparameters.Rate = 1e9 },
			"hyperparameters.learning_rate_multiplier"},
		"a method":     {func(r *api.FineTuningRequest) { r.Method = &api.TuningMethod{Type: "preference"} }, "method"},
		"no questions": {func(r *api.FineTuningRequest) { r.Method = graded() }, "training_file"},
		"no grader": {func(r *api.FineTuningRequest) { r.Method = &api.TuningMethod{Type: "reinforcement"} },
			"method.reinforcement"},
		"another grader": {rewards(func(m *api.ReinforcementMethod) { m.Grader.Type = "score_model" }),
			"method.reinforcement.grader.type"},
		"another operation": {rewards(func(m *api.ReinforcementMethod) { m.Grader.Operation = "starts" }),
			"method.reinforcement.grader.operation"},
		"no source": {rewards(func(m *api.ReinforcementMethod) { m.Grader = api.Grader{Type: "python"} }),
			"method.reinforcement.grader.source"},
		"an import": {rewards(func(m *api.ReinforcementMethod) {
			m.Grader = api.Grader{Type: "python", Source: "import re\ndef grade(sample, item):\n    return 1.0\n"}
		}), "method.reinforcement.grader.source"},
		"another input": {rewards(func(m *api.ReinforcementMethod) { m.Grader.Input = "{{item.question}}" }),
			"method.reinforcement.grader.input"},
		"a constant reference": {rewards(func(m *api.ReinforcementMethod) { m.Grader.Reference = "yes" }),
			"method.reinforcement.grader.reference"},
		"half an answer": {rewards(func(m *api.ReinforcementMethod) { m.Hyperparameters.Compute = 0.2 }),
			"method.reinforcement.hyperparameters.compute_multiplier"},
		"many answers": {rewards(func(m *api.ReinforcementMethod) { m.Hyperparameters.Compute = 5 }),
			"method.reinforcement.hyperparameters.compute_multiplier"},
		"half a step": {rewards(func(m *api.ReinforcementMethod) { m.Hyperparameters.Interval = 1.5 }),
			"method.reinforcement.hyperparameters.eval_interval"},
		"samples": {rewards(func(m *api.ReinforcementMethod) { m.Hyperparameters.Samples = 4 }),
			"method.reinforcement.hyperparameters.eval_samples"},
		"an effort": {rewards(func(m *api.ReinforcementMethod) { m.Hyperparameters.Reasoning = "high" }),
			"method.reinforcement.hyperparameters.reasoning_effort"},
		"no pairs": {func(r *api.FineTuningRequest) { r.Method = &api.TuningMethod{Type: "dpo"} }, "training_file"},
		"a beta": {func(r *api.FineTuningRequest) {
			r.Method = &api.TuningMethod{Type: "dpo", DPO: api.DPOMethod{Hyperparameters: api.DPOHyperparameters{Beta: 3}}}
		}, "method.dpo.hyperparameters.beta"},
		"two methods": {func(r *api.FineTuningRequest) {
			r.Hyperparameters.Epochs, r.Method = 2, &api.TuningMethod{Type: "supervised"}
		}, "hyperparameters"},
		"a suffix": {func(r *api.FineTuningRequest) { r.Suffix = "a:b" }, "suffix"},
	} {
		r := good
		c.change(&r)
		_, err := tuner.Job(r)
		var f *failure.Error
		if !errors.As(err, &f) || f.Param != c.param || f.Fix == "" || strings.Contains(f.Detail, os.TempDir()) &&
			!strings.Contains(r.Model, os.TempDir()) {
			t.Errorf("%s: %+v %v", name, f, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tuner.data, dirShelf, "*", "*.part")); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}
