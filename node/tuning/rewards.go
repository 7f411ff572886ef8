package tuning

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/openai"
)

// Answers to a prompt, of which compute_multiplier is a multiple.
const (
	groupAnswers = 16
	mostAnswers  = 64
)

// reference is the form of the reference of a grader.
var reference = regexp.MustCompile(`^\{\{\s*item\.([A-Za-z0-9_]{1,64})\s*\}\}$`)

// output is what a grader compares.
const output = "{{sample.output_text}}"

// settledRewards replaces what a method leaves open, and refuses what has no meaning.
func settledRewards(m api.ReinforcementMethod, of api.Hyperparameters) (api.ReinforcementMethod, error) {
	h, g := &m.Hyperparameters, m.Grader
	h.Epochs, h.Batch, h.Rate = of.Epochs, of.Batch, of.Rate
	if h.Compute == 0 {
		h.Compute = 1
	}
	const at = "method.reinforcement."
	if err := gradable(g, at+"grader."); err != nil {
		return m, err
	}
	group := groupAnswers * float64(h.Compute)
	switch {
	case group != math.Trunc(group) || group < 2 || group > mostAnswers:
		return m, wrong(at+"hyperparameters.compute_multiplier",
			fmt.Sprintf("compute_multiplier is %v, which is %v answers to a prompt", float64(h.Compute), group),
			fmt.Sprintf("give a multiple of 1/%d from %v to %d, or auto", groupAnswers, 2.0/groupAnswers,
				mostAnswers/groupAnswers))
	case float64(h.Interval) != math.Trunc(float64(h.Interval)) || h.Interval > maxSteps:
		return m, wrong(at+"hyperparameters.eval_interval", fmt.Sprintf("eval_interval is %v", float64(h.Interval)),
			"give a number of steps, or auto")
	case h.Samples > 1:
		return m, wrong(at+"hyperparameters.eval_samples", fmt.Sprintf("eval_samples is %v", float64(h.Samples)),
			"give 1, or auto: an evaluation takes the most likely answer to a prompt")
	case h.Reasoning != "" && h.Reasoning != "default":
		return m, wrong(at+"hyperparameters.reasoning_effort", fmt.Sprintf("reasoning_effort is %.40q", h.Reasoning),
			"use default, or leave it out: models have no efforts")
	}
	return m, nil
}

// questions writes the questions of a file with the answers that a grader compares with, as the data of task: grpo.
func (t *Tuner) questions(g api.Grader) func(b base, param, id string) (text, error) {
	if readsItems(g) {
		return func(b base, param, id string) (text, error) { return t.itemQuestions(g, b, param, id) }
	}
	key := reference.FindStringSubmatch(g.Reference)[1]
	return func(b base, param, id string) (out text, err error) {
		out.chats = true
		out.path, err = t.rewritten(param, id, "questions", func(n int, e openai.Example) (any, error) {
			if e.Question == nil {
				return nil, wrong(param, fmt.Sprintf("example %d of %s is no question", n, id),
					"end its messages with the user, and give the right answer under another key")
			}
			var answer string
			if json.Unmarshal(e.Item[key], &answer) != nil || answer == "" {
				return nil, wrong(param, fmt.Sprintf("example %d of %s has no text as %q, to which the grader refers", n, id,
					key), "give the right answer under this key, as a string")
			}
			talk := append(e.Question, openai.Message{Role: "assistant", Content: answer})
			document, said, err := b.marked(talk, param, n, id)
			if err != nil {
				return nil, err
			}
			from := len(document)
			if len(said) > 0 {
				from = said[len(said)-1].From
			}
			out.answer = max(out.answer, len(b.tokens.EncodeText(document[from:]))+1) // the end of the document
			out.tokens = max(out.tokens, len(b.tokens.EncodeText(document[:from])))
			out.examples++
			return map[string]any{"messages": plain(talk)}, nil
		})
		return out, err
	}
}

// rewardCourse is that of questions.
func (train text) rewardCourse(r api.FineTuningRequest, context int, held text) (c course, err error) {
	answer, prompt := max(train.answer, held.answer), max(train.tokens, held.tokens)
	if answer+prompt > min(maxSequence, context) {
		return c, wrong("training_file", fmt.Sprintf("the longest question and the longest answer have %d tokens together",
			answer+prompt), fmt.Sprintf("shorten them: %d are the most", min(maxSequence, context)))
	}
	h, g := r.Method.Reinforcement.Hyperparameters, r.Method.Reinforcement.Grader
	reward, length := "{exact: 1}", answer+prompt
	if rule := ruleOf(g); rule != "" { // an answer may be longer than the text that it is compared with
		reward, answer = rule, min(ruledAnswer, min(maxSequence, context)-prompt)
		length = max(length, answer+prompt)
	}
	c = course{task: fmt.Sprintf("task: grpo\nrollout: {group: %d, max_tokens: %d}\nreward: %s\n",
		int(groupAnswers*float64(h.Compute)), answer, reward), length: length, rate: pairRate}
	if c.interval = int(h.Interval); c.interval > 0 {
		c.task += fmt.Sprintf("eval: {every_steps: %d}\n", c.interval)
	}
	return c, c.ofExamples(r, train, held)
}
