package tuning

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/web/failure"
)

// rewardBy is the reward of an answer to an example by the function of a grader, as workers compute it.
func rewardBy(t *testing.T, g api.Grader, answer, item string) float64 {
	t.Helper()
	letters := make([]string, 256)
	for i := range letters {
		letters[i] = string([]byte{byte(i)})
	}
	r := grade.Rule{Fields: true, Terms: []grade.Term{{Kind: grade.Starlark, Weight: 1, Steps: grade.MaxSteps,
		Source: composed(g)}}}
	r.Pieces, r.Lengths = grade.Vocabulary(letters)
	of, err := grade.New(r)
	if err != nil {
		t.Fatalf("%v\n%s", err, composed(g))
	}
	row, said := []int32{256 + 'q'}, []int32{}
	for _, b := range []byte(item) {
		row = append(row, int32(b))
	}
	for _, b := range []byte(answer) {
		said = append(said, int32(b))
	}
	if err := of.Try(row, said); err != nil {
		t.Fatalf("%v\n%s", err, composed(g))
	}
	return float64(of.Reward(row, said))
}

// Similarities are those of their definitions: of rapidfuzz, and of rouge-score without stems, by hand.
func TestSimilarities(t *testing.T) {
	const want = `{"reference": "the cat sat on the mat", "n": 3}`
	for _, c := range []struct {
		metric, answer string
		want           float64
	}{{"fuzzy_match", "the cat sat on the mat", 1}, {"fuzzy_match", "the cat", 2 * 7. / (7 + 22)},
		{"fuzzy_match", "", 0}, {"rouge_1", "The cat, the DOG!", 2 * 3. / (4 + 6)},
		{"rouge_2", "the cat the dog", 2. / (3 + 5)}, {"rouge_3", "the cat", 0},
		{"rouge_l", "the mat sat on", 2 * 3. / (4 + 6)}, {"rouge_5", "a cat sat on the mat", 2. / 4}} {
		g := api.Grader{Type: textSimilarity, Metric: c.metric, Input: output, Reference: "{{item.reference}}"}
		if err := gradable(g, ""); err != nil {
			t.Fatal(err)
		}
		if got := rewardBy(t, g, c.answer, want); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s of %q is %v, want %v", c.metric, c.answer, got, c.want)
		}
	}
	long := strings.Repeat("The quick brown fox jumps, ", 6) // is not too long to be compared
	g := api.Grader{Type: textSimilarity, Metric: "fuzzy_match", Input: output, Reference: "{{item.reference}}"}
	if got := rewardBy(t, g, long, `{"reference": "`+long+`"}`); got != 1 {
		t.Errorf("a long answer is %v like itself", got)
	}
}

// multi is a request for several graders, as a client writes it.
const multi = `{"type": "multi", "name": "all", "graders": {
	"right": {"type": "string_check", "name": "r", "operation": "eq", "input": "{{sample.output_text}}",
		"reference": "{{item.a}}"},
	"near": {"type": "text_similarity", "name": "n", "input": "{{sample.output_text}}", "reference": "{{item.b}}",
		"evaluation_metric": "rouge_1"},
	"own": {"type": "python", "name": "o",
		"source": "def grade(sample: dict, item: dict) -> float:\n    return len(item['a']) / 4.0"}},
	"calculate_output": "0.5 * right + max(near, own) - (own / 2)"}`

// A multi is the formula of its graders.
func TestMultiGrader(t *testing.T) {
	var g api.Grader
	if err := json.Unmarshal([]byte(multi), &g); err != nil {
		t.Fatal(err)
	}
	if err := gradable(g, ""); err != nil {
		t.Fatal(err)
	}
	if got := rewardBy(t, g, " yes ", `{"a": "yes", "b": "yes no"}`); math.Abs(got-(0.5+0.75-0.375)) > 1e-6 {
		t.Errorf("a reward of %v", got)
	}
	if got := rewardBy(t, g, "yes no", `{"a": "yes", "b": "yes no"}`); math.Abs(got-(1-0.375)) > 1e-6 {
		t.Errorf("a reward of %v", got)
	}
}

// A grader that no job computes is refused by the name of its parameter, with the reason, whichever keys belong to it.
func TestGradersThatAreRefused(t *testing.T) {
	replaced := func(old, by string) string { return strings.Replace(multi, old, by, 1) }
	for _, c := range []struct{ grader, param, why string }{
		{`{"type": "score_model", "name": "s", "model": "gpt", "input": [{"role": "user", "content": "x"}], "range": [0, 1]}`,
			"type", "asks a model"},
		{`{"type": "label_model", "labels": ["a"], "passing_labels": ["a"], "model": "gpt", "input": []}`, "type", "label"},
		{`{"type": "endpoint", "url": "https://example.org"}`, "type", "service"},
		{replaced(`"type": "python"`, `"type": "score_model", "model": "gpt"`), "graders.own.type", "asks a model"},
		{replaced("rouge_1", "meteor"), "graders.near.evaluation_metric", "stems"},
		{replaced("rouge_1", "rouge_9"), "graders.near.evaluation_metric", "no such"},
		{replaced("max(", "sqrt("), "calculate_output", "sqrt"},
		{replaced("own / 2", "own ^ 2"), "calculate_output", "operator"},
		{replaced("own / 2)", "own / 2"), "calculate_output", "computed"},
		{replaced("own / 2", "other"), "calculate_output", "other"},
		{replaced(`"own"`, `"my own"`), "graders", "my own"},
		{replaced(`"right": {`, `"l": {"type": "python", "source": "def grade(sample, item):\n    return 1"}, "right": {`),
			"graders.own", "second"},
		{`{"type": "multi", "calculate_output": "1"}`, "graders", "0 graders"},
		{`{"type": "text_similarity", "input": "{{sample.output_text}}", "reference": "yes"}`, "reference", "yes"},
	} {
		var g api.Grader
		if err := json.Unmarshal([]byte(c.grader), &g); err != nil {
			t.Fatal(c.grader, err)
		}
		var refused *failure.Error
		if err := gradable(g, ""); !errors.As(err, &refused) || refused.Param != c.param ||
			!strings.Contains(refused.Detail, c.why) || refused.Fix == "" {
			t.Errorf("%s: %+v, want %s: ... %s", c.grader, refused, c.param, c.why)
		}
	}
	var g api.Grader
	if err := json.Unmarshal([]byte(`{"type": "string_check", "model": "gpt"}`), &g); err == nil {
		t.Error("an unknown key is taken")
	}
}
