package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/grade"
)

// rules checks the rules of a reward, and what belongs to them.
func rules(c *checker) {
	if at := "reward"; c.Reward.Exact+c.Reward.Prefix == 0 && !c.Reward.Ruled() && !c.bad(at, at+".exact", at+".rules") {
		c.report(at, problem.BadValue, "the weights of all rewards are 0", "the model would learn nothing",
			"give exact or prefix a weight above 0")
	}
	if !c.Reward.Ruled() {
		for _, at := range append(fieldKeys(c), "rollout.stop") {
			if c.file.Given(at) && !c.bad(at) {
				c.report(at, problem.BadValue, at+" is given, and reward has no rules",
					"exact and prefix compare tokens with those of the completion, which says where an answer ends",
					"remove it, or give a list, such as reward: [{kind: exact}]")
			}
		}
		return
	}
	if at := "reward.rules"; c.Reward.Exact+c.Reward.Prefix > 0 && !c.bad(at) {
		c.report(at, problem.BadValue, "reward has rules, and exact or prefix",
			"rules compare texts, exact and prefix tokens", "write {kind: exact} or {kind: prefix} in the list")
	}
	rewardFields(c)
	for i, r := range c.Reward.Rules {
		if at := fmt.Sprintf("reward.rules.%d", i); !c.bad(at, at+".kind") {
			rewardRule(c, at, r)
		}
	}
}

// fieldKeys are the paths of the fields that rules compare with, which are given.
func fieldKeys(c *checker) (list []string) {
	for i := range c.Datasets {
		if at := fmt.Sprintf("datasets.%d.reward_fields", i); c.file.Given(at) {
			list = append(list, at)
		}
	}
	return list
}

// rewardFields checks that all datasets have the same ones.
func rewardFields(c *checker) {
	for i, set := range c.Datasets {
		at := fmt.Sprintf("datasets.%d.reward_fields", i)
		if !slices.Equal(set.RewardFields, c.Datasets[0].RewardFields) && !c.bad(at) {
			c.report(at, problem.BadValue, at+" is not that of the first dataset", "one reward is for all examples of a job",
				"give all datasets the same reward_fields")
		}
		if key := fmt.Sprintf("datasets.%d.field", i); set.RewardFields != nil && c.file.Given(key) && !c.bad(at, key) {
			c.report(at, problem.BadValue, at+" is given, and "+key,
				"an example with fields for rewards has its prompt as prompt", "remove "+key)
		}
	}
}

// kindKeys are the keys of rules that some kinds have.
var kindKeys = map[string][]string{"field": {grade.Exact, grade.Prefix, grade.Contains, grade.Numeric},
	"tolerance": {grade.Numeric}, "pattern": {grade.Regex}, "min_length": {grade.Length}, "max_length": {grade.Length},
	"model": {spec.RewardModel}, "source": {grade.Starlark}, "file": {grade.Starlark}, "step_limit": {grade.Starlark}}

func rewardRule(c *checker, at string, r spec.RewardRule) {
	for _, key := range []string{"field", "tolerance", "pattern", "min_length", "max_length", "source", "file",
		"model", "step_limit"} {
		if path := at + "." + key; c.file.Given(path) && !slices.Contains(kindKeys[key], r.Kind) && !c.bad(path) {
			c.report(path, problem.BadValue, fmt.Sprintf("%s is given, and kind is %s", path, r.Kind),
				"it belongs to kind: "+strings.Join(kindKeys[key], ", "), "remove it")
		}
	}
	fields := c.Datasets[0].RewardFields
	if fields == nil {
		fields = []string{grade.Completion}
	}
	needs := map[string][]string{grade.Countdown: {"numbers", "target"}}[r.Kind]
	if slices.Contains(kindKeys["field"], r.Kind) {
		needs = []string{r.Field}
	}
	for _, f := range needs {
		if !slices.Contains(fields, f) {
			c.report(at, problem.BadValue, fmt.Sprintf("kind %s compares with the field %q of an example", r.Kind, f),
				fmt.Sprintf("rewards read the fields %s", strings.Join(fields, ", ")),
				"name it in reward_fields of the datasets")
			return
		}
	}
	if r.Kind == spec.RewardModel {
		if r.Model == "" && !c.bad(at+".model") {
			c.report(at, problem.BadValue, "kind is model, and model is missing", "the score of a reward model rewards answers",
				"name its folder: the output folder of a job with task: reward")
		}
		return
	}
	if r.Kind == grade.Starlark && (r.Source != "") == (r.File != "") {
		c.report(at, problem.BadValue, "kind is starlark, with neither source nor file, or with both",
			"it calls a function of yours, reward(prompt, answer, fields)", "give its source, or a file that has it")
	} else if r.File == "" {
		compiles(c, at, r)
	}
}

// compiles checks a rule as the machines that compute it do.
func compiles(c *checker, at string, r spec.RewardRule) {
	key := map[string]string{grade.Regex: ".pattern", grade.Length: ".max_length", grade.Starlark: ".source"}[r.Kind]
	if c.bad(at, at+key, at+".weight", at+".step_limit", at+".tolerance") {
		return
	}
	rule := grade.Rule{Terms: []grade.Term{r.Term(r.Source)}}
	rule.Pieces, rule.Lengths = grade.Vocabulary([]string{"a"})
	var wrong *grade.TermError
	if _, err := grade.New(rule); errors.As(err, &wrong) {
		c.report(at+key, problem.BadValue, at+" cannot be computed", wrong.Err.Error(),
			"correct it; docs/job-file.md says what each kind takes")
	}
}
