package job

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/exchange/aggregate"
)

// checker holds keys against each other and against what this version runs. A check whose keys already have a
// problem is skipped, so one mistake is reported once.
type checker struct {
	*Job
	d *decoder
}

func (c *checker) run() {
	c.names()
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
	c.executor()
	c.slices()
	c.machines()
	c.budget()
	c.followers()
	c.notes()
}

// bad reports whether a key, or a section that holds it, has a problem of its own.
func (c *checker) bad(paths ...string) bool {
	for _, p := range paths {
		for q := p; q != ""; q = q[:max(0, strings.LastIndexByte(q, '.'))] {
			if c.d.bad[q] {
				return true
			}
		}
	}
	return false
}

func (c *checker) report(path, code, what, why, fix string) {
	c.d.report(c.mark(path), path, code, what, why, fix)
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (c *checker) names() {
	if !c.bad("name") && !nameForm.MatchString(c.Name) {
		c.report("name", CodeBadValue, fmt.Sprintf("name: %q cannot be a name", clip(c.Name)),
			"a name has 1 to 63 letters, digits, points, hyphens and underscores, and starts with a letter or a digit",
			"add name: my-job, or correct it")
	}
	for i, set := range c.Datasets {
		if p := fmt.Sprintf("datasets.%d.path", i); !c.bad(p) && set.Path == "" && c.Given(p) {
			c.report(p, CodeBadValue, p+" is empty", "it names the files to train on",
				`write a path or a glob such as "./data/*.txt"`)
		}
	}
	if p := "output.dir"; c.Output.Dir == "" && !c.bad(p) {
		c.report(p, CodeBadValue, p+" is empty", "the model has to go somewhere",
			"write a folder such as ./out, or remove the key")
	}
}

// datasets checks that what is to be learnt of the data is in it.
func (c *checker) datasets() {
	if at := "training.train_on_inputs"; !c.Training.TrainOnInputs && !c.Chats() && !c.bad(at, "datasets") {
		c.report(at, CodeBadValue, at+" is false, and no dataset holds conversations",
			"in other text nobody answers, and all of it is trained on",
			"remove it, or give conversations as {format: jsonl, field: messages}")
	}
	for i, set := range c.Datasets {
		if p := fmt.Sprintf("datasets.%d.format", i); strings.HasSuffix(set.Format, "-bin") &&
			c.Model.Tokenizer.Kind == TrainBPE && !c.bad(p, "model.tokenizer") {
			c.report(p, CodeBadValue, fmt.Sprintf("%s is %s, and model.tokenizer is to be trained", p, set.Format),
				"its files hold tokens, and a tokenizer is trained on text",
				"name the tokenizer.json that the tokens were made with")
		}
	}
}

// model checks that it is said once what the model is: by its architecture, or by the model to start from.
func (c *checker) model() {
	const base, architecture, config = "model.base_model", "model.architecture", "model.config"
	switch m := c.Model; {
	case c.bad(base, architecture, config) || !c.Given("model"):
	case m.BaseModel == "" && m.Architecture == "":
		c.report("model", CodeMissingKey, architecture+" is missing",
			"it says what is trained, unless base_model names a model to start from",
			"add architecture: gpt2 or llama under model, or base_model: ./folder")
	case m.BaseModel == "" && m.Adapter != nil && m.Adapter.LoRA != nil:
		c.report("model.adapter", CodeBadValue, "model.adapter is given without "+base,
			"an adapter is an addition to a model that exists",
			"add base_model: ./folder, or remove adapter")
	case m.Bits() > 0 && (m.Adapter == nil || m.Adapter.LoRA == nil) || m.LoadIn4bit && m.LoadIn8bit:
		c.report("model", CodeBadValue,
			fmt.Sprintf("model.load_in_%dbit is given without model.adapter, or with another", m.Bits()),
			"weights in few bits are not trained", "add adapter: {lora: {r: 16}}, or remove it")
	case m.BaseModel != "" && len(m.Config) > 0:
		c.report(config, CodeBadValue, config+" is given, and "+base+" too",
			"the base model's own config.json says what it is", "remove config")
	}
}

func (c *checker) length() {
	t := c.Training
	if t.MaxSteps == 0 && t.NumEpochs == 0 && !c.bad("training", "training.max_steps", "training.num_epochs") &&
		c.Given("training") {
		c.report("training", CodeMissingKey, "training.max_steps is missing",
			"it is the length of the run in inner steps, and has no default",
			"add max_steps: 1000 under training, or num_epochs: 3 for three passes over the data")
	}
	if t.MaxSteps > 0 && t.NumEpochs > 0 && !c.bad("training.max_steps", "training.num_epochs") {
		c.report("training.num_epochs", CodeBadValue, "training.num_epochs and training.max_steps are both given",
			"each of them is the length of the run", "remove one of the two")
	}
	if t.WarmupRatio > 0 && c.Given("training.warmup_steps") && !c.bad("training.warmup_ratio", "training.warmup_steps") {
		c.report("training.warmup_ratio", CodeBadValue, "training.warmup_ratio and training.warmup_steps are both given",
			"each of them is the length of the warm-up", "remove one of the two")
	}
	if at := "training.lr_decay_ratio"; c.Given(at) && t.LRScheduler != "wsd" && !c.bad(at, "training.lr_scheduler") {
		c.report(at, CodeBadValue, at+" is given and training.lr_scheduler is "+t.LRScheduler, "it is a setting of wsd",
			"remove it, or use lr_scheduler: wsd")
	}
	if t.MaxSteps > 0 && t.WarmupSteps >= t.MaxSteps && !c.bad("training.max_steps", "training.warmup_steps") {
		c.report("training.warmup_steps", CodeBadValue, fmt.Sprintf("training.warmup_steps is %d and training.max_steps "+
			"is %d",
			t.WarmupSteps, t.MaxSteps), "the learning rate would never reach its value",
			"use a warm-up of about a tenth of max_steps")
	}
}

func (c *checker) batch() {
	t, n := c.Training, c.Strategy.Workers.Target
	if c.bad("training.global_batch_size", "strategy.workers.target") || n < 1 {
		return
	}
	if t.GlobalBatchSize%n != 0 {
		c.report("training.global_batch_size", CodeBadValue,
			fmt.Sprintf("training.global_batch_size is %d for %d workers", t.GlobalBatchSize, n),
			"every worker takes the same number of sequences in a step", "use "+neighbours(t.GlobalBatchSize, n))
		return
	}
	const micro, accumulate = "training.micro_batch_size", "training.gradient_accumulation_steps"
	each, m, g := c.WorkerBatch(), int(t.MicroBatchSize), int(t.GradientAccumulation)
	wrong := m > 0 && (each%m != 0 || g > 0 && m*g != each) || g > 0 && each%g != 0
	if wrong && !c.bad(micro, accumulate) {
		c.report(micro, CodeBadValue, fmt.Sprintf("%s is %d and %s is %d; 0 is auto", micro, m, accumulate, g),
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
	c.owned(at, "optimizer is "+o.Name, setting{"momentum", o.Name == SGD, "sgd"},
		setting{"nesterov", o.Name == SGD && o.Momentum > 0, "sgd with a momentum"},
		setting{"betas", o.Name != SGD, "adamw, lion and adafactor"}, setting{"eps", o.Name == AdamW, "adamw"})
	if outer.Gradients() && (o.Name != AdamW || o.State == "bf16") {
		c.report(at, CodeBadValue, fmt.Sprintf("%s is %s in %s and the outer optimizer is %s", at, o.Name, o.State,
			outer.Name), "a unit is a gradient, and the outer optimizer takes the steps", "remove it, or use method: diloco")
	}
}

// rounds checks that the run is a whole number of rounds, and that what happens every so many steps happens at the end
// of a round, where there is one checkpoint and not one for every worker.
func (c *checker) rounds() {
	steps, sync := c.Training.MaxSteps, c.Strategy.SyncSteps
	if steps < 1 || sync < 1 || c.bad("training.max_steps", "strategy.sync_steps") {
		return
	}
	if steps%sync != 0 {
		c.report("training.max_steps", CodeBadValue,
			fmt.Sprintf("training.max_steps is %d and strategy.sync_steps is %d", steps, sync),
			"a run is a whole number of rounds of sync_steps inner steps; a shorter last round is not built",
			fmt.Sprintf("use max_steps: %s, or sync_steps: %d", neighbours(steps, sync), divisorBelow(steps, sync)))
		return
	}
	for _, every := range []struct {
		path  string
		steps int
	}{{"checkpoint.every_steps", c.Checkpoint.EverySteps}, {"eval.every_steps", c.Eval.EverySteps}} {
		if every.steps%sync != 0 && !c.bad(every.path) {
			c.report(every.path, CodeBadValue,
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
		c.report(at, CodeBadValue, fmt.Sprintf("%s has min %d, target %d and max %d", at, w.Min, w.Target, w.Max),
			"they must rise: min <= target <= max", "correct them, or give a single number")
	}
	c.paces()
	const trim = "strategy.aggregation.trim"
	switch {
	case c.bad(trim, "strategy.aggregation.rule"):
	case s.Aggregation.Rule != "trimmed_mean" && s.Aggregation.Trim != 0:
		c.report(trim, CodeBadValue, trim+" is given and the rule is "+s.Aggregation.Rule, "only a trimmed mean trims",
			"use rule: trimmed_mean, or remove trim")
	}
}

// paces checks that there is a unit for every pace, and that units of different sizes make sense.
func (c *checker) paces() {
	const at = "strategy.workers.paces"
	w, o := c.Strategy.Workers, c.Strategy.OuterOptimizer
	if w.Paces == nil || c.bad(at, "strategy.workers.target", "strategy.method", "strategy.outer_optimizer.name") {
		return
	}
	switch {
	case len(w.Paces) != w.Target:
		c.report(at, CodeBadValue, fmt.Sprintf("%s has %d numbers for %d workers", at, len(w.Paces), w.Target),
			"a round has one unit for each of target workers, made for a machine of that pace",
			fmt.Sprintf("give %d numbers, or set target: %d", w.Target, len(w.Paces)))
	case slices.Max(w.Paces) != 1:
		c.report(at, CodeBadValue, fmt.Sprintf("the largest of %s is %g", at, slices.Max(w.Paces)),
			"paces are beside the fastest machine, whose unit has sync_steps", "divide them by the largest")
	case o.Gradients() || o.Name == "pairs":
		c.report(at, CodeBadValue, at+" is given and the outer optimizer is "+o.Name,
			"units that are gradients, or replicas in pairs, count the same each", "remove paces, or use method: diloco")
	}
}

// outer checks that the settings of the outer optimizer are those that it has.
func (c *checker) outer() {
	const at, sync = "strategy.outer_optimizer", "strategy.sync_steps"
	o := c.Strategy.OuterOptimizer
	if c.bad(at, at+".name") {
		return
	}
	if n := c.Strategy.SyncSteps; o.Gradients() && n != 1 && !c.bad(sync, "strategy.method") {
		c.report(sync, CodeBadValue, fmt.Sprintf("%s is %d and the outer optimizer is %s", sync, n, o.Name),
			"it takes every step itself, with the gradients of all workers: a round has one",
			"remove sync_steps, or use method: diloco")
	}
	const mu = "strategy.proximal_mu"
	if o.Gradients() && c.Strategy.ProximalMu > 0 && !c.bad(mu, "strategy.method") {
		c.report(mu, CodeBadValue, fmt.Sprintf("%s is %g and the outer optimizer is %s", mu, c.Strategy.ProximalMu, o.Name),
			"a unit of one step is where it began", "remove proximal_mu, or use method: fedprox")
	}
	c.owned(at, "outer optimizer is "+o.Name,
		setting{"momentum", o.Name == "nesterov" || o.Name == "pairs" || o.Momentum == 0, "nesterov and pairs"},
		setting{"betas", o.Adaptive(), "adam and yogi"}, setting{"eps", o.Adaptive(), "adam and yogi"})
}

// setting is a key of an optimizer, whether it has it, and which do.
type setting struct {
	key   string
	has   bool
	owner string
}

// owned refuses settings that are given and that an optimizer does not have.
func (c *checker) owned(at, is string, settings ...setting) {
	for _, k := range settings {
		if p := at + "." + k.key; !k.has && c.Given(p) && !c.bad(p) {
			c.report(p, CodeBadValue, p+" is given and the "+is, "it is a setting of "+k.owner,
				"remove "+k.key+", or use another name")
		}
	}
}

// compression checks that what is sent can be sent so.
func (c *checker) compression() {
	const ratio, quantize, feedback = "strategy.compression.topk_ratio", "strategy.compression.quantize",
		"strategy.compression.error_feedback"
	const transform = "strategy.compression.transform"
	if c.bad(ratio, quantize, transform, "strategy.method") {
		return
	}
	_, bits, sparse := c.Strategy.Compression.TopK()
	switch x := c.Strategy.Compression; {
	case !x.ErrorFeedback && c.Given("strategy.compression.feedback_rounds"):
		c.report("strategy.compression.feedback_rounds", CodeBadValue,
			"strategy.compression.feedback_rounds is given without "+feedback,
			"it is a setting of error feedback", "add error_feedback: true, or remove feedback_rounds")
	case x.ErrorFeedback && c.Training.Numerics == Tolerant && !c.bad(feedback, "training.numerics"):
		c.report(feedback, CodeUnsupported, feedback+": it is given and training.numerics is "+Tolerant,
			"what a unit hands on would be different for every worker, and nobody could check it",
			"set error_feedback: false, or use another numerics")
	case x.ErrorFeedback && !sparse && x.Quantize == "none":
		c.report(feedback, CodeBadValue, feedback+" is given and nothing is left out of an update",
			"quantize is none, and all elements are sent",
			"set error_feedback: false, or compress")
	}
	switch r := c.Strategy.Replicas; {
	case c.Strategy.Compression.Transform == "none":
	case !sparse:
		c.report(transform, CodeBadValue, transform+" is given and every element is sent",
			"it is there to have what counts in few elements", "give topk_ratio: 0.0156, or use transform: none")
	case r.On() && !c.bad("strategy.replicas"):
		c.report(transform, CodeUnsupported, transform+" is given beside strategy.replicas",
			"where a replica goes on from is no frequencies", "use transform: none, or method: demo")
	}
	switch {
	case sparse && bits == 0:
		c.report(quantize, CodeUnsupported,
			fmt.Sprintf("%s is %s and %s is given", quantize, c.Strategy.Compression.Quantize, ratio),
			"what is sent of chunks of 4096 elements has values of 1, 2, 8, 16 or 32 bits",
			"use quantize: sign, int2, int8, bf16 or none, or topk_ratio: null")
	case !sparse && c.Strategy.Compression.Quantize == "int2":
		c.report(quantize, CodeBadValue, quantize+" is int2 and every element is sent",
			"two bits are for the largest elements of an update, which are far from zero",
			"give topk_ratio: 0.0156, or use quantize: fp4")
	}
}

// mostPairs is how many replicas that average in pairs a job may have.
const mostPairs = 16

// replicas checks that what rounds exchange of replicas is one thing, and that nothing else is handed on.
func (c *checker) replicas() {
	const at, sample, fragments, rounds = "strategy.replicas", "strategy.replicas.sample", "strategy.replicas.fragments",
		"strategy.replicas.rounds"
	const overlap, topology, optimizer = "strategy.replicas.overlap", "strategy.replicas.topology",
		"strategy.outer_optimizer.name"
	r := c.Strategy.Replicas
	if c.bad(at, sample, fragments, rounds, overlap, topology, optimizer, "strategy.method", "strategy.workers") {
		return
	}
	name, rule := c.Strategy.OuterOptimizer.Name, c.Strategy.Aggregation.Rule
	switch paired := r.Paired(); {
	case paired != (name == "pairs"):
		c.report(optimizer, CodeBadValue, fmt.Sprintf("%s is %s and %s is %s", optimizer, name, topology, r.Topology),
			"it moves replicas that average in pairs, and nothing else does",
			"use method: gossip, or another name and topology: none")
		return
	case paired && (r.Sample > 0 || r.Fragments > 0 || r.Overlap > 0 || rule != "mean" ||
		c.Strategy.Workers.Target > mostPairs):
		c.report(topology, CodeBadValue, fmt.Sprintf("%s is given with %s %d, %s %d, %s %v, rule %s and %d workers",
			topology, sample, r.Sample, fragments, r.Fragments, overlap, r.Overlap, rule, c.Strategy.Workers.Target),
			fmt.Sprintf("pairs exchange everything and take its mean, and a checkpoint has room for %d replicas", mostPairs),
			"use method: gossip with the rule mean and fewer workers")
		return
	case !r.On():
		return
	}
	switch {
	case r.Sample > 0 && r.Fragments > 0:
		c.report(at, CodeBadValue, sample+" and "+fragments+" are given",
			"a round exchanges random elements or whole fragments", "remove one of them, or set it to 0")
	case r.Overlap > 0 && r.Sample > 0:
		c.report(overlap, CodeUnsupported, fmt.Sprintf("%s is given with %s %d", overlap, sample, r.Sample),
			"of a parameter a unit would hand on both what it left out and what is under way",
			"use method: diloco or streaming_diloco, or overlap: 0")
	case r.Sample > 0 && (r.Sample < 2 || r.Sample&(r.Sample-1) != 0):
		c.report(sample, CodeBadValue, fmt.Sprintf("%s is %d", sample, r.Sample),
			"parts of a parameter are drawn alike: it is a power of two from 2 on", "use 16, 32 or 64")
	case r.Fragments == 1 || r.Fragments >= r.Rounds:
		c.report(fragments, CodeBadValue, fmt.Sprintf("%s is %d and %s is %d", fragments, r.Fragments, rounds, r.Rounds),
			"every fragment has its turn before the last of these rounds, which exchanges all",
			fmt.Sprintf("use 2 to %d fragments", max(2, r.Rounds-1)))
	}
	for _, other := range []struct {
		is        bool
		path, why string
	}{
		{c.Strategy.Compression.ErrorFeedback, "strategy.compression.error_feedback",
			"a replica keeps what its update leaves out by itself"},
		{c.Strategy.OuterOptimizer.Gradients(), "strategy.outer_optimizer.name",
			"units that are gradients have no replica to go on from"},
		{c.Training.Numerics == Tolerant, "training.numerics",
			"what a unit hands on would be different for every worker, and nobody could check it"},
	} {
		if other.is && !c.bad(other.path) {
			c.report(at, CodeBadValue, fmt.Sprintf("%s is given beside %s", at, other.path), other.why,
				"use method: diloco, or change "+other.path)
		}
	}
}

// mostOpen is how many units may be in the rounds through which a state is handed on: these are open together.
const mostOpen = 16 << 10

// group checks that the rounds through which units hand on a state may be open together.
func (c *checker) group() {
	const at = "strategy.workers"
	if s := c.Strategy; !c.bad(at, at+".target", "strategy.moment_rounds", "strategy.replicas.rounds",
		"strategy.compression.feedback_rounds") && int(s.Group())*s.Workers.Target > mostOpen {
		c.report(at, CodeBadValue, fmt.Sprintf("%s is %d and units hand on a state through %d rounds", at, s.Workers.Target,
			s.Group()),
			fmt.Sprintf("such rounds become final together, and at most %d units may be open", mostOpen),
			fmt.Sprintf("use at most %d workers, or fewer such rounds", mostOpen/s.Group()))
	}
}

// moments checks that moments that last can be handed on, with what else a unit hands on.
func (c *checker) moments() {
	const at = "strategy.moment_rounds"
	s := c.Strategy
	if s.MomentRounds == 1 || !c.Given(at) || // a default fits what is checked elsewhere
		c.bad(at, "strategy.replicas.rounds", "strategy.compression.feedback_rounds", "strategy.outer_optimizer.name",
			"training.numerics") {
		return
	}
	switch {
	case s.OuterOptimizer.Gradients() || !c.Training.Optimizer.Remembers():
		c.report(at, CodeBadValue, at+" is given and units have no moments",
			"those that are gradients have none, and those of sgd without a momentum", "remove it")
	case s.Replicas.Paired():
		c.report(at, CodeUnsupported, at+" is given and replicas average in pairs",
			"they are in the checkpoint, and hand on nothing", "remove it, or use another method")
	case c.Training.Numerics == Tolerant:
		c.report(at, CodeUnsupported, at+" is given and training.numerics is "+Tolerant,
			"what a unit hands on would be different for every worker, and nobody could check it",
			"remove it, or use another numerics")
	case int(s.Group()) != s.MomentRounds:
		c.report(at, CodeBadValue, fmt.Sprintf("%s is %d, and what else a unit hands on lasts for %d rounds", at,
			s.MomentRounds, s.Group()),
			"it hands on one state, which begins with nothing in the first of these rounds",
			"give feedback_rounds or replicas.rounds the same number, or neither")
	}
}

// SlicesFrom is from how many workers on rounds are reduced in slices unless the job says otherwise.
const SlicesFrom = 32

// slices checks that the rounds of a job that asks for slices can be reduced in slices.
func (c *checker) slices() {
	const at, rule, screen = "strategy.aggregation.slices", "strategy.aggregation.rule", "strategy.verification.screen"
	a := c.Strategy.Aggregation
	if a.Slices < 2 || c.bad(at, rule, screen, "training.numerics") {
		return
	}
	switch {
	case !aggregate.ByCoordinate(a.Rule):
		c.report(at, CodeUnsupported, at+" is given and the rule is "+a.Rule,
			"it looks at whole updates, and who reduces a slice has parts of them",
			"use rule: mean, trimmed_mean, median or contributor_mean, or slices: 1")
	case c.Training.Numerics == Tolerant:
		c.report(at, CodeUnsupported, at+" is given and training.numerics is "+Tolerant,
			"members look at whole updates of tolerant work",
			"use slices: 1")
	case c.Given(screen) && c.Strategy.Verification.Screen != "off":
		c.report(at, CodeUnsupported, at+" is given and updates are to be screened",
			"nobody sees a whole update of a round in slices",
			"use screen: off, or slices: 1")
	}
}

// verification checks that a tolerance is given where it is used, and segments where they can be drawn.
func (c *checker) verification() {
	const at, segments = "strategy.verification.tolerance", "strategy.verification.segments"
	if c.Strategy.Verification.Segments == "drawn" && c.Training.Numerics == Tolerant &&
		!c.bad(segments, "training.numerics") {
		c.report(segments, CodeUnsupported, segments+" is drawn and training.numerics is tolerant",
			"tolerant work is judged by its update, which only a whole unit has",
			"use segments: all, or another numerics")
	}
	if c.Given(at) && c.Training.Numerics != Tolerant && !c.bad(at, "training.numerics") {
		c.report(at, CodeBadValue, at+" is given and training.numerics is "+c.Training.Numerics,
			"exact work is settled by its bits",
			"use numerics: tolerant, or remove tolerance")
	}
}

// executor checks that another executor is used where a difference in the last bits convicts nobody.
func (c *checker) executor() {
	const at, numerics = "executor", "training.numerics"
	a, t := c.Model.Adapter, c.Training
	drops, half := t.Dropout > 0 || a != nil && a.LoRA != nil && a.LoRA.Dropout > 0, t.Optimizer.State == "bf16"
	if c.Executor == Torch && (drops || half) && !c.bad(at, "model.adapter", "training.optimizer") {
		c.report(at, CodeBadValue, fmt.Sprintf("%s is %s, with dropout: %t, and moments in bf16: %t", at, Torch, drops, half),
			"PyTorch is not told what is dropped, and is handed moments in float32", "remove both, or use executor: builtin")
	}
	if c.Executor == Torch && c.Training.Numerics != Tolerant && !c.bad(at, numerics) {
		c.report(at, CodeBadValue, at+" is "+Torch+" and "+numerics+" is "+c.Training.Numerics,
			"PyTorch does not give the bits of the built-in engine, and exact work that differs in one bit costs its worker "+
				"stake",
			"set training.numerics: tolerant, or executor: builtin")
	}
}

// machines checks what is said of accelerators.
func (c *checker) machines() {
	for i, m := range c.Resources.AnyOf {
		at := fmt.Sprintf("resources.any_of.%d.accelerators", i)
		if m.Accelerators != "" && !c.bad(at) && !acceleratorForm.MatchString(m.Accelerators) {
			c.report(at, CodeBadValue, fmt.Sprintf("%s: %q is not a model and a number", at, clip(m.Accelerators)),
				"a worker is asked for so many of them", `write "any:1", or "h100:8"`)
		}
	}
}

func (c *checker) budget() {
	if c.Budget.MaxCost == 0 && !c.bad("budget.max_cost") {
		c.report("budget.max_cost", CodeBadValue, "budget.max_cost is 0", "the workers are paid from it",
			"give an amount of ZEN, such as 25")
	}
}

// notes tells what is accepted and has no effect.
func (c *checker) notes() {
	a := c.Strategy.Aggregation
	for _, n := range []struct {
		asked      bool
		path, text string
	}{
		{c.Given("resources"), "resources", "a network matches them; in an embedded one everybody is this machine"},
		{a.Rule == "trimmed_mean" && a.Trim*float64(c.Strategy.Workers.Target) < 1, "strategy.aggregation",
			"this fraction of the workers is less than one: nobody is dropped, and the rule is a mean"},
		{(a.Rule == "krum" || a.Rule == "multi_krum") && c.Strategy.Workers.Target < 5, "strategy.aggregation",
			"it takes 2f+3 workers to outvote f hostile ones: with fewer than 5 none is presumed hostile"},
		{(c.Strategy.Compression.TopKRatio > 0 || c.Strategy.Compression.Quantize == "sign") &&
			!c.Strategy.Compression.ErrorFeedback, "strategy.compression",
			"what is left out of an update is lost, and much is left out: expect to need more rounds"},
		{c.Strategy.Compression.TopKRatio > 0 && a.Rule != "contributor_mean", "strategy.aggregation.rule",
			"what an update leaves out counts as a vote for zero; contributor_mean does not count it"},
		{c.Strategy.Workers.Target >= SlicesFrom && a.Slices == 0 && !aggregate.ByCoordinate(a.Rule), "strategy.aggregation",
			"this rule looks at whole updates: every member fetches all of them, and a round cannot be reduced in slices"},
		{c.Strategy.Method == "async_diloco" && c.Strategy.Workers.Paces == nil, "strategy.workers",
			"all units have the same number of steps, and slower machines are waited for; paces: [1, 0.5, ...] gives them " +
				"fewer"},
		{c.Budget.MaxPricePerHour > 0, "budget.max_price_per_hour", "a network matches it; an embedded one has one price"},
		{c.Budget.Deadline > 0, "budget.deadline", "a network takes an order back that is not matched by then; a run has " +
			"as much time as it takes"},
	} {
		if n.asked {
			m := c.mark(n.path)
			e := Error{File: m.file, Line: m.line, Column: m.column}
			c.Notes = append(c.Notes, Note{Place: e.Place(), Text: n.path + ": " + n.text})
		}
	}
}
