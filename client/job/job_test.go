package job

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/strict"
	"github.com/starling-network/starling/exchange/aggregate"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files under testdata")

const minimal = `apiVersion: starling/v1
kind: TrainingJob
model:
  architecture: gpt2
datasets:
  - path: "*.txt"
training:
  max_steps: 240
`

func parse(t *testing.T, source string, overrides ...string) *Job {
	t.Helper()
	j, err := Parse([]byte(source), "dir/tiny.yaml", overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func problems(t *testing.T, err error) []*problem.Error {
	t.Helper()
	var l *problem.ErrorList
	if !errors.As(err, &l) || len(l.Errors) == 0 {
		t.Fatalf("got error %v, want an ErrorList", err)
	}
	return l.Errors
}

// TestErrors holds every report for the files in testdata/errors against its golden file.
func TestErrors(t *testing.T) {
	names, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		_, err = Parse(source, filepath.Base(name))
		for _, e := range problems(t, err) {
			if e.What == "" || e.Why == "" || e.Fix == "" || e.Code == "" || e.Line < 1 || e.Column < 1 {
				t.Errorf("%s: incomplete error %+v", name, *e)
			}
			fmt.Fprintf(&got, "%s: %s\n  why: %s\n  fix: %s\n  code: %s\n", e.Place(), e.What, e.Why, e.Fix, e.Code)
		}
		golden := strings.TrimSuffix(name, ".yaml") + ".golden"
		if *rewrite {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestContract reads a file that uses every key of the format.
func TestContract(t *testing.T) {
	source, err := os.ReadFile("testdata/contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(source, "contract.yaml")
	var paths []string
	for _, e := range problems(t, err) {
		if e.Code != problem.Unsupported {
			t.Errorf("unexpected %v", e)
		}
		paths = append(paths, strings.SplitN(e.What, ":", 2)[0])
	}
	want := []string{"strategy.compression.error_feedback"}
	slices.Sort(paths)
	if !slices.Equal(paths, want) {
		t.Errorf("unsupported: %v, want %v", paths, want)
	}

	j, err := Parse(source, "contract.yaml", "strategy.compression={quantize: int8}", "output={formats: [safetensors]}",
		"tracking={tensorboard: ./out/tb}")
	if err != nil {
		t.Fatal(err)
	}
	if j.Training.LearningRate != 3e-4 ||
		!reflect.DeepEqual(j.Strategy.Workers,
			spec.Workers{Min: 2, Target: 4, Max: 16, RelativeSpeeds: []float64{1, 0.75, 0.5, 0.25}}) ||
		j.Budget.MaxPricePerHour != 400_000 ||
		time.Duration(j.Budget.Deadline) != 24*time.Hour || j.Resources.AnyOf[1].CPUs != 4 || j.Resources.Disk != 20e9 ||
		j.Model.Tokenizer != (spec.Tokenizer{Kind: spec.TokenizerFile, Path: "./tokenizer.json"}) ||
		j.Eval.Prompts[0] != "ROMEO:" ||
		j.Rounds() != 40 || j.WorkerBatch() != 64 {
		t.Errorf("misread: %+v", j.Spec)
	}
	if got := j.Model.Config["hidden_size"]; got != 256 {
		t.Errorf("model.config.hidden_size is %v (%T), want the int 256", got, got)
	}
	strict.Walk("", reflect.TypeFor[spec.Spec](), func(path string, k strict.Key) {
		in := strings.Contains(string(source), k.Name+":") || strings.HasPrefix(path, "model.adapter.") ||
			path == "training.num_epochs" || strings.HasPrefix(path, "model.load_in_") || path == "training.lr_decay_ratio" ||
			path == "training.warmup_ratio" || path == "training.dropout" || path == "training.optimizer.state" ||
			strings.HasPrefix(path, "dpo") || strings.HasPrefix(path, "graph") || strings.HasPrefix(path, "rollout") ||
			strings.HasPrefix(path, "reward") || path == "datasets.label_field" ||
			path == "datasets.reward_fields" ||
			path == "datasets.positive_field" || strings.HasPrefix(path, "embed") || strings.HasPrefix(path, "expert") ||
			strings.HasPrefix(path, "diffusion") || strings.HasPrefix(path, "federated") ||
			strings.HasPrefix(path, "parallel") ||
			path == "training.optimizer.momentum" || path == "training.optimizer.nesterov" || path == "budget.coin"
		if !in {
			t.Errorf("%s: not a key of the contract", path)
		}
	})
}

// TestCompression reads which elements are sent, in how many bits, and refuses what no codec does.
func TestCompression(t *testing.T) {
	for set, want := range map[string][2]int{
		"{topk_ratio: 0.02, quantize: int8}": {82, 8}, "{topk_ratio: 0.015625, quantize: int2}": {64, 2},
		"{topk_ratio: 1.0e-9, quantize: none}": {1, 32},
		"{topk_ratio: 1, quantize: bf16}":      {4096, 16}, "{topk_ratio: 0.0078, quantize: sign, transform: dct}": {32, 1},
	} {
		j, err := Parse([]byte(minimal), "tiny.yaml", "strategy.compression="+set)
		if err != nil {
			t.Fatal(set, err)
		}
		if k, bits, ok := j.Strategy.Compression.TopK(); !ok || k != want[0] || bits != want[1] {
			t.Errorf("%s is %d of 4096 in %d bits, %v", set, k, bits, ok)
		}
	}
	for _, set := range []string{"{topk_ratio: 0.02, quantize: fp4}", "{transform: dct}",
		"{topk_ratio: 0.02, quantize: int8, transform: fft}", "{quantize: int2}", "{topk_ratio: 2}"} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", "strategy.compression="+set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
}

func TestNumericsDecideWhatIsCompared(t *testing.T) {
	if v := parse(t, minimal).Strategy.Verification; v.Screen != "updates" {
		t.Errorf("exact work is looked at with %q", v.Screen)
	}
	j, err := Parse([]byte(minimal), "tiny.yaml", "training.numerics=tolerant",
		"strategy.verification.tolerance={distance: 0.2, cosine: 0.9}")
	if err != nil || j.Strategy.Verification.Screen != "losses" ||
		j.Strategy.Verification.Tolerance != (spec.Tolerance{Distance: 0.2, Cosine: 0.9}) {
		t.Errorf("%+v, %v", j, err)
	}
	for _, set := range []string{"strategy.verification.tolerance={distance: 0.2}", "training.numerics=exact-int",
		"strategy.verification.screen=some"} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
}

func TestReplicas(t *testing.T) {
	for method, want := range map[string]spec.Replicas{
		"diloco": {Rounds: 8, Topology: "none"}, "sparta": {Sample: 32, Rounds: 8, Topology: "none"},
		"sparta_diloco":    {Sample: 32, Rounds: 8, Topology: "none"},
		"streaming_diloco": {Fragments: 2, Rounds: 8, Topology: "none"}, "gossip": {Rounds: 8, Topology: "complete"},
		"async_diloco": {Rounds: 8, Topology: "none"},
	} {
		if s := parse(t, minimal, "strategy.method="+method).Strategy; s.Replicas != want ||
			(method != "gossip") != (s.Group() == 8) {
			t.Errorf("%s: %+v in groups of %d rounds", method, s.Replicas, s.Group())
		}
	}
	s := parse(t, minimal, "strategy.method=sparta", "strategy.replicas={sample: 0, fragments: 3, rounds: 4}").Strategy
	if s.Replicas != (spec.Replicas{Fragments: 3, Rounds: 4, Topology: "none"}) || s.Group() != 4 {
		t.Errorf("%+v", s.Replicas)
	}
	if s := parse(t, minimal, "strategy.method=streaming_diloco",
		"strategy.replicas.overlap=1").Strategy; s.Replicas != (spec.Replicas{Fragments: 2, Rounds: 8, Overlap: 1,
		Topology: "none"}) {
		t.Errorf("%+v", s.Replicas)
	}
	for _, set := range []string{
		"strategy.replicas.fragments=2", "strategy.replicas.sample=24", "strategy.replicas.sample=1",
		"strategy.replicas={sample: 0, fragments: 1}",
		"strategy.replicas={sample: 0, fragments: 8}", "strategy.replicas.rounds=257",
		"strategy.compression.error_feedback=true",
		"strategy.outer_optimizer.name=adamw", "training.numerics=tolerant", "strategy.replicas.topology=ring",
		"strategy.outer_optimizer.name=gossip",
		"strategy.replicas.overlap=1",
	} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", "strategy.method=sparta", set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
}

func TestMomentRounds(t *testing.T) {
	const eight = "strategy.optimizer_state_rounds=8"
	if s := parse(t, minimal, "training.numerics=tolerant").Strategy; s.OptimizerStateRounds != 1 || s.Group() != 0 {
		t.Errorf("%d rounds of moments in groups of %d", s.OptimizerStateRounds, s.Group())
	}
	// as long as the other carried state
	for method, rounds := range map[string]int{"diloco": 8, "fedavg": 8, "sparseloco": 32, "sparta": 8, "gossip": 1,
		"allreduce": 1} {
		if s := parse(t, minimal, "strategy.method="+method).Strategy; s.OptimizerStateRounds != rounds {
			t.Errorf("%s: moments last for %d rounds, want %d", method, s.OptimizerStateRounds, rounds)
		}
	}
	for set, want := range map[string]float64{"{overlap: 1}": 0.4, "{overlap: 1, fragments: 2}": 0.6,
		"{overlap: 0}": 0.6} {
		if lr := parse(t, minimal, "strategy.method=diloco",
			"strategy.replicas="+set).Strategy.OuterOptimizer.LR; lr != want {
			t.Errorf("an outer rate of %v with replicas %s, want %v", lr, set, want)
		}
	}
	for _, with := range []string{"strategy.method=diloco", "strategy.method=sparseloco", "strategy.method=sparta",
		"strategy.replicas.overlap=1"} {
		if s := parse(t, minimal, "strategy.optimizer_state_rounds=12", with).Strategy; s.Group() != 12 {
			t.Errorf("%s: groups of %d rounds", with, s.Group())
		}
	}
	for _, set := range [][]string{
		{"strategy.method=gossip"}, {"strategy.method=allreduce", "strategy.sync_steps=1"}, {"training.numerics=tolerant"},
		{"strategy.method=sparseloco", "strategy.compression.feedback_rounds=4"},
		{"strategy.method=sparta", "strategy.replicas.rounds=4"},
		{"strategy.optimizer_state_rounds=257"}, {"strategy.optimizer_state_rounds=32", "strategy.workers=1024",
			"training.global_batch_size=1024"},
	} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", append([]string{eight}, set...)...); err == nil {
			t.Errorf("%s with %s is taken", eight, set)
		}
	}
}

func TestPairs(t *testing.T) {
	s := parse(t, minimal, "strategy.method=gossip", "strategy.replicas.topology=small_world").Strategy
	if o := s.OuterOptimizer; o.Name != "gossip" || o.LR != 0.7 || o.Momentum != 0.5 ||
		s.Replicas.Topology != "small_world" || s.Group() != 0 {
		t.Errorf("%+v", s)
	}
	for _, set := range []string{
		"strategy.replicas.sample=32", "strategy.replicas.topology=star", "strategy.outer_optimizer.name=sgd",
		"strategy.aggregation.rule=median",
		"strategy.compression.error_feedback=true", "training.numerics=tolerant", "strategy.workers=32",
	} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", "strategy.method=gossip", set,
			"training.global_batch_size=32"); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
}

// Units are made for machines of the paces that a job names, one for each; a method that is about them says so when
// there are none.
func TestPaces(t *testing.T) {
	const paces = "strategy.workers={target: 4, relative_speeds: [0.5, 1, 0.5, 0.25]}"
	if w := parse(t, minimal, paces).Strategy.Workers; !reflect.DeepEqual(w,
		spec.Workers{Min: 4, Target: 4, Max: 4, RelativeSpeeds: []float64{0.5, 1, 0.5, 0.25}}) {
		t.Errorf("%+v", w)
	}
	for _, set := range [][]string{
		{"strategy.workers={target: 4, relative_speeds: [1, 0.5]}"},
		{"strategy.workers={target: 4, relative_speeds: [0.5, 0.5, 0.5, 0.5]}"},
		{"strategy.workers={target: 4, relative_speeds: [1, 1, 1, 2]}"},
		{"strategy.workers={target: 4, relative_speeds: [1, 1, 1, 0]}"}, {paces, "strategy.method=gossip"},
		{paces, "strategy.method=allreduce", "strategy.sync_steps=1"},
	} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", set...); err == nil {
			t.Errorf("%v is taken", set)
		}
	}
	if n := parse(t, minimal, "strategy.method=async_diloco").Notes; len(n) != 1 ||
		!strings.Contains(n[0].Text, "relative_speeds") {
		t.Errorf("notes about no paces: %v", n)
	}
	if n := parse(t, minimal, "strategy.method=async_diloco", paces).Notes; len(n) != 0 {
		t.Errorf("notes about paces: %v", n)
	}
}

