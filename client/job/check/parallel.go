package check

import (
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/stages/paths"
	"github.com/starling-network/starling/exchange/aggregate"
)

// mostStagedSteps is the most inner steps of a round in stages: a state root after every step is committed.
const mostStagedSteps = 64

// parallel checks that a model in stages is asked for whole, and that nothing is asked for with which its stages could
// not be verified alone.
func parallel(c *checker) {
	const at, stages, workers = "parallel", "parallel.stages", "strategy.workers"
	p, st, t := c.Parallel, c.Strategy, c.Training
	if !c.file.Given(at) || c.bad(at, stages, "parallel.replicas", "parallel.microbatches",
		"parallel.schedule", "parallel.delay", "parallel.skip") {
		return
	}
	if !p.On() {
		c.report(at, problem.MissingKey, stages+" is missing", "it says into how many parts the layers are divided",
			"add stages: 2, or remove parallel")
		return
	}
	if n := p.Stages * p.Replicas; n > 1024 {
		c.report(at, problem.BadValue, fmt.Sprintf("parallel has %d stages of %d replicas", p.Stages, p.Replicas),
			"a round has at most 1024 units", "lower replicas")
		return
	}
	for _, key := range []struct {
		path, why string
		on        bool
	}{
		{"task", "stages are cut where a loss is the cross-entropy of the next token",
			c.Task != spec.TaskLanguage && c.Task != spec.TaskSFT},
		{workers, "the stages of a replica have a worker each, which is dealt units by its measured speed", !c.bad(workers) &&
			(st.Workers.Min < p.Stages || st.Workers.Target > p.Stages*p.Replicas || st.Workers.RelativeSpeeds != nil)},
		{"strategy.method", "units that are stages send the difference of each of their parameters, and pass on no state",
			st.OuterOptimizer.Gradients() || st.Replicas.On() || st.Compression.ErrorFeedback},
		{"strategy.optimizer_state_rounds", "units that are stages pass on no state", st.OptimizerStateRounds > 1},
		{"strategy.compression.transform", "stages exchange their parameters as they are",
			st.Compression.Transform != "none"},
		{"strategy.aggregation.rule", "it compares whole updates, and those of a stage are parts of them",
			!aggregate.ByCoordinate(st.Aggregation.Rule)},
		{"strategy.aggregation.slices", "the updates of stages are parts already", st.Aggregation.Slices > 1},
		{"strategy.verification.screen", "the updates of different stages cannot be compared",
			st.Verification.Screen != "off"},
		{"strategy.sync_steps", fmt.Sprintf("the state after every step is committed to, of %d at most", mostStagedSteps),
			st.SyncSteps > mostStagedSteps},
		{"training.numerics", "the values that stages send each other must have the same bits everywhere",
			t.Numerics == spec.Tolerant},
		{"training.micro_batch_size", "parallel.microbatches says how the batch is divided", t.MicroBatchSize > 0},
		{"training.gradient_accumulation_steps", "parallel.microbatches says how the batch is divided",
			t.GradientAccumulation > 0},
		{"training.optimizer.name", "only the step of adamw corrects gradients that are late, as those of an asynchronous " +
			"schedule are", p.Late() && t.Optimizer.Name != spec.AdamW},
		{"parallel.delay", "stages of a synchronous schedule wait for their gradients", c.file.Given("parallel.delay") &&
			!p.Late()},
		{"parallel.skip", "late gradients are for microbatches that pass all stages", p.Skip > 0 && p.Late()},
		{"executor", "the built-in engine computes stages", c.Executor == spec.Torch},
		{"kind", "an owner trains the whole model on its data", c.Kind == spec.FederatedJob},
	} {
		if key.on && !c.bad(key.path) {
			c.report(key.path, problem.Unsupported, key.path+" cannot be so where parallel is given", key.why,
				"remove it, or remove parallel")
		}
	}
	if p.Late() && p.Delay >= st.SyncSteps && !c.bad("strategy.sync_steps") {
		c.report("parallel.delay", problem.BadValue, fmt.Sprintf("parallel.delay is %d for rounds of %d steps", p.Delay,
			st.SyncSteps), "no step of a round would learn from the one before", "raise strategy.sync_steps, or "+
			"parallel.microbatches")
	}
	if _, err := paths.Of(p.Stages, p.Microbatches, p.Skip); p.Skip > 0 && err != nil {
		c.report("parallel.skip", problem.BadValue, fmt.Sprintf("parallel.skip is %v for %d stages and %d microbatches",
			p.Skip, p.Stages, p.Microbatches), err.Error(), possible(p))
	}
	const batch = "training.global_batch_size"
	if each := c.WorkerBatch(); t.GlobalBatchSize%p.Replicas == 0 && each%p.Microbatches != 0 && !c.bad(batch) {
		c.report("parallel.microbatches", problem.BadValue, fmt.Sprintf("parallel.microbatches is %d for a batch of %d "+
			"and %d replicas", p.Microbatches, t.GlobalBatchSize, p.Replicas), "microbatches have one size",
			fmt.Sprintf("use a %s of a multiple of %d", batch, p.Microbatches*p.Replicas))
	}
}

// possible is an advice about a share of the stages that microbatches cannot leave out.
func possible(p spec.Parallel) string {
	share, ok := paths.Nearest(p.Stages, p.Microbatches, p.Skip)
	if !ok {
		return "use three stages and two microbatches at least, or remove skip"
	}
	return fmt.Sprintf("use skip: %.6g, or other parallel.microbatches", share)
}
