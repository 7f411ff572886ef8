package check

import (
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/run/terms"
)

// outer checks that the settings of the outer optimizer are those that it has.
func (c *checker) outer() {
	const at, sync = "strategy.outer_optimizer", "strategy.sync_steps"
	o := c.Strategy.OuterOptimizer
	if c.bad(at, at+".name") {
		return
	}
	if n := c.Strategy.SyncSteps; o.Gradients() && n != 1 && !c.bad(sync, "strategy.method") {
		c.report(sync, problem.BadValue, fmt.Sprintf("%s is %d and the outer optimizer is %s", sync, n, o.Name),
			"it takes every step itself, with the gradients of all workers: a round has one",
			"remove sync_steps, or use method: diloco")
	}
	const mu = "strategy.proximal_mu"
	if o.Gradients() && c.Strategy.ProximalMu > 0 && !c.bad(mu, "strategy.method") {
		c.report(mu, problem.BadValue,
			fmt.Sprintf("%s is %g and the outer optimizer is %s", mu, c.Strategy.ProximalMu, o.Name),
			"a unit of one step is where it began", "remove proximal_mu, or use method: fedprox")
	}
	c.owned(at, "outer optimizer is "+o.Name,
		setting{"momentum", o.Name == "nesterov" || o.Name == "gossip" || o.Momentum == 0, "nesterov and gossip"},
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
		if p := at + "." + k.key; !k.has && c.file.Given(p) && !c.bad(p) {
			c.report(p, problem.BadValue, p+" is given and the "+is, "it is a setting of "+k.owner,
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
	case !x.ErrorFeedback && c.file.Given("strategy.compression.feedback_rounds"):
		c.report("strategy.compression.feedback_rounds", problem.BadValue,
			"strategy.compression.feedback_rounds is given without "+feedback,
			"it is a setting of error feedback", "add error_feedback: true, or remove feedback_rounds")
	case x.ErrorFeedback && c.Training.Numerics == spec.Tolerant && !c.bad(feedback, "training.numerics"):
		c.report(feedback, problem.Unsupported, feedback+": it is given and training.numerics is "+spec.Tolerant,
			"the carried state of a unit would differ from worker to worker, and no audit could check it",
			"set error_feedback: false, or use another numerics")
	case x.ErrorFeedback && !sparse && x.Quantize == "none":
		c.report(feedback, problem.BadValue, feedback+" is given and nothing is left out of an update",
			"quantize is none, and all elements are sent",
			"set error_feedback: false, or compress")
	}
	switch r := c.Strategy.Replicas; {
	case c.Strategy.Compression.Transform == "none":
	case !sparse:
		c.report(transform, problem.BadValue, transform+" is given and every element is sent",
			"it is there to have what counts in few elements", "give topk_ratio: 0.0156, or use transform: none")
	case r.On() && !c.bad("strategy.replicas"):
		c.report(transform, problem.Unsupported, transform+" is given together with strategy.replicas",
			"replicas continue from parameters, and not from frequencies", "use transform: none, or method: demo")
	}
	switch {
	case sparse && bits == 0:
		c.report(quantize, problem.Unsupported,
			fmt.Sprintf("%s is %s and %s is given", quantize, c.Strategy.Compression.Quantize, ratio),
			"what is sent of chunks of 4096 elements has values of 1, 2, 8, 16 or 32 bits",
			"use quantize: sign, int2, int8, bf16 or none, or topk_ratio: null")
	case !sparse && c.Strategy.Compression.Quantize == "int2":
		c.report(quantize, problem.BadValue, quantize+" is int2 and every element is sent",
			"two bits are for the largest elements of an update, which are far from zero",
			"give topk_ratio: 0.0156, or use quantize: fp4")
	}
}

// moments checks that units can carry moments, together with the other state that they carry.
func (c *checker) moments() {
	const at = "strategy.optimizer_state_rounds"
	s := c.Strategy
	if s.OptimizerStateRounds == 1 || !c.file.Given(at) || // a default fits what is checked elsewhere
		c.bad(at, "strategy.replicas.rounds", "strategy.compression.feedback_rounds", "strategy.outer_optimizer.name",
			"training.numerics") {
		return
	}
	switch {
	case s.OuterOptimizer.Gradients() || !c.Training.Optimizer.Remembers():
		c.report(at, problem.BadValue, at+" is given and units have no moments",
			"those that are gradients have none, and those of sgd without a momentum", "remove it")
	case s.Replicas.Paired():
		c.report(at, problem.Unsupported, at+" is given and replicas average in pairs",
			"they are in the checkpoint, and carry no state", "remove it, or use another method")
	case c.Training.Numerics == spec.Tolerant:
		c.report(at, problem.Unsupported, at+" is given and training.numerics is "+spec.Tolerant,
			"the carried state of a unit would differ from worker to worker, and no audit could check it",
			"remove it, or use another numerics")
	case int(s.Group()) != s.OptimizerStateRounds:
		c.report(at, problem.BadValue, fmt.Sprintf("%s is %d, and the other carried state of a unit lasts for %d rounds", at,
			s.OptimizerStateRounds, s.Group()),
			"it carries one state, which is empty in the first of these rounds",
			"give feedback_rounds or replicas.rounds the same number, or neither")
	}
}

// group checks that the rounds through which units carry a state may be open together.
func (c *checker) group() {
	const at = "strategy.workers"
	if s := c.Strategy; !c.bad(at, at+".target", "strategy.optimizer_state_rounds", "strategy.replicas.rounds",
		"strategy.compression.feedback_rounds") && int(s.Group())*s.Workers.Target > spec.MostOpen {
		c.report(at, problem.BadValue,
			fmt.Sprintf("%s is %d and units carry a state through %d rounds", at, s.Workers.Target,
				s.Group()),
			fmt.Sprintf("such rounds become final together, and at most %d units may be open", spec.MostOpen),
			fmt.Sprintf("use at most %d workers, or fewer such rounds", spec.MostOpen/s.Group()))
	}
}

// slices checks that the rounds of a job that asks for slices can be reduced in slices.
func (c *checker) slices() {
	const at, rule, screen = "strategy.aggregation.slices", "strategy.aggregation.rule", "strategy.verification.screen"
	a := c.Strategy.Aggregation
	if a.Slices < 2 || c.bad(at, rule, screen, "training.numerics") {
		return
	}
	switch {
	case !aggregate.ByCoordinate(a.Rule):
		c.report(at, problem.Unsupported, at+" is given and the rule is "+a.Rule,
			"it compares whole updates, and the reducer of a slice has parts of them",
			"use rule: mean, trimmed_mean, median or contributor_mean, or slices: 1")
	case c.Training.Numerics == spec.Tolerant:
		c.report(at, problem.Unsupported, at+" is given and training.numerics is "+spec.Tolerant,
			"members look at whole updates of tolerant work",
			"use slices: 1")
	case c.file.Given(screen) && c.Strategy.Verification.Screen != "off":
		c.report(at, problem.Unsupported, at+" is given and updates are to be screened",
			"no member has a whole update of a round in slices",
			"use screen: off, or slices: 1")
	}
}

// verification checks that a tolerance is given where it is used, and segments where they can be drawn.
func (c *checker) verification() {
	const at, part = "strategy.verification.tolerance", "strategy.verification.audit"
	if c.Strategy.Verification.Audit == "partial" && c.Training.Numerics == spec.Tolerant &&
		!c.bad(part, "training.numerics") {
		c.report(part, problem.Unsupported, part+" is partial and training.numerics is tolerant",
			"tolerant work is judged by its update, which only a whole unit has",
			"use audit: whole, or another numerics")
	}
	if c.file.Given(at) && c.Training.Numerics != spec.Tolerant && !c.bad(at, "training.numerics") {
		c.report(at, problem.BadValue, at+" is given and training.numerics is "+c.Training.Numerics,
			"exact work is settled by its bits",
			"use numerics: tolerant, or remove tolerance")
	}
}

// attested checks the measurements of attested machines, and that they are listed where such machines are asked for.
func attested(c *checker) {
	const at, only = "strategy.verification.attested", "resources.attested"
	v := c.Strategy.Verification
	if c.bad(at, only, "training.numerics") {
		return
	}
	seen := map[string]bool{}
	for _, text := range v.Attested.Measurements {
		switch m, err := attestation.ParseMeasurement(text); {
		case err != nil:
			c.report(at+".measurements", problem.BadValue, err.Error(), "a quote measures the software in a machine",
				"write what starling worker attest prints as measurement")
		case seen[m.String()]:
			c.report(at+".measurements", problem.BadValue, m.String()+" is there twice", "each is listed once", "remove one")
		default:
			seen[m.String()] = true
		}
	}
	switch n := len(v.Attested.Measurements); {
	case n > terms.MaxMeasurements:
		c.report(at+".measurements", problem.BadValue, fmt.Sprintf("%d measurements are listed", n),
			fmt.Sprintf("at most %d are", terms.MaxMeasurements), "list fewer")
	case n == 0 && c.Resources.Attested:
		c.report(only, problem.BadValue, only+" is true, and no measurement is listed",
			"a quote says what runs in a machine, and only a list says what may", "list "+at+".measurements")
	case n > 0 && c.Training.Numerics == spec.Tolerant:
		c.report(at, problem.Unsupported, at+" is given and training.numerics is "+spec.Tolerant,
			"tolerant work is audited at least at half", "use another numerics, or remove it")
	}
}

// executor checks that another executor is used only in tolerant runs, where a difference in the last bits convicts no
// worker.
func (c *checker) executor() {
	const at, numerics = "executor", "training.numerics"
	a, t := c.Model.Adapter, c.Training
	drops, short := t.Dropout > 0 || a != nil && a.LoRA != nil && a.LoRA.Dropout > 0, t.Optimizer.State != "fp32"
	if c.Executor == spec.Torch && (drops || short) && !c.bad(at, "model.adapter", "training.optimizer") {
		c.report(at, problem.BadValue,
			fmt.Sprintf("%s is %s, with dropout: %t, and moments in %s", at, spec.Torch, drops, t.Optimizer.State),
			"PyTorch is not told what is dropped, and is handed moments in float32", "remove both, or use executor: builtin")
	}
	if c.Executor == spec.Torch && c.Training.Numerics != spec.Tolerant && !c.bad(at, numerics) {
		c.report(at, problem.BadValue, at+" is "+spec.Torch+" and "+numerics+" is "+c.Training.Numerics,
			"PyTorch does not give the bits of the built-in engine, and exact work that differs in one bit costs its worker "+
				"stake",
			"set training.numerics: tolerant, or executor: builtin")
	}
}
