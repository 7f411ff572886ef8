package check

import (
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// encrypted checks that nothing is asked for that shows encrypted data to members whose units do not read it.
func encrypted(c *checker) {
	const at = "encrypt_data"
	if !c.EncryptData || c.bad(at) {
		return
	}
	const answers = "answers travel between members with the texts of their prompts, which are data"
	for _, key := range []struct {
		path, value, why, fix string
		on                    bool
	}{
		{"kind", c.Kind, "the data of such a job never leave their owners", "remove " + at, c.Kind == spec.FederatedJob},
		{"task", c.Task, "a graph is not in shards: every member holds all of it", "use another task, or remove " + at,
			c.Task == spec.TaskGraph},
		{"task", c.Task, answers, "use another task, or remove " + at, c.Task == spec.TaskGRPO},
		{"parallel", "given", "stages send values of a step, from which its tokens follow, to other members",
			"remove it, or " + at, c.Parallel.On()},
		{"training.numerics", spec.Tolerant, "members measure the updates of all units on data of these units",
			"use exact-f32, or remove " + at, c.Training.Numerics == spec.Tolerant},
		{"strategy.verification.screen", "losses",
			"members measure the updates of all units on data of these units, and on held-out data",
			"use screen: updates, or remove " + at, c.Strategy.Verification.Screen == "losses" &&
				c.Training.Numerics != spec.Tolerant},
	} {
		if key.on && !c.bad(key.path) {
			c.report(key.path, problem.Unsupported, key.path+" is "+key.value+", and "+at+" is true", key.why, key.fix)
		}
	}
}
