// Package check compares the keys of a job file with each other and with the abilities of this version. It knows no
// YAML and reads no file.
package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job/check/federation"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/strict"
	"github.com/starling-network/starling/exchange/aggregate"
)

// File is the job file that is checked.
type File interface {
	Given(path string) bool
	Bad(path string) bool // reports whether a key, or a section that holds it, has a problem
	Report(path, code, what, why, fix string)
	Note(path, text string)
}

// Keys checks the keys of a job, and reports problems and notes to its file. A check whose keys already have a problem
// is skipped, so one mistake is reported once.
func Keys(s spec.Spec, f File) {
	(&checker{s, f}).run()
}

type checker struct {
	spec.Spec
	file File
}

func (c *checker) run() {
	c.names()
	federation.Keys(c.Spec, c.file)
	experts(c)
	task(c)
	c.datasets()
	c.model()
	c.length()
	c.batch()
	c.optimizer()
	c.rounds()
	c.workers()
	c.outer()
	c.compression()
	c.replicas()
	c.moments()
	c.group()
	c.verification()
	attested(c)
	c.executor()
	c.slices()
	encrypted(c)
	parallel(c)
	c.machines()
	c.budget()
	c.followers()
	c.notes()
}

// bad reports whether one of several keys has a problem of its own.
func (c *checker) bad(paths ...string) bool { return slices.ContainsFunc(paths, c.file.Bad) }

