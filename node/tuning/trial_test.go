package tuning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
)

// A grader that can reward no answer is refused with its request: for its reference, its formula, or the length of the
// texts that it compares.
func TestGradersAreTried(t *testing.T) {
	tuner, _, _ := workshop(t)
	asks := func(file, reference, formula string) error {
		t.Helper()
		one, err := tuner.Keep("questions", strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		r := api.FineTuningRequest{Model: "done", TrainingFile: one.ID, Method: graded()}
		g := api.Grader{Type: textSimilarity, Metric: "fuzzy_match", Input: output, Reference: reference}
		if formula != "" {
			g = api.Grader{Type: multiGrader, Formula: formula, Graders: map[string]api.GraderPart{
				"a": {Type: stringCheck, Operation: "eq", Input: output, Reference: reference}}}
		}
		r.Method.Reinforcement.Grader = g
		_, err = tuner.Job(r)
		return err
	}
	file := strings.Repeat(question, 10)
	var prose strings.Builder
	for i := range 60 {
		fmt.Fprintf(&prose, "%d words of the reference ", i*i)
	}
	for name, err := range map[string]error{
		"no such key":      asks(file, "{{item.nowhere}}", ""),
		"no key of a part": asks(file, "{{item.nowhere}}", "a"),
		"a tuple":          asks(file, "{{item.topic}}", "a, a"),
		"a function":       asks(file, "{{item.topic}}", "min"),
		"division by zero": asks(file, "{{item.topic}}", "a / 0"),
		"a long reference": asks(file+strings.Replace(question, `"topic": "`, `"topic": "`+prose.String(), 1),
			"{{item.topic}}", ""),
	} {
		if err == nil || !strings.Contains(err.Error(), "right answer to example") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{"a part": asks(file, "{{item.topic}}", "a"),
		"a comparison": asks(file, "{{item.topic}}", "")} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A source that is taken alone is taken in a multi.
func TestSourceInAMulti(t *testing.T) {
	for _, source := range []string{"def grade(s, i):\n    return 1.0\n", "def grade (sample, item):\n    return 1.0\n",
		"def grade(sample, item, extra=None):\n    return 1.0\n",
		"def words_of(x):\n    return x.split()\ndef grade(s, item):\n    return len(words_of(s['output_text']))\n"} {
		if err := gradable(api.Grader{Type: pythonGrader, Source: source}, ""); err != nil {
			t.Fatal(err)
		}
		if err := gradable(api.Grader{Type: multiGrader, Formula: "a", Graders: map[string]api.GraderPart{"a": {
			Type: pythonGrader, Source: source}}}, ""); err != nil {
			t.Errorf("%q: %v", source, err)
		}
	}
}
