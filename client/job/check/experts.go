package check

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// experts checks that a job is one of the experts of its file, and that their models can read texts together.
func experts(c *checker) {
	if c.bad("experts", "expert") || len(c.Experts) == 0 && c.Expert == "" {
		return
	}
	var names []string
	for i, e := range c.Experts {
		if at := fmt.Sprintf("experts.%d.name", i); !nameForm.MatchString(e.Name) || slices.Contains(names, e.Name) {
			c.report(at, problem.BadValue, fmt.Sprintf("%s is %q", at, e.Name),
				"each expert has a name of its own, with letters, digits, points, hyphens and underscores", "give it another name")
		}
		names = append(names, e.Name)
	}
	if !slices.Contains(names, c.Expert) {
		c.report("expert", problem.BadValue, fmt.Sprintf("expert is %q", c.Expert), "experts has no element of that name",
			fmt.Sprintf("choose one of %v", names))
	}
	if at := "model.tokenizer"; c.Model.Tokenizer.Kind == spec.TrainBPE && !c.bad(at) {
		c.report(at, problem.BadValue, at+" is to be trained, in a job of experts",
			"each expert would have a tokenizer of its own, and they could not read one text together",
			"name a tokenizer.json, or use byte-level")
	}
	if !c.PredictsText() && !c.bad("task") {
		c.report("task", problem.Unsupported, "task is "+c.Task+", in a job of experts",
			"a mixture of experts predicts text", "use task: language or sft, or remove experts")
	}
}
