package job

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job/problem"
)

const federated = `apiVersion: starling/v1
kind: FederatedJob
model: {architecture: gpt2}
datasets: [{path: "*.txt"}]
training: {max_steps: 40}
federated: {owners: 5}
`

// A FederatedJob has defaults with which owners can train, and no other command takes it.
func TestFederated(t *testing.T) {
	j, err := Federated([]byte(federated), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f, s := j.Federated, j.Strategy
	if f.MinCohort != 3 || f.Clip != 1 || f.Sample != 1 || f.Noise.Delta != 1e-5 || f.Weight(7) != 1 {
		t.Errorf("%+v", f)
	}
	if s.Workers.Target != 1 || s.Compression.Quantize != "none" || s.OptimizerStateRounds != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := Parse([]byte(federated), "f.yaml"); err == nil || !strings.Contains(err.Error(), "FederatedJob") {
		t.Errorf("starling train takes it: %v", err)
	}
	if _, err := Federated([]byte(minimal), "f.yaml"); err == nil {
		t.Error("a TrainingJob is taken for a federated one")
	}
	for _, set := range []string{"strategy.method=sparseloco", "strategy.method=gossip", "strategy.workers=2",
		"strategy.compression.quantize=int8", "strategy.optimizer_state_rounds=8", "federated.min_cohort=6",
		"federated.min_cohort=2", "federated.weights=examples", "federated.classes=[a, b]", "task=dpo",
		"model.tokenizer=x.json", "budget.max_cost=3", "strategy.aggregation.rule=median",
		"federated.owners=null", "federated.noise.multiplier=5", "training.num_epochs=1"} {
		if _, err := Federated([]byte(federated), "f.yaml", set); err == nil {
			t.Errorf("%s is taken", set)
		} else {
			problems(t, err)
		}
	}
	both := []string{"federated.weights=examples", "federated.full_examples=100"}
	if j, err := Federated([]byte(federated), "f.yaml", both...); err != nil || j.Federated.Weight(25) != 0.25 ||
		j.Federated.Weight(1000) != 1 {
		t.Errorf("weights by examples: %v", err)
	}
	if _, err := Federated([]byte(federated), "f.yaml", append(both, "federated.noise.multiplier=1")...); err == nil {
		t.Error("weights by examples with noise")
	}
	for _, m := range []string{"fedavg", "fedprox", "fedadam", "fedyogi", "diloco"} {
		if _, err := Federated([]byte(federated), "f.yaml", "strategy.method="+m); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	_, err = Parse([]byte(minimal), "f.yaml", "federated={owners: 3}")
	if list := problems(t, err); len(list) != 1 || list[0].Code != problem.BadValue {
		t.Errorf("%v", err)
	}
}

// A job may start from a base model, of which owners have a copy, with its tokenizer.
func TestFederatedBase(t *testing.T) {
	base := "model={base_model: base, adapter: {lora: {r: 4}}}"
	j, err := Federated([]byte(federated), "f.yaml", base)
	if err != nil || j.Model.Tokenizer.Path != "base/tokenizer.json" {
		t.Errorf("%v", err)
	}
	if _, err := Federated([]byte(federated), "f.yaml", base, "model.tokenizer=other.json"); err == nil {
		t.Error("a tokenizer of its own")
	} else {
		problems(t, err)
	}
}

// Control variates are mean gradients, which follow from the updates of plain gradient descent alone.
func TestScaffold(t *testing.T) {
	const on = "federated.method=scaffold"
	j, err := Federated([]byte(federated), "f.yaml", on)
	if err != nil {
		t.Fatal(err)
	}
	if o := j.Training.Optimizer; o.Remembers() || o.WeightDecay != 0 || j.Training.MaxGradNorm != 0 ||
		j.Strategy.Method != "fedavg" {
		t.Errorf("%+v %+v", j.Training, j.Strategy)
	}
	for _, set := range [][]string{{"strategy.method=fedadam"}, {"training.optimizer=adamw"},
		{"training.optimizer={name: sgd, momentum: 0.9, weight_decay: 0}"}, {"training.max_grad_norm=1"},
		{"federated.weights=examples", "federated.full_examples=100"},
		{"model={base_model: base, adapter: {lora: {r: 4}}}"}} {
		if _, err := Federated([]byte(federated), "f.yaml", append([]string{on}, set...)...); err == nil {
			t.Errorf("%s is taken", set)
		} else {
			problems(t, err)
		}
	}
}

// Noise for examples needs their least number, and a task whose examples are whole.
func TestExampleNoise(t *testing.T) {
	const classes = "federated.classes=[a, b]"
	on := []string{"task=classify", classes, "federated.example_noise={multiplier: 1.1, min_examples: 100}"}
	j, err := Federated([]byte(federated), "f.yaml", on...)
	if err != nil {
		t.Fatal(err)
	}
	if n := j.Federated.ExampleNoise; !n.On() || n.Clip != 1 || n.Delta != 1e-5 {
		t.Errorf("%+v", n)
	}
	for _, set := range [][]string{{"federated.example_noise.min_examples=7"},
		{"federated.example_noise.min_examples=null"}, {"task=language", "federated.classes=null"},
		{"strategy.method=fedprox"}, {"training.micro_batch_size=1"},
		{"federated.weights=examples", "federated.full_examples=100"}, {"federated.example_noise.multiplier=4.1"},
		{"federated.example_noise.multiplier=1.0e-7"}, {"federated.noise.multiplier=1.0e-200"}} {
		if _, err := Federated([]byte(federated), "f.yaml", append(append([]string{}, on...), set...)...); err == nil {
			t.Errorf("%s is taken", set)
		} else {
			problems(t, err)
		}
	}
}

// A job with public updates promises nothing that only masks give, and a committee can score its models.
func TestFederatedPublic(t *testing.T) {
	const on = "federated.updates=public"
	if j, err := Federated([]byte(federated), "f.yaml"); err != nil || j.Federated.Updates != "masked" {
		t.Fatal(err)
	}
	if _, err := Federated([]byte(federated), "f.yaml", on); err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{"federated.min_cohort=3", "federated.clip=1", "federated.method=scaffold",
		"federated.weights=equal", "federated.sample=0.5", "federated.noise={multiplier: 1}", "task=classify",
		"model.adapter={lora: {r: 4}}"} {
		if _, err := Federated([]byte(federated), "f.yaml", on, set); err == nil {
			t.Errorf("%s is taken", set)
		} else {
			problems(t, err)
		}
	}
}
