package tuning

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/grade/script"
	"github.com/starling-network/starling/node/tuning/similarity"
)

// Types of graders whose function is made for them.
const (
	multiGrader    = "multi"
	textSimilarity = "text_similarity"
)

// askers are graders that ask a model or a service, by their types, with the reason why no job has them.
var askers = map[string]string{
	"score_model": "it asks a model for a number in words",
	"label_model": "it asks a model for a label",
	"endpoint":    "it asks a service",
}

// askerFix says what to do in place of one of them.
const askerFix = "use string_check, text_similarity, python or multi; or train a reward model from pairs (task: " +
	"reward), and name it as kind: model among the rewards of a job file"

// uncomputed are metrics of text_similarity, with the reason why no reward is computed by them.
var uncomputed = map[string]string{
	"cosine": "it compares vectors that a model gives", "meteor": "it needs a dictionary of synonyms and stems",
	"bleu": "it is a measure of corpora, whose smoothing for one text is not specified",
	"gleu": "its division into words is not specified",
}

// partName is the form of the names of the graders of a multi: those that a formula reads.
var partName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,31}$`)

// mostParts bounds the graders of a multi.
const mostParts = 8

// checkSimilarity refuses a text_similarity that no function computes.
func checkSimilarity(g api.Grader, at string) error {
	if _, known := similarity.Of(g.Metric); known {
		return nil
	}
	why := uncomputed[g.Metric]
	if why == "" {
		why = "no such metric is known"
	}
	return wrong(at+"evaluation_metric", fmt.Sprintf("the metric is %.40q: %s", g.Metric, why),
		"use fuzzy_match, rouge_1 to rouge_5 or rouge_l")
}

// checkMulti refuses a multi whose graders or whose formula cannot be computed.
func checkMulti(g api.Grader, at string) error {
	if n := len(g.Graders); n < 1 || n > mostParts {
		return wrong(at+"graders", fmt.Sprintf("there are %d graders", n), fmt.Sprintf("give 1 to %d", mostParts))
	}
	written := 0
	for _, name := range slices.Sorted(maps.Keys(g.Graders)) {
		part := g.Graders[name]
		if part.Type == pythonGrader {
			written++
		}
		switch {
		case !partName.MatchString(name):
			return wrong(at+"graders", fmt.Sprintf("a grader is named %.40q", name), "use letters, digits and underscores")
		case written > 1:
			return wrong(at+"graders."+name, "it is the second one of type python",
				"write both functions in one source: their names would meet")
		}
		if err := gradable(part.Whole(), at+"graders."+name+"."); err != nil {
			return err
		}
	}
	const fix = "use the names of the graders, numbers, + - * / and brackets, min, max and abs"
	if _, err := formula(g); err != nil {
		return wrong(at+"calculate_output", err.Error(), fix)
	}
	if _, err := script.Compile(composed(g), grade.Function, 3); err != nil {
		return wrong(at+"calculate_output", "the formula cannot be computed: "+err.Error(), fix)
	}
	return nil
}

// tokens of a formula.
var formulaToken = regexp.MustCompile(`^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]*)?|\.[0-9]+|[-+*/(),]|\s+)`)

// formula is calculate_output as an expression of the results of the graders.
func formula(g api.Grader) (string, error) {
	var out strings.Builder
	rest := g.Formula
	if len(rest) == 0 || len(rest) > 1<<10 {
		return "", fmt.Errorf("the formula has %d characters, from 1 to %d are taken", len(rest), 1<<10)
	}
	for rest != "" {
		t := formulaToken.FindString(rest)
		if t == "" {
			return "", fmt.Errorf("the formula has %.20q, which is no operator of it", rest)
		}
		rest = rest[len(t):]
		_, part := g.Graders[t]
		switch letter := t[0] == '_' || t[0]|0x20 >= 'a' && t[0]|0x20 <= 'z'; {
		case part:
			t = "of_" + t
		case letter && t != "min" && t != "max" && t != "abs":
			return "", fmt.Errorf("the formula has %.40q, which is no grader of it and no known function", t)
		case strings.TrimSpace(t) == "":
			t = " "
		}
		out.WriteString(t)
	}
	return out.String(), nil
}

// composed is the source of a function that calls the graders of a multi, or one grader.
func composed(g api.Grader) string {
	parts, value := map[string]api.GraderPart{"all": g.Part()}, "of_all"
	if g.Type == multiGrader {
		parts = g.Graders
		value, _ = formula(g)
	}
	var b, call strings.Builder
	b.WriteString(similarity.Source)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		called := "starling_grade_" + name
		if parts[name].Type == pythonGrader { // there is one at most, with names of its own
			called = "grade"
		}
		b.WriteString("\n" + function(parts[name].Whole(), called))
		fmt.Fprintf(&call, "    of_%s = %s({\"output_text\": answer}, fields)\n", name, called)
	}
	b.WriteString("\ndef reward(prompt, answer, fields):\n" + call.String() + "    return " + value + "\n")
	return b.String()
}

// function is a grader as a function of that name of a sample and an item.
func function(g api.Grader, name string) string {
	if g.Type == pythonGrader {
		return signature.ReplaceAllString(g.Source, "def grade(sample, item):")
	}
	value := map[string]string{"eq": "a == b", "ne": "a != b", "like": "b in a",
		"ilike": "b.lower() in a.lower()"}[g.Operation]
	value = "1.0 if " + value + " else 0.0"
	if g.Type == textSimilarity {
		value, _ = similarity.Of(g.Metric)
	}
	key := reference.FindStringSubmatch(g.Reference)[1]
	return fmt.Sprintf("def %s(sample, item):\n    a, b = sample[\"output_text\"].strip(), str(item[%q]).strip()\n"+
		"    return %s\n", name, key, value)
}
