package tuning

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/grade/script"
)

// trial is a made grader that is tried before a job has it, on the example with the longest text of each key that it
// compares with: this text, as the answer, must have a reward within the steps of a function.
type trial struct {
	of      *script.Script // nil: nothing is tried
	longest map[string]example
}

// example is one of a file, by its number.
type example struct {
	n    int
	item map[string]json.RawMessage
}

// tried is the trial of a grader. Functions that a user wrote are not tried.
func tried(g api.Grader) (t trial, err error) {
	parts := map[string]api.GraderPart{"": g.Part()}
	switch g.Type {
	case multiGrader:
		parts = g.Graders
	case textSimilarity:
	default:
		return t, nil
	}
	t.longest = map[string]example{}
	for _, part := range parts {
		if part.Type != pythonGrader {
			t.longest[reference.FindStringSubmatch(part.Reference)[1]] = example{}
		}
	}
	t.of, err = script.Compile(composed(g), grade.Function, 3)
	return t, err
}

func (t *trial) add(e example) {
	for key, longest := range t.longest {
		if longest.item == nil || len(e.item[key]) > len(longest.item[key]) {
			t.longest[key] = e
		}
	}
}

// run says why the grader rewards no answer to an example of a file.
func (t *trial) run(param, id string) error {
	for _, key := range slices.Sorted(maps.Keys(t.longest)) {
		e := t.longest[key]
		fields := map[string]any{}
		for k, raw := range e.item {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			fields[k] = v
		}
		answer, text := fields[key].(string)
		if !text && fields[key] != nil {
			answer = string(e.item[key])
		}
		out, err := t.of.Call(grade.MaxSteps, "", answer, fields)
		if err == nil && !number(out) {
			err = fmt.Errorf("it gives %v, which is no number", out)
		}
		if err != nil {
			return wrong(param, fmt.Sprintf("the grader cannot reward the right answer to example %d of %s: %v", e.n, id, err),
				"give the text that it compares with under its key, shorter, or use another grader")
		}
	}
	return nil
}

func number(x any) bool {
	switch x.(type) {
	case bool, int64, float64:
		return true
	}
	return false
}
