// Package federation checks the keys of jobs on data that stay with their owners, as package check does those of all
// jobs. It knows no YAML and reads no file.
package federation

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/owners"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// File is the job file that is checked.
type File interface {
	Given(path string) bool
	Bad(path string) bool // reports whether a key, or a section that holds it, has a problem
	Report(path, code, what, why, fix string)
}

type checker struct {
	spec.Spec
	File
}

// bad reports whether one of several keys has a problem of its own.
func (c checker) bad(paths ...string) bool { return slices.ContainsFunc(paths, c.Bad) }

// methods are the methods whose outer step takes one mean update.
var methods = []string{"fedavg", "fedprox", "fedadam", "fedyogi", "diloco"}

// Keys checks that a job on data of owners asks for nothing that a secure sum of updates cannot give. A check of keys
// that already have a problem is skipped.
func Keys(all spec.Spec, file File) {
	const at = "federated"
	c := checker{all, file}
	if c.Kind != spec.FederatedJob {
		if c.Given(at) && !c.bad("kind", at) {
			c.Report(at, problem.BadValue, "federated is given and kind is "+c.Kind, "it describes how owners of data train "+
				"together", "write kind: FederatedJob, or remove it")
		}
		return
	}
	f, s := c.Federated, c.Strategy
	if f.Owners == 0 && !c.bad(at, at+".owners") {
		c.Report(at, problem.MissingKey, at+".owners is missing", "it is how many owners of data may take part",
			"add federated: {owners: 5}")
	}
	if f.Owners > 0 && f.MinCohort > f.Owners && !c.bad(at+".owners", at+".min_cohort") {
		c.Report(at+".min_cohort", problem.BadValue, fmt.Sprintf("%s.min_cohort is %d of %d owners", at, f.MinCohort,
			f.Owners), "no round could have a sum", fmt.Sprintf("use at most %d", f.Owners))
	}
	if byExamples := f.Weights == owners.ByExamples; byExamples != (f.FullExamples > 0) && !c.bad(at+".weights",
		at+".full_examples") {
		c.Report(at+".weights", problem.BadValue, fmt.Sprintf("%s.weights is %s and full_examples is %d", at, f.Weights,
			f.FullExamples), "an owner with as many examples, or more, counts fully, and others count in proportion",
			"give both, or neither")
	} else if byExamples && (f.Noise.Multiplier > 0 || f.ExampleNoise.On()) {
		c.Report(at+".weights", problem.BadValue, at+".weights is examples and noise is given",
			"the sum of the weights would disclose how many examples an owner has", "use weights: equal, or no noise")
	}
	classes, want := slices.Sorted(slices.Values(f.Classes)), c.Task == spec.TaskClassify
	if !c.bad(at+".classes", "task") && (want != (len(classes) > 0) || len(slices.Compact(classes)) < len(f.Classes)) {
		c.Report(at+".classes", problem.BadValue, fmt.Sprintf("%s.classes has %d names and task is %s", at, len(f.Classes),
			c.Task), "owners that lack a class need the list of all, each once; other tasks have none",
			"list the names of all classes where task is classify, and nowhere else")
	}
	for _, n := range []struct {
		path       string
		multiplier float64
	}{{at + ".noise.multiplier", f.Noise.Multiplier}, {at + ".example_noise.multiplier", f.ExampleNoise.Multiplier}} {
		if n.multiplier > 0 && n.multiplier < leastNoise && !c.bad(n.path) {
			c.Report(n.path, problem.BadValue, fmt.Sprintf("%s is %g", n.path, n.multiplier), "noise below one step of the "+
				"grid of updates protects nothing", fmt.Sprintf("use at least %g, or 0 for no noise", leastNoise))
		}
	}
	exampleNoise(c, f.ExampleNoise)
	scaffold(c)
	public(c)
	for _, p := range []string{"resources", "budget", "checkpoint", "tracking", "notify", "eval.prompts", "eval.tasks",
		"output.push", "output.license", "strategy.verification", "strategy.aggregation"} {
		if c.Given(p) && !c.bad(p) {
			c.Report(p, problem.Unsupported, p+" is given in a FederatedJob",
				"owners and their coordinator use no network, and it would have no effect", "remove the key")
		}
	}
	for _, k := range []struct {
		wrong              bool
		path, what, reason string
	}{
		{!slices.Contains(methods, s.Method), "strategy.method", s.Method,
			"its rounds need the updates of single owners, or states that owners keep"},
		{s.OuterOptimizer.Gradients() || s.OuterOptimizer.Name == "gossip", "strategy.outer_optimizer.name",
			s.OuterOptimizer.Name, "it does not take the mean of updates"},
		{s.Workers.Target != 1 || s.Workers.Max != 1 || s.Workers.RelativeSpeeds != nil, "strategy.workers",
			fmt.Sprint(s.Workers.Target), "an owner computes the one unit of a round by itself"},
		{s.Compression.Quantize != "none" || s.Compression.TopKRatio > 0 || s.Compression.ErrorFeedback ||
			s.Compression.Transform != "none", "strategy.compression", "other than none",
			"masks hide whole vectors of integers"},
		{s.OptimizerStateRounds != 1, "strategy.optimizer_state_rounds", fmt.Sprint(s.OptimizerStateRounds),
			"owners come and go, and keep no state"},
		{s.Replicas.On(), "strategy.replicas", "given", "owners come and go, and keep no model of their own"},
		{c.Task != spec.TaskLanguage && c.Task != spec.TaskClassify, "task", c.Task, "it is not built for owners of data"},
		{c.Model.Tokenizer.Kind != spec.ByteLevel && (c.Model.BaseModel == "" || c.Given("model.tokenizer")),
			"model.tokenizer", "not byte-level", "owners have the job file and the base model, and no further file"},
		{c.Training.NumEpochs > 0, "training.num_epochs", "given", "owners have different numbers of examples"},
		{c.Training.Numerics != spec.ExactF32, "training.numerics", c.Training.Numerics, "owners compute with the kernels"},
		{c.Executor != spec.Builtin, "executor", c.Executor, "owners compute with the kernels"},
		{len(c.Experts) > 0, "experts", "given", "it is not built for owners of data"},
	} {
		if k.wrong && !c.bad(k.path) {
			c.Report(k.path, problem.Unsupported, fmt.Sprintf("%s is %s in a FederatedJob", k.path, k.what), k.reason,
				"remove the key, or use another value; docs/federated.md has a job file")
		}
	}
}

