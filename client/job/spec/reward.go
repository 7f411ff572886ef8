package spec

import (
	"reflect"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/strict"
	"github.com/starling-network/starling/compute/grade"
)

// Reward holds the weights of the parts of a reward, relative to each other: those of its tokens, or rules over its
// text. A list is its rules.
type Reward struct {
	Exact  float64 `job:"exact" in:"[0,1000]"`  // 1 for the right answer, else 0
	Prefix float64 `job:"prefix" in:"[0,1000]"` // share of the tokens of the right answer before the first wrong one

	Rules []RewardRule `job:"rules" size:"[1,8]" example:"[{kind: numeric}]"`
}

// RewardRule is a way to reward the text of an answer.
type RewardRule struct {
	Kind      string  `job:"kind,required" one:"exact prefix contains numeric regex length json countdown starlark model"`
	Weight    float64 `job:"weight" in:"(0,1000]"`
	Field     string  `job:"field"`                              // of an example, which the answer is compared with
	Tolerance float64 `job:"tolerance" in:"[0,inf)"`             // of numeric: largest difference
	Pattern   string  `job:"pattern"`                            // of regex
	MinLength int     `job:"min_length" in:"[0,1000000]"`        // of length: characters
	MaxLength int     `job:"max_length" in:"[1,1000000]"`        // of length; 0: it is not given
	Source    string  `job:"source"`                             // of starlark: defines reward(prompt, answer, fields)
	File      string  `job:"file,local" example:"my.star"`       // that has the source, relative to the job file
	Model     string  `job:"model,local" example:"./out/reward"` // of model: the folder of a reward model
	StepLimit int     `job:"step_limit" in:"[1,524288]"`         // of starlark: a reward that takes more is 0
}

// SetDefaults implements strict.Defaulter.
func (r *RewardRule) SetDefaults() { r.Weight, r.Field, r.StepLimit = 1, grade.Completion, usualSteps }

// usualSteps is the default of reward.rules.step_limit: about a millisecond.
const usualSteps = 50_000

// Decode implements strict.Node.
func (r *Reward) Decode(d *strict.Decoder, path string, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		*r = Reward{}
		d.Element(path, "rules", n, reflect.ValueOf(r).Elem())
		return
	}
	d.Section(path, n, reflect.ValueOf(r).Elem())
	if len(r.Rules) > 0 && !d.Given(path+".exact") {
		r.Exact = 0
	}
}

// RewardModel is the kind of rules whose reward is the score of a reward model.
const RewardModel = "model"

// Ruled reports whether rules over the text of an answer reward it.
func (r Reward) Ruled() bool { return len(r.Rules) > 0 }

// Term is a rule as it is computed, but for those of RewardModel, which no rule computes. source is that of its
// function, if it is of the author.
func (r RewardRule) Term(source string) grade.Term {
	t := grade.Term{Kind: r.Kind, Weight: r.Weight}
	switch r.Kind {
	case grade.Exact, grade.Prefix, grade.Contains:
		t.Key = r.Field
	case grade.Numeric:
		t.Key, t.Tolerance = r.Field, r.Tolerance
	case grade.Regex:
		t.Pattern = r.Pattern
	case grade.Length:
		t.Least, t.Most = r.MinLength, r.MaxLength
	case grade.Starlark:
		t.Source, t.Steps = source, r.StepLimit
	}
	return t
}
