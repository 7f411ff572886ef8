package check

import (
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/train/swarm"
)

// sharing checks the keys of a swarm: that each worker has a model, and that nothing is asked for that combines them.
func sharing(c *checker) {
	const at, own, shared, batch = "rollout.sharing", "rollout.own", "rollout.shared", "training.global_batch_size"
	if c.bad("rollout", at, own, shared, batch, "strategy", "strategy.workers", "strategy.workers.target") {
		return
	}
	r, st := c.Rollout, c.Strategy
	n := st.Workers.Target
	if !r.Swarm() {
		for _, key := range []string{own, shared} {
			if c.file.Given(key) {
				c.report(key, problem.BadValue, key+" is given, and "+at+" is "+r.Sharing, "it is a setting of a swarm",
					"remove it, or add sharing: swarm to rollout")
			}
		}
		return
	}
	if n < 2 || n > swarm.MaxModels {
		c.report("strategy.workers", problem.BadValue, fmt.Sprintf("strategy.workers is %d, and %s is swarm", n, at),
			fmt.Sprintf("each worker has a model, and a checkpoint has room for 2 to %d", swarm.MaxModels),
			"use 4 workers, or remove sharing")
		return
	}
	if c.Training.GlobalBatchSize != r.Own*n {
		c.report(batch, problem.BadValue, fmt.Sprintf("%s is %d, and %s is %d for %d workers", batch,
			c.Training.GlobalBatchSize, own, r.Own, n), "it is the number of prompts that all models draw answers to in a step",
			"remove one of them")
	}
	if most := (n - 1) * r.Own; r.Shared > most {
		c.report(shared, problem.BadValue, fmt.Sprintf("%s is %d, and %s is %d for %d workers", shared, r.Shared, own, r.Own,
			n), fmt.Sprintf("the others draw answers to %d prompts in a step", most),
			fmt.Sprintf("use at most %d, or raise own", most))
	}
	alone(c, at)
}

// alone checks that nothing is asked for that combines or compares the updates of a swarm, or cuts a step in parts.
func alone(c *checker, at string) {
	const moves = "each model moves by the update of its own worker, and updates are neither combined nor compared"
	st, o := c.Strategy, c.Strategy.OuterOptimizer
	optimizer := "strategy.outer_optimizer"
	if !c.file.Given(optimizer) {
		optimizer = "strategy.method"
	}
	for _, key := range []struct {
		path, value, why, fix string
		on                    bool
	}{{optimizer, st.Method + ", of the optimizer " + o.Name, moves, "use method: fedavg",
		o.Name != "sgd" || o.LR != 1},
		{"strategy.aggregation.rule", st.Aggregation.Rule, moves, "remove it", st.Aggregation.Rule != "mean"},
		{"strategy.compression.transform", st.Compression.Transform, moves, "remove it",
			st.Compression.Transform != "none"},
		{"strategy.verification.screen", st.Verification.Screen, moves, "remove it",
			st.Verification.Screen != "off"},
		{"training.micro_batch_size", "given", "own and shared answers of a step are learnt from at once", "remove it",
			c.MicroBatch() > 0}} {
		if key.on && !c.bad(key.path, "strategy.method") {
			c.report(key.path, problem.Unsupported, key.path+" is "+key.value+", and "+at+" is swarm", key.why,
				key.fix+", or remove "+at)
		}
	}
}