func (c *checker) report(path, code, what, why, fix string) {
	c.file.Report(path, code, what, why, fix)
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (c *checker) names() {
	if !c.bad("name") && !nameForm.MatchString(c.Name) {
		c.report("name", problem.BadValue, fmt.Sprintf("name: %q cannot be a name", strict.Clip(c.Name)),
			"a name has 1 to 63 letters, digits, points, hyphens and underscores, and starts with a letter or a digit",
			"add name: my-job, or correct it")
	}
	for i, set := range c.Datasets {
		if p := fmt.Sprintf("datasets.%d.path", i); !c.bad(p) && set.Path == "" && c.file.Given(p) {
			c.report(p, problem.BadValue, p+" is empty", "it names the files to train on",
				`write a path or a glob such as "./data/*.txt"`)
		}
	}
	if p := "output.dir"; c.Output.Dir == "" && !c.bad(p) {
		c.report(p, problem.BadValue, p+" is empty", "the model has to go somewhere",
			"write a folder such as ./out, or remove the key")
	}
}

// datasets checks that what is to be learnt of the data is in it.
func (c *checker) datasets() {
	if at := "training.train_on_inputs"; !c.Training.TrainOnInputs && !c.AnswersExamples() && !c.Chats() &&
		!c.bad(at, "datasets") {
		c.report(at, problem.BadValue, at+" is false, and no dataset holds conversations",
			"other text has no answers of an assistant, and all of it is trained on",
			"remove it, or give conversations as {format: jsonl, field: messages}")
	}
	for i, set := range c.Datasets {
		if p := fmt.Sprintf("datasets.%d.format", i); strings.HasSuffix(set.Format, "-bin") &&
			c.Model.Tokenizer.Kind == spec.TrainBPE && !c.bad(p, "model.tokenizer") {
			c.report(p, problem.BadValue, fmt.Sprintf("%s is %s, and model.tokenizer is to be trained", p, set.Format),
				"its files hold tokens, and a tokenizer is trained on text",
				"name the tokenizer.json that the tokens were made with")
		}
	}
}

// model checks that it is said once what the model is: by its architecture, or by the model to start from.
func (c *checker) model() {
	const base, architecture, config = "model.base_model", "model.architecture", "model.config"
	switch m := c.Model; {
	case c.bad(base, architecture, config) || !c.file.Given("model"):
	case m.BaseModel == "" && m.Architecture == "":
		c.report("model", problem.MissingKey, architecture+" is missing",
			"it says what is trained, unless base_model names a model to start from",
			"add architecture: gpt2 or llama under model, or base_model: ./folder")
	case m.BaseModel == "" && (c.ReadsText() || c.EncodesText()) && m.Adapter != nil && m.Adapter.LoRA != nil:
		c.report("model.adapter", problem.BadValue, "model.adapter is given without "+base,
			"an adapter is an addition to a model that exists",
			"add base_model: ./folder, or remove adapter")
	case m.Bits() > 0 && (m.Adapter == nil || m.Adapter.LoRA == nil) || m.LoadIn4bit && m.LoadIn8bit:
		c.report("model", problem.BadValue,
			fmt.Sprintf("model.load_in_%dbit is given without model.adapter, or with another", m.Bits()),
			"weights in few bits are not trained", "add adapter: {lora: {r: 16}}, or remove it")
	case m.BaseModel != "" && len(m.Config) > 0:
		c.report(config, problem.BadValue, config+" is given, and "+base+" too",
			"the base model's own config.json says what it is", "remove config")
	}
}

func (c *checker) length() {
	t := c.Training
	if t.MaxSteps == 0 && t.NumEpochs == 0 && !c.bad("training", "training.max_steps", "training.num_epochs") &&
		c.file.Given("training") {
		c.report("training", problem.MissingKey, "training.max_steps is missing",
			"it is the length of the run in inner steps, and has no default",
			"add max_steps: 1000 under training, or num_epochs: 3 for three passes over the data")
	}
	if t.MaxSteps > 0 && t.NumEpochs > 0 && !c.bad("training.max_steps", "training.num_epochs") {
		c.report("training.num_epochs", problem.BadValue, "training.num_epochs and training.max_steps are both given",
			"each of them is the length of the run", "remove one of the two")
	}
	if t.WarmupRatio > 0 && c.file.Given("training.warmup_steps") &&
		!c.bad("training.warmup_ratio", "training.warmup_steps") {
		c.report("training.warmup_ratio", problem.BadValue, "training.warmup_ratio and training.warmup_steps are both given",
			"each of them is the length of the warm-up", "remove one of the two")
	}
	if at := "training.lr_decay_ratio"; c.file.Given(at) && t.LRScheduler != "wsd" && !c.bad(at, "training.lr_scheduler") {
		c.report(at, problem.BadValue, at+" is given and training.lr_scheduler is "+t.LRScheduler, "it is a setting of wsd",
			"remove it, or use lr_scheduler: wsd")
	}
	if t.MaxSteps > 0 && t.WarmupSteps >= t.MaxSteps && !c.bad("training.max_steps", "training.warmup_steps") {
		c.report("training.warmup_steps", problem.BadValue, fmt.Sprintf("training.warmup_steps is %d and training.max_steps "+
			"is %d",
			t.WarmupSteps, t.MaxSteps), "the learning rate would never reach its value",
			"use a warm-up of about a tenth of max_steps")
	}
}

func (c *checker) batch() {
	t, n := c.Training, c.Learners()
	if c.bad("training.global_batch_size", "strategy.workers.target") || n < 1 {
		return
	}
	if t.GlobalBatchSize%n != 0 {
		c.report("training.global_batch_size", problem.BadValue,
			fmt.Sprintf("training.global_batch_size is %d for %d workers", t.GlobalBatchSize, n),
			"every worker takes the same number of sequences in a step", "use "+neighbours(t.GlobalBatchSize, n))
		return
	}
	const micro, accumulate = "training.micro_batch_size", "training.gradient_accumulation_steps"
	each, m, g := c.WorkerBatch(), int(t.MicroBatchSize), int(t.GradientAccumulation)
	wrong := m > 0 && (each%m != 0 || g > 0 && m*g != each) || g > 0 && each%g != 0
	if wrong && !c.bad(micro, accumulate) {
		c.report(micro, problem.BadValue, fmt.Sprintf("%s is %d and %s is %d; 0 is auto", micro, m, accumulate, g),
			fmt.Sprintf("a worker takes %d sequences in a step, in parts of one size", each),
			"use a micro_batch_size that divides it, and leave gradient_accumulation_steps out")
	}
}

// optimizer checks that the settings of the inner optimizer are those that it has, and that it takes the steps.
func (c *checker) optimizer() {
	const at = "training.optimizer"
	o, outer := c.Training.Optimizer, c.Strategy.OuterOptimizer
	if c.bad(at, at+".name", "strategy.outer_optimizer.name") {
		return
	}
	c.owned(at, "optimizer is "+o.Name, setting{"momentum", o.Name == spec.SGD, "sgd"},
		setting{"nesterov", o.Name == spec.SGD && o.Momentum > 0, "sgd with a momentum"},
		setting{"betas", o.Name != spec.SGD, "adamw, lion and adafactor"}, setting{"eps", o.Name == spec.AdamW, "adamw"})
	if outer.Gradients() && (o.Name != spec.AdamW || o.State != "fp32") {
		c.report(at, problem.BadValue, fmt.Sprintf("%s is %s in %s and the outer optimizer is %s", at, o.Name, o.State,
			outer.Name), "a unit is a gradient, and the outer optimizer takes the steps", "remove it, or use method: diloco")
	}
}

// rounds checks that the run is a whole number of rounds, and that checkpoints are kept and losses are taken at the end
// of a round, where there is one checkpoint and not one for every worker.
func (c *checker) rounds() {
	steps, sync := c.Training.MaxSteps, c.Strategy.SyncSteps
	if steps < 1 || sync < 1 || c.bad("training.max_steps", "strategy.sync_steps") {
		return
	}
	if steps%sync != 0 {
		c.report("training.max_steps", problem.BadValue,
			fmt.Sprintf("training.max_steps is %d and strategy.sync_steps is %d", steps, sync),
			"a run is a whole number of rounds of sync_steps inner steps; a shorter last round is not built",
			fmt.Sprintf("use max_steps: %s, or sync_steps: %d", neighbours(steps, sync), spec.DivisorBelow(steps, sync)))
		return
	}
	for _, every := range []struct {
		path  string
		steps int
	}{{"checkpoint.every_steps", c.Checkpoint.EverySteps}, {"eval.every_steps", c.Eval.EverySteps}} {
		if every.steps%sync != 0 && !c.bad(every.path) {
			c.report(every.path, problem.BadValue,
				fmt.Sprintf("%s is %d and strategy.sync_steps is %d", every.path, every.steps, sync),
				"the workers agree on a checkpoint at the end of a round only", "use "+neighbours(every.steps, sync))
		}
	}
}

// neighbours names the multiples of unit around n that are above 0.
func neighbours(n, unit int) string {
	below := n / unit * unit
	if below == 0 {
		return fmt.Sprint(unit)
	}
	return fmt.Sprintf("%d or %d", below, below+unit)
}

func (c *checker) workers() {
	const at = "strategy.workers"
	w, s := c.Strategy.Workers, c.Strategy
	if c.bad(at, at+".min", at+".target", at+".max") {
		return
	}
	if w.Min > w.Target || w.Target > w.Max {
		c.report(at, problem.BadValue, fmt.Sprintf("%s has min %d, target %d and max %d", at, w.Min, w.Target, w.Max),
			"they must rise: min <= target <= max", "correct them, or give a single number")
	}
	c.relativeSpeeds()
	const trim = "strategy.aggregation.trim"
	switch {
	case c.bad(trim, "strategy.aggregation.rule"):
	case s.Aggregation.Rule != "trimmed_mean" && s.Aggregation.Trim != 0:
		c.report(trim, problem.BadValue, trim+" is given and the rule is "+s.Aggregation.Rule, "only a trimmed mean trims",
			"use rule: trimmed_mean, or remove trim")
	}
}

// relativeSpeeds checks that there is a unit for every speed, and that units of different sizes make sense.
func (c *checker) relativeSpeeds() {
	const at = "strategy.workers.relative_speeds"
	w, o := c.Strategy.Workers, c.Strategy.OuterOptimizer
	if w.RelativeSpeeds == nil ||
		c.bad(at, "strategy.workers.target", "strategy.method", "strategy.outer_optimizer.name") {
		return
	}
	switch {
	case len(w.RelativeSpeeds) != w.Target:
		c.report(at, problem.BadValue, fmt.Sprintf("%s has %d numbers for %d workers", at, len(w.RelativeSpeeds), w.Target),
			"a round has one unit for each of target workers, made for a machine of that speed",
			fmt.Sprintf("give %d numbers, or set target: %d", w.Target, len(w.RelativeSpeeds)))
	case slices.Max(w.RelativeSpeeds) != 1:
		c.report(at, problem.BadValue, fmt.Sprintf("the largest of %s is %g", at, slices.Max(w.RelativeSpeeds)),
			"speeds are relative to the fastest machine, whose unit has sync_steps", "divide them by the largest")
	case o.Gradients() || o.Name == "gossip":
		c.report(at, problem.BadValue, at+" is given and the outer optimizer is "+o.Name,
			"units that are gradients, or replicas in pairs, count the same each",
			"remove relative_speeds, or use method: diloco")
	}
}

// acceleratorForm is what accelerators of a machine look like: a model, or any, and how many, up to 9999.
var acceleratorForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}:[1-9][0-9]{0,3}$`)

// machines checks the accelerators that a job asks for.
func (c *checker) machines() {
	for i, m := range c.Resources.AnyOf {
		at := fmt.Sprintf("resources.any_of.%d.accelerators", i)
		if m.Accelerators != "" && !c.bad(at) && !acceleratorForm.MatchString(m.Accelerators) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s: %q is not a model and a number", at, strict.Clip(m.Accelerators)),
				"a job asks for a number of accelerators of a model", `write "any:1", or "h100:8"`)
		}
	}
}

func (c *checker) budget() {
	if c.Budget.MaxCost == 0 && !c.bad("budget.max_cost") {
		c.report("budget.max_cost", problem.BadValue, "budget.max_cost is 0", "the workers are paid from it",
			"give an amount of ZEN, such as 25")
	}
	symbol := c.Budget.Coin
	if !c.bad("budget.coin") && (len(symbol) > 16 || strings.Trim(symbol, "abcdefghijklmnopqrstuvwxyz") != "") {
		c.report("budget.coin", problem.BadValue,
			fmt.Sprintf("budget.coin: %q is not the symbol of a coin", strict.Clip(symbol)),
			"a symbol has at most 16 lower-case letters", "write one that starling market coins shows, such as usdc")
	}
}

// notes tells what is accepted and has no effect.
func (c *checker) notes() {
	a := c.Strategy.Aggregation
	for _, n := range []struct {
		asked      bool
		path, text string
	}{
		{c.file.Given("resources"), "resources", "a network matches them; in an embedded one everybody is this machine"},
		{a.Rule == "trimmed_mean" && a.Trim*float64(c.Strategy.Workers.Target) < 1, "strategy.aggregation",
			"this fraction of the workers is less than one: no update is dropped, and the rule is a mean"},
		{(a.Rule == "krum" || a.Rule == "multi_krum") && c.Strategy.Workers.Target < 5, "strategy.aggregation",
			"it takes 2f+3 workers to outvote f hostile ones: with fewer than 5 none is presumed hostile"},
		{(c.Strategy.Compression.TopKRatio > 0 || c.Strategy.Compression.Quantize == "sign") &&
			!c.Strategy.Compression.ErrorFeedback, "strategy.compression",
			"what is left out of an update is lost, and much is left out: expect to need more rounds"},
		{c.Strategy.Compression.TopKRatio > 0 && a.Rule != "contributor_mean", "strategy.aggregation.rule",
			"what an update leaves out counts as a vote for zero; contributor_mean does not count it"},
		{c.Strategy.Workers.Target >= spec.SlicesFrom && a.Slices == 0 && !aggregate.ByCoordinate(a.Rule),
			"strategy.aggregation",
			"this rule looks at whole updates: every member fetches all of them, and a round cannot be reduced in slices"},
		{c.Strategy.Method == "async_diloco" && c.Strategy.Workers.RelativeSpeeds == nil, "strategy.workers",
			"all units have the same number of steps, and slower machines are waited for; " +
				"relative_speeds: [1, 0.5, ...] gives them fewer"},
		{c.Budget.Coin != "" && c.Budget.Coin != "zen", "budget.coin", "a network is paid in it; an embedded one counts in " +
			"ZEN"},
		{c.Budget.MaxPricePerHour > 0, "budget.max_price_per_hour", "a network matches it; an embedded one has one price"},
		{c.Budget.Deadline > 0, "budget.deadline", "a network takes an order back that is not matched by then; a run has " +
			"as much time as it takes"},
	} {
		if n.asked {
			c.file.Note(n.path, n.text)
		}
	}
}
