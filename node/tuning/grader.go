package tuning

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/grade/script"
	"github.com/starling-network/starling/web/openai"
)

// Types of graders.
const (
	stringCheck  = "string_check"
	pythonGrader = "python"
)

// ruledAnswer is how many tokens an answer may have that a rule rewards: the request does not say.
const ruledAnswer = 32

// operations are the rules of the operations of a string check; "" is that of tokens.
var operations = map[string]string{
	"eq":    "",
	"ne":    "return answer.strip() != fields['completion'].strip()",
	"like":  "return fields['completion'].strip() in answer",
	"ilike": "return fields['completion'].strip().lower() in answer.lower()",
}

// gradable refuses a grader whose rewards the program of a job cannot compute. at begins the names of its parameters.
func gradable(g api.Grader, at string) error {
	_, known := operations[g.Operation]
	switch {
	case g.Type == pythonGrader:
		if _, err := script.Compile(graderSource(g), grade.Function, 3); err != nil {
			return wrong(at+"source", "the source cannot be computed as Starlark: "+err.Error(),
				"define grade(sample, item) in the part of Python that Starlark has: no import, class, try, while or f-string")
		}
		return nil
	case askers[g.Type] != "":
		return wrong(at+"type", fmt.Sprintf("the grader is %s: %s, and every machine computes the same rewards from the job "+
			"alone", g.Type, askers[g.Type]), askerFix)
	case g.Type == multiGrader:
		return checkMulti(g, at)
	case g.Type != stringCheck && g.Type != textSimilarity:
		return wrong(at+"type", fmt.Sprintf("the grader is %.40q", g.Type),
			"use string_check, text_similarity, python or multi")
	case g.Type == stringCheck && !known:
		return wrong(at+"operation", fmt.Sprintf("the operation is %.40q", g.Operation), "use eq, ne, like or ilike")
	case strings.ReplaceAll(g.Input, " ", "") != output:
		return wrong(at+"input", fmt.Sprintf("the input is %.60q", g.Input), "use "+output)
	case !reference.MatchString(g.Reference):
		return wrong(at+"reference", fmt.Sprintf("the reference is %.60q", g.Reference),
			"use {{item.KEY}} with a key of the examples, such as {{item.reference_answer}}")
	case g.Type == textSimilarity:
		return checkSimilarity(g, at)
	}
	return nil
}

// signature is that of the function of a python grader, with the types of its parameters, which Starlark has not.
var signature = regexp.MustCompile(`(?m)^def grade\(\s*sample(?:\s*:\s*[\w.]+(?:\[[^\]]*\])?)?\s*,` +
	`\s*item(?:\s*:\s*[\w.]+(?:\[[^\]]*\])?)?\s*,?\s*\)\s*(?:->\s*[\w.]+\s*)?:`)

// graderSource is the source of a python grader as a rule calls it.
func graderSource(g api.Grader) string {
	return signature.ReplaceAllString(g.Source, "def grade(sample, item):") +
		"\n\ndef reward(prompt, answer, fields):\n    return grade({\"output_text\": answer}, fields)\n"
}

// ruleOf is the reward of a job whose answers a grader rewards, as YAML; "" if it compares tokens.
func ruleOf(g api.Grader) string {
	if readsItems(g) && g.Type != pythonGrader {
		return fmt.Sprintf("[{kind: starlark, step_limit: %d, source: %s}]", grade.MaxSteps, quote(composed(g)))
	}
	source := graderSource(g)
	if g.Type == stringCheck {
		if operations[g.Operation] == "" {
			return ""
		}
		source = "def reward(prompt, answer, fields):\n    " + operations[g.Operation] + "\n"
	}
	return "[{kind: starlark, source: " + quote(source) + "}]"
}

// readsItems reports whether a grader reads all keys of an example.
func readsItems(g api.Grader) bool { return g.Type != stringCheck }

// itemQuestions writes the questions of a file with all their other keys, which a function reads.
func (t *Tuner) itemQuestions(g api.Grader, b base, param, id string) (out text, err error) {
	tries, err := tried(g)
	if err != nil {
		return out, err
	}
	out.chats = true
	out.path, err = t.rewritten(param, id, "questions", func(n int, e openai.Example) (any, error) {
		if e.Question == nil {
			return nil, wrong(param, fmt.Sprintf("example %d of %s is no question", n, id),
				"end its messages with the user, and give what the grader reads under other keys")
		}
		delete(e.Item, "prompt")
		keys := slices.Sorted(maps.Keys(e.Item))
		if out.fields == nil {
			out.fields = keys
		}
		if !slices.Equal(keys, out.fields) || len(keys) == 0 || len(keys) > mostFields {
			return nil, wrong(param, fmt.Sprintf("example %d of %s has the keys %.200q, the first has %.200q", n, id, keys,
				out.fields), fmt.Sprintf("give all examples the same keys, from 1 to %d", mostFields))
		}
		tries.add(example{n, maps.Clone(e.Item)})
		raw, err := json.Marshal(e.Item)
		if err != nil {
			return nil, err
		}
		document, said, err := b.marked(append(e.Question, openai.Message{Role: "assistant", Content: string(raw)}),
			param, n, id)
		if err != nil {
			return nil, err
		}
		from := len(document)
		if len(said) > 0 {
			from = said[len(said)-1].From
		}
		out.answer = max(out.answer, len(b.tokens.EncodeText(document[from:]))+1)
		out.tokens = max(out.tokens, len(b.tokens.EncodeText(document[:from])))
		out.examples++
		object := map[string]any{"prompt": plain(e.Question)}
		for k, v := range e.Item {
			object[k] = v
		}
		return object, nil
	})
	if err == nil {
		err = tries.run(param, id)
	}
	return out, err
}

// mostFields bounds the keys of an example that a function reads: those that a job takes.
const mostFields = 16