func TestSegmentsOfAudits(t *testing.T) {
	const drawn = "strategy.verification.audit=partial"
	if v := parse(t, minimal).Strategy.Verification; v.Audit != "whole" {
		t.Errorf("audits execute %q of a unit", v.Audit)
	}
	if v := parse(t, minimal, drawn).Strategy.Verification; v.Audit != "partial" {
		t.Errorf("audits execute %q of a unit", v.Audit)
	}
	for _, set := range []string{"training.numerics=tolerant", "strategy.verification.audit=3"} {
		if _, err := Parse([]byte(minimal), "tiny.yaml", drawn, set); err == nil {
			t.Errorf("%s is taken", set)
		}
	}
}

func TestSlicesNeedTheRightRule(t *testing.T) {
	const ask = "strategy.aggregation.slices=4"
	if n := parse(t, minimal, ask).Strategy.Aggregation.Slices; n != 4 {
		t.Errorf("%d slices", n)
	}
	parse(t, minimal, "strategy.aggregation.slices=1", "strategy.aggregation.rule=krum")
	parse(t, minimal, ask, "strategy.verification.screen=off", "strategy.aggregation.rule=median")
	for _, set := range []string{"strategy.aggregation.rule=krum", "training.numerics=tolerant",
		"strategy.verification.screen=losses"} {
		var list *problem.ErrorList
		if _, err := Parse([]byte(minimal), "tiny.yaml", ask, set); !errors.As(err, &list) ||
			list.Errors[0].Code != problem.Unsupported {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	j := parse(t, minimal)
	if j.Name != "tiny" || j.Strategy.SyncSteps != 20 || j.Rounds() != 12 || j.Training.GlobalBatchSize != 32 ||
		j.Checkpoint.EverySteps != 20 || j.Eval.EverySteps != 20 ||
		!reflect.DeepEqual(j.Strategy.Workers, spec.Workers{Min: 4, Target: 4, Max: 4}) ||
		j.Strategy.OuterOptimizer.Momentum != 0.9 || j.Budget.MaxCost.String() != "25" || j.Datasets[0].Weight != 1 {
		t.Errorf("defaults: %+v", j.Spec)
	}
	if len(j.Notes) != 0 {
		t.Errorf("a minimal job has notes: %v", j.Notes)
	}
	j = parse(t, minimal, "strategy.outer_optimizer.name=sgd", "strategy.workers={min: 2, target: 6}",
		"training.max_steps=241")
	if j.Strategy.OuterOptimizer.Momentum != 0 ||
		!reflect.DeepEqual(j.Strategy.Workers, spec.Workers{Min: 2, Target: 6, Max: 6}) || j.Training.GlobalBatchSize != 48 ||
		j.Strategy.SyncSteps != 1 {
		t.Errorf("derived: %+v", j.Spec)
	}
}

// Methods set what they are made of. A round of a job of gradients is a step, and what happens every so many steps
// keeps its distance.
func TestMethods(t *testing.T) {
	j := parse(t, minimal, "strategy.method=allreduce")
	if s := j.Strategy; s.SyncSteps != 1 || j.Rounds() != 240 || s.OuterOptimizer.Name != "adamw" ||
		s.OuterOptimizer.LR != 1 || s.Compression.Quantize != "none" ||
		j.Eval.EverySteps != 48 || j.Checkpoint.EverySteps != 48 {
		t.Errorf("allreduce: %+v", j.Spec)
	}
	s := parse(t, minimal, "strategy.method=demo").Strategy
	if k, bits, sparse := s.Compression.TopK(); s.OuterOptimizer.Name != "signsgd" || k != 32 || bits != 16 || !sparse ||
		!s.Compression.ErrorFeedback ||
		s.Compression.Transform != "dct" || s.Aggregation.Rule != "contributor_mean" || s.SyncSteps != 1 {
		t.Errorf("demo: %+v", s)
	}
	for _, set := range []string{"strategy.compression.topk_ratio=0", "strategy.compression.transform=none",
		"strategy.aggregation.slices=2"} {
		if c := parse(t, minimal, "strategy.method=demo", set).Strategy.Compression; c.Transform != "none" {
			t.Errorf("demo with %s: %+v", set, c)
		}
	}
	if c := parse(t, minimal, "strategy.method=demo",
		"strategy.aggregation.slices=1").Strategy.Compression; c.Transform != "dct" {
		t.Errorf("demo in one slice: %+v", c)
	}
	if s := parse(t, minimal, "strategy.method=fedprox").Strategy; s.ProximalMu != 0.01 ||
		s.OuterOptimizer.Name != "sgd" || s.SyncSteps != 20 {
		t.Errorf("fedprox: %+v", s)
	}
	if _, err := Parse([]byte(minimal), "tiny.yaml", "strategy.method=allreduce", "strategy.proximal_mu=0.1"); err == nil {
		t.Error("units of one step are pulled back to where they began")
	}
	for _, set := range []string{"strategy.method=demo", "strategy.outer_optimizer.name=adamw"} {
		_, err := Parse([]byte(minimal), "tiny.yaml", set, "strategy.sync_steps=2")
		if problems := problems(t, err); len(problems) != 1 || problems[0].Code != problem.BadValue ||
			!strings.HasPrefix(problems[0].What, "strategy.sync_steps is 2") {
			t.Errorf("%s in rounds of two steps: %v", set, err)
		}
	}
}

// The length of a round fits what the file says happens every so many steps.
func TestRoundsFitWhatIsGiven(t *testing.T) {
	for every, want := range map[int]int{12: 12, 24: 12, 30: 15, 60: 20, 240: 20} {
		j := parse(t, minimal, fmt.Sprintf("eval.every_steps=%d", every))
		if s := j.Strategy.SyncSteps; s != want || j.Eval.EverySteps != every || j.Checkpoint.EverySteps != want {
			t.Errorf("evaluated every %d steps: rounds of %d, checkpoints every %d", every, s, j.Checkpoint.EverySteps)
		}
	}
	if s := parse(t, minimal, "strategy.method=sparseloco").Strategy; s.SyncSteps != 10 ||
		s.Compression.FeedbackRounds != 32 {
		t.Errorf("sparseloco: %+v", s)
	}
	many := parse(t, minimal, "strategy.method=sparseloco", "strategy.workers=1024",
		"training.global_batch_size=1024").Strategy
	if n := many.Group(); n != 16 || many.OptimizerStateRounds != 16 {
		t.Errorf("1024 workers carry a state through %d rounds", n)
	}
}

// An override of null takes a key out of the file, so that it is what follows from the others.
func TestOverrideRemoves(t *testing.T) {
	sync := "strategy={sync_steps: 24}"
	if s := parse(t, minimal, sync, "strategy.method=allreduce", "strategy.sync_steps=null").Strategy; s.SyncSteps != 1 {
		t.Errorf("allreduce in rounds of %d steps", s.SyncSteps)
	}
	if j := parse(t, minimal, sync, "strategy.sync_steps=~", "labels.team=null"); j.Strategy.SyncSteps != 20 ||
		j.Given("strategy.sync_steps") || len(j.Labels) != 0 {
		t.Errorf("%+v", j.Strategy)
	}
	if _, err := Parse([]byte(minimal), "tiny.yaml", "training.max_steps=null"); problems(t,
		err)[0].Code != problem.MissingKey {
		t.Errorf("%v", err)
	}
}

func TestOverrides(t *testing.T) {
	j := parse(t, minimal, "training.learning_rate=1e-4", "datasets.0.format=jsonl", "budget.max_cost=0.000001",
		"labels.team=x")
	if j.Training.LearningRate != 1e-4 || j.Datasets[0].Format != "jsonl" || j.Budget.MaxCost != 1 ||
		j.Labels["team"] != "x" {
		t.Errorf("not applied: %+v", j.Spec)
	}
	if j = parse(t, minimal, "datasets.0.format=parquet"); j.Datasets[0].Format != "parquet" ||
		j.Datasets[0].Field != "text" {
		t.Errorf("parquet: %+v", j.Datasets[0])
	}
	for o, code := range map[string]string{
		"training.learning_rat=1": problem.UnknownKey,
		"training.max_steps=no":   problem.WrongType,
		"training.max_steps=":     problem.WrongType,
		"training.max_steps":      problem.BadOverride,
		"datasets.3.path=x":       problem.BadOverride,
		"kind.of.thing=x":         problem.BadOverride,
		"name=[":                  problem.BadOverride,
		"name=*x":                 problem.BadOverride,
	} {
		_, err := Parse([]byte(minimal), "tiny.yaml", o)
		e := problems(t, err)[0]
		if e.Code != code || e.File != "--set "+o || e.Line != 0 {
			t.Errorf("--set %s: %s %q, want %s at the override", o, e.Code, e, code)
		}
	}
}

func TestCanonicalNamesTheJobAndNotTheMachine(t *testing.T) {
	base := parse(t, minimal).Canonical()
	for _, same := range []string{"output.dir=/elsewhere", "datasets.0.path=/data/*.txt", "labels={a: b}", "seed=42",
		"strategy.workers={target: 4}", "tracking.tensorboard=x", "training.learning_rate=0.0003"} {
		if !bytes.Equal(parse(t, minimal, same).Canonical(), base) {
			t.Errorf("%s changes the canonical form", same)
		}
	}
	seen := map[string]string{string(base): "no override"}
	for _, other := range []string{"seed=43", "name=other", "training.learning_rate=0.0004", "model.config={n_layer: 2}",
		"model.config={n_layer: 3}", "model.tokenizer={train: {type: bpe, vocab_size: 300}}", "budget.max_cost=26",
		"val_set_size=0",
		"strategy.workers={target: 4, max: 5}", "checkpoint.keep_last=2"} {
		c := string(parse(t, minimal, other).Canonical())
		if twin, dup := seen[c]; dup {
			t.Errorf("%s has the canonical form of %s", other, twin)
		}
		seen[c] = other
	}
	if again := parse(t, minimal).Canonical(); !bytes.Equal(again, base) {
		t.Error("two readings differ")
	}
}

func TestParseOfSourceIsTheJob(t *testing.T) {
	j := parse(t, minimal, "seed=7")
	again, err := Parse(j.Source, j.Path, j.Overrides...)
	if err != nil || !reflect.DeepEqual(j, again) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestProblemPointsAtTheKey(t *testing.T) {
	j := parse(t, minimal+"sequence_len: 64\n", "model.config={n_layr: 2}")
	for path, place := range map[string]string{
		"sequence_len":        "dir/tiny.yaml:9:15",
		"training.max_steps":  "dir/tiny.yaml:8:14",
		"training.precision":  "dir/tiny.yaml:8:3",
		"budget.max_cost":     "dir/tiny.yaml:1:1",
		"model.config.n_layr": "--set model.config={n_layr: 2}",
	} {
		if got := j.Problem(path, "X", "", "", "").Place(); got != place {
			t.Errorf("%s is at %s, want %s", path, got, place)
		}
	}
}

func TestNotes(t *testing.T) {
	j := parse(t, minimal, "strategy.aggregation.rule=trimmed_mean", "resources.tier=silver")
	var got []string
	for _, n := range j.Notes {
		got = append(got, strings.SplitN(n.Text, ":", 2)[0])
	}
	if want := []string{"resources", "strategy.aggregation"}; !slices.Equal(got, want) {
		t.Errorf("notes of %v, want %v", got, want)
	}
	if n := parse(t, minimal, "strategy.aggregation.rule=krum").Notes; len(n) != 1 ||
		!strings.Contains(n[0].Text, "2f+3") {
		t.Errorf("notes about Krum among four: %v", n)
	}
	if n := parse(t, minimal, "strategy.aggregation.rule=krum", "strategy.workers=5",
		"training.global_batch_size=40").Notes; len(n) != 0 {
		t.Errorf("notes about Krum among five: %v", n)
	}
}

// Every rule that a job may name is one that exists.
func TestRulesExist(t *testing.T) {
	rules := strings.Fields(spec.Aggregation{}.Words()["rule"])
	if len(rules) == 0 {
		t.Fatal("no rules")
	}
	for _, rule := range rules {
		if !aggregate.Known(rule) {
			t.Errorf("no rule %q", rule)
		}
		if j := parse(t, minimal, "strategy.aggregation.rule="+rule); j.Strategy.Aggregation.Rule != rule {
			t.Errorf("rule %q became %q", rule, j.Strategy.Aggregation.Rule)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	names, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, n := range append(names, "testdata/contract.yaml") {
		if b, err := os.ReadFile(n); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if _, err := Federated(source, "f.yaml"); err != nil {
			problems(t, err)
		}
		j, err := Parse(source, "f.yaml")
		if err != nil {
			problems(t, err)
			return
		}
		if j.Training.MaxSteps != j.Rounds()*j.Strategy.SyncSteps ||
			j.Training.GlobalBatchSize != j.WorkerBatch()*j.Strategy.Workers.Target || j.Budget.MaxCost == 0 {
			t.Errorf("accepted an uneven job: %+v", j.Spec)
		}
		j.Canonical()
	})
}

// Every method that a file may name is listed as the file that names it is read.
func TestMethodsAreWhatFilesGet(t *testing.T) {
	all := spec.Methods()
	for _, m := range all {
		j, err := Parse([]byte("apiVersion: starling/v1\nkind: TrainingJob\nmodel: {architecture: gpt2}\ndatasets: "+
			"[{path: a.txt}]\ntraining: {max_steps: 10}\nstrategy: {method: "+m.Method+"}\n"), "job.yaml")
		if err != nil {
			t.Errorf("%s: %v", m.Method, err)
			continue
		}
		s := j.Strategy
		if !reflect.DeepEqual(s.OuterOptimizer, m.OuterOptimizer) || s.Compression != m.Compression ||
			s.Aggregation.Rule != m.Aggregation.Rule || s.ProximalMu != m.ProximalMu || s.Replicas != m.Replicas {
			t.Errorf("%s: %+v, a file gets %+v", m.Method, m, s)
		}
	}
	if len(all) != 13 {
		t.Errorf("%d methods", len(all))
	}
}
