package tuning

import (
	"fmt"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/openai"
)

// pairs writes the pairs of answers of a file as the data of task: dpo, as text does with other examples.
func (t *Tuner) pairs(b base, param, id string) (out text, err error) {
	out.chats = true
	out.path, err = t.rewritten(param, id, "pairs", func(n int, e openai.Example) (any, error) {
		if e.Preferred == nil {
			return nil, wrong(param, fmt.Sprintf("example %d of %s is no pair of answers", n, id),
				"use the method supervised, or give input, preferred_output and non_preferred_output")
		}
		for _, talk := range [][]openai.Message{e.Preferred, e.Other} {
			document, err := b.written(talk, param, n, id)
			if err != nil {
				return nil, err
			}
			out.tokens = max(out.tokens, len(b.tokens.EncodeText(document))+1) // the end of the document
		}
		out.examples++
		return map[string]any{"chosen": plain(e.Preferred), "rejected": plain(e.Other)}, nil
	})
	return out, err
}

// plain are messages as an object of a job's data has them.
func plain(talk []openai.Message) (list []map[string]string) {
	for _, m := range talk {
		list = append(list, map[string]string{"role": m.Role, "content": m.Content})
	}
	return list
}

// pairCourse is that of pairs.
func (train text) pairCourse(r api.FineTuningRequest, context int, held text) (c course, err error) {
	c = course{task: fmt.Sprintf("task: dpo\ndpo: {beta: %v}\n", float64(r.Method.DPO.Hyperparameters.Beta)),
		length: min(maxSequence, context, max(train.tokens, held.tokens)), rate: pairRate}
	return c, c.ofExamples(r, train, held)
}

// ofExamples sets the steps, and the part that is held out: the validation examples come last, and exactly they are.
func (c *course) ofExamples(r api.FineTuningRequest, train, held text) error {
	if held.examples >= train.examples {
		return wrong("validation_file", fmt.Sprintf("it has %d examples, the training file %d", held.examples,
			train.examples), "give a smaller one")
	}
	c.steps = float64(r.Hyperparameters.Epochs) * float64(train.examples) / float64(r.Hyperparameters.Batch)
	if held.path != "" {
		c.heldPart = (float64(held.examples) + 0.5) / float64(held.examples+train.examples)
	}
	return nil
}