// public checks that a job whose updates are public promises nothing that only masks and noise give, and that a
// committee can score its models.
func public(c checker) {
	const at = "federated.updates"
	if c.Federated.Updates != owners.Public || c.bad(at) {
		return
	}
	for _, k := range []string{"min_cohort", "clip", "method", "weights", "full_examples", "sample", "noise",
		"example_noise"} {
		if p := "federated." + k; c.Given(p) && !c.bad(p) {
			c.Report(p, problem.Unsupported, p+" is given with "+at+": public", "an update is a public model: no sum hides it, "+
				"and the network draws the owners of a round", "remove the key, or use updates: masked")
		}
	}
	for _, k := range []struct {
		wrong              bool
		path, what, reason string
	}{
		{c.Task != spec.TaskLanguage, "task", c.Task, "evaluators compute the losses of language models"},
		{c.Model.Adapter != nil, "model.adapter", "given", "evaluators read whole models"},
	} {
		if k.wrong && !c.bad(k.path) {
			c.Report(k.path, problem.Unsupported, fmt.Sprintf("%s is %s with %s: public", k.path, k.what, at), k.reason,
				"remove the key, or use updates: masked")
		}
	}
}

// scaffold checks that control variates, if there are some, are mean gradients of the owners.
func scaffold(c checker) {
	const at = "federated.method"
	f, t := c.Federated, c.Training
	if f.Method != owners.Scaffold || c.bad(at) {
		return
	}
	for _, k := range []struct {
		wrong              bool
		path, what, reason string
	}{
		{c.Strategy.Method != "fedavg", "strategy.method", c.Strategy.Method, "it is a method of its own, and its model " +
			"moves by the mean of updates"},
		{t.Optimizer.Name != spec.SGD || t.Optimizer.Remembers() || t.Optimizer.WeightDecay > 0, "training.optimizer",
			"not sgd without momentum and weight_decay", "the mean gradient of an owner follows from its update by plain " +
				"gradient descent alone"},
		{t.MaxGradNorm > 0, "training.max_grad_norm", fmt.Sprint(t.MaxGradNorm), "the mean gradient of an owner follows " +
			"from its update by plain gradient descent alone"},
		{f.Weights != owners.Equal, "federated.weights", f.Weights, "the coordinator knows the mean variate of owners " +
			"that count the same"},
		{f.ExampleNoise.On(), "federated.example_noise", "given", "it has steps of its own"},
		{c.Model.Adapter != nil, "model.adapter", "given", "its factors take turns, and a variate is of all weights"},
	} {
		if k.wrong && !c.bad(k.path) {
			c.Report(k.path, problem.Unsupported, fmt.Sprintf("%s is %s with %s: scaffold", k.path, k.what, at), k.reason,
				"remove the key, or use method: mean; docs/federated.md has the method")
		}
	}
}

// leastNoise is the least multiplier of noise that is not 0: one step of the grid of package fixedpoint is 2^-22.
const leastNoise = 1e-6

// exampleNoise checks the keys about noise for single examples.
func exampleNoise(c checker, n owners.ExampleNoise) {
	const at = "federated.example_noise"
	if c.bad(at, at+".multiplier") || !n.On() {
		return
	}
	if b := c.Training.GlobalBatchSize; n.MinExamples < b && !c.bad(at+".min_examples", "training.global_batch_size") {
		c.Report(at+".min_examples", problem.BadValue, fmt.Sprintf("%s.min_examples is %d and training.global_batch_size %d",
			at, n.MinExamples, b), "a step draws each example with a probability of batch through examples, which epsilon "+
			"follows from", "give the number of examples that every owner has at least")
	}
	for _, k := range []struct {
		wrong              bool
		path, what, reason string
	}{
		{c.Task != spec.TaskClassify, "task", c.Task, "a document may lie in several examples, and each of them is " +
			"protected by itself"},
		{c.Strategy.Method == "fedprox", "strategy.method", c.Strategy.Method, "its pull is a part of the gradient, and " +
			"would be clipped with that of an example"},
		{c.Given("training.micro_batch_size") || c.Given("training.gradient_accumulation_steps"),
			"training.micro_batch_size", "given", "an owner computes the gradient of one example at a time"},
	} {
		if k.wrong && !c.bad(k.path) {
			c.Report(k.path, problem.Unsupported, fmt.Sprintf("%s is %s with %s", k.path, k.what, at), k.reason,
				"remove the key, or use another value; docs/federated.md has the section")
		}
	}
}
