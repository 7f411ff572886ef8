package check

import (
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// mostPairs is how many replicas that average in pairs a job may have.
const mostPairs = 16

// replicas checks that rounds exchange one kind of part of replicas, and that units carry no other state.
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
	case paired != (name == "gossip"):
		c.report(optimizer, problem.BadValue, fmt.Sprintf("%s is %s and %s is %s", optimizer, name, topology, r.Topology),
			"it moves replicas that average in pairs, and nothing else does",
			"use method: gossip, or another name and topology: none")
		return
	case paired && (r.Sample > 0 || r.Fragments > 0 || r.Overlap > 0 || rule != "mean" ||
		c.Strategy.Workers.Target > mostPairs):
		c.report(topology, problem.BadValue, fmt.Sprintf("%s is given with %s %d, %s %d, %s %v, rule %s and %d workers",
			topology, sample, r.Sample, fragments, r.Fragments, overlap, r.Overlap, rule, c.Strategy.Workers.Target),
			fmt.Sprintf("pairs exchange everything and take its mean, and a checkpoint has room for %d replicas", mostPairs),
			"use method: gossip with the rule mean and fewer workers")
		return
	case !r.On():
		return
	}
	switch {
	case r.Sample > 0 && r.Fragments > 0:
		c.report(at, problem.BadValue, sample+" and "+fragments+" are given",
			"a round exchanges random elements or whole fragments", "remove one of them, or set it to 0")
	case r.Overlap > 0 && r.Sample > 0:
		c.report(overlap, problem.Unsupported, fmt.Sprintf("%s is given with %s %d", overlap, sample, r.Sample),
			"a unit would carry two states of a parameter: the elements it left out, and its progress under way",
			"use method: diloco or streaming_diloco, or overlap: 0")
	case r.Sample > 0 && (r.Sample < 2 || r.Sample&(r.Sample-1) != 0):
		c.report(sample, problem.BadValue, fmt.Sprintf("%s is %d", sample, r.Sample),
			"parts of a parameter are drawn alike: it is a power of two from 2 on", "use 16, 32 or 64")
	case r.Fragments == 1 || r.Fragments >= r.Rounds:
		c.report(fragments, problem.BadValue, fmt.Sprintf("%s is %d and %s is %d", fragments, r.Fragments, rounds, r.Rounds),
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
			"units that are gradients have no replica to continue from"},
		{c.Training.Numerics == spec.Tolerant, "training.numerics",
			"the carried state of a unit would differ from worker to worker, and no audit could check it"},
	} {
		if other.is && !c.bad(other.path) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is given together with %s", at, other.path), other.why,
				"use method: diloco, or change "+other.path)
		}
	}
}
