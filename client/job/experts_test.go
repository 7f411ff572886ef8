package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job/problem"
)

const several = `apiVersion: starling/v1
kind: TrainingJob
name: pair
model: {architecture: gpt2, config: {n_layer: 2, n_head: 2}}
training: {max_steps: 40}
output: {dir: out}
experts:
  - name: code
    set:
      datasets: [{path: "*.go"}]
      model: {config: {n_layer: 3}}
  - name: prose
    prior: 3
    set:
      datasets: [{path: "*.md"}]
      training: {learning_rate: 0.5}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pair.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestExpertsAreJobs reads a file of two experts: keys of set are merged with those of the file, and overrides stand in
// place of both.
func TestExpertsAreJobs(t *testing.T) {
	path := file(t, several)
	all, err := ReadAll(path, "training.max_steps=80")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d jobs, %v", len(all), err)
	}
	code, prose := all[0], all[1]
	if code.Name != "pair-code" || code.Output.Dir != filepath.Join("out", "code") || code.Datasets[0].Path != "*.go" ||
		code.Model.Config["n_layer"] != 3 || code.Model.Config["n_head"] != 2 || code.Training.LearningRate == 0.5 ||
		code.Training.MaxSteps != 80 || code.Experts[0].Prior != 1 {
		t.Errorf("the job of code is %+v", code.Spec)
	}
	if prose.Name != "pair-prose" || prose.Model.Config["n_layer"] != 2 || prose.Training.LearningRate != 0.5 ||
		prose.Experts[1].Prior != 3 {
		t.Errorf("the job of prose is %+v", prose.Spec)
	}
	one, err := Read(path, "training.max_steps=80", "expert=code")
	if err != nil || string(one.Canonical()) != string(code.Canonical()) {
		t.Errorf("expert=code is another job: %v", err)
	}
	again, err := Parse(code.Source, code.Path, code.Overrides...)
	if err != nil || string(again.Canonical()) != string(code.Canonical()) {
		t.Errorf("the source and the overrides of a job give another: %v", err)
	}
	set, err := Read(path, "expert=code", "experts.0.set.seed=9", "experts.1.prior=2")
	if err != nil || set.Seed != 9 || set.Experts[1].Prior != 2 {
		t.Errorf("overrides of experts have no effect: %v", err)
	}
	alone := file(t, strings.ReplaceAll(several[:strings.Index(several, "experts:")], "n_layer: 2", "n_layer: 3")+
		"datasets: [{path: \"*.go\"}]\n")
	plain, err := Read(alone, "training.max_steps=80", "name=pair-code")
	if err != nil || string(plain.Canonical()) != string(code.Canonical()) {
		t.Errorf("an expert is another job than one with its keys: %v", err)
	}
}

func TestExpertsRefused(t *testing.T) {
	for _, c := range []struct {
		text string // replaced in the file
		with string
		set  string
		code string
		say  string
		line int
	}{
		{code: problem.ManyJobs, say: "the file describes 2 jobs", line: 8},
		{set: "expert=poem", code: problem.BadValue, say: `expert is "poem"`},
		{text: "name: prose", with: "name: code", set: "expert=code", code: problem.BadValue,
			say: "experts.1.name", line: 12},
		{text: "name: prose", with: "name: ../b", set: "expert=code", code: problem.BadValue,
			say: "experts.1.name", line: 12},
		{text: "prior: 3", with: "prior: 0", set: "expert=code", code: problem.BadValue, say: "experts.1.prior", line: 13},
		{text: "learning_rate: 0.5", with: "learning_rat: 0.5", set: "expert=prose", code: problem.UnknownKey,
			say: `unknown key "learning_rat" in training`, line: 16},
		{text: "model: {", with: "model: {tokenizer: {train: {type: bpe, vocab_size: 300}}, ", set: "expert=code",
			code: problem.BadValue, say: "model.tokenizer", line: 4},
	} {
		text := several
		if c.text != "" {
			text = strings.Replace(several, c.text, c.with, 1)
		}
		var set []string
		if c.set != "" {
			set = append(set, c.set)
		}
		_, err := Read(file(t, text), set...)
		var list *problem.ErrorList
		if !errors.As(err, &list) || list.Errors[0].Code != c.code || !strings.Contains(list.Errors[0].What, c.say) ||
			c.line > 0 && list.Errors[0].Line != c.line {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := ReadAll(file(t, strings.Replace(several, "max_steps: 40", "max_steps: none", 1))); err == nil ||
		strings.Count(err.Error(), "training.max_steps") != 1 {
		t.Errorf("a mistake in the keys of all is reported more than once, or not: %v", err)
	}
}
