// Package conversation turns the JSON objects in which people keep conversations, prompts with answers, and pairs of
// answers into documents for training: their text, and the parts of it that are learnt. It reads no files.
package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

// ErrExample is wrapped by every reason why an object is no example of the task.
var ErrExample = errors.New("no example of the task")

// A Writer writes a conversation for the model that learns it: its text, and the parts of the assistant.
type Writer func(conversation []openai.Message) (text string, said []source.TextRange, err error)

// Answers writes conversations of which the assistant's parts are learnt.
func Answers(base string) (Writer, error) {
	w, err := serve.Answers(base)
	return w, err
}

// Transcripts writes conversations of which everything is learnt.
func Transcripts(base string) (Writer, error) {
	all, err := serve.Transcripts(base)
	return func(talk []openai.Message) (text string, _ []source.TextRange, err error) {
		text, err = all(talk)
		return text, nil, err
	}, err
}

// Talk is the document of an object that has a text or a conversation in the given field. wrong says why no
// conversation can be written.
func (w Writer) Talk(o map[string]json.RawMessage, field string, wrong error) ([]source.Document, error) {
	text, raw, err := source.TextOf(o, field)
	if err != nil {
		return nil, err
	}
	if text != nil {
		return []source.Document{{Text: *text}}, nil
	}
	var d source.Document
	talk, err := openai.Conversation(raw)
	if err = errors.Join(wrong, err); err == nil {
		d.Text, d.Learnt, err = w(talk)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the field %q is neither a string nor a conversation: %w", source.ErrField, field, err)
	}
	return []source.Document{d}, nil
}

// Answered is the document of an object that has a conversation in the given field, or a prompt and a completion.
func (w Writer) Answered(o map[string]json.RawMessage, field string) (source.Document, error) {
	talk, talks := o[field]
	prompt, prompts := o["prompt"]
	completion, completes := o["completion"]
	switch {
	case talks:
		return w.document(nil, talk)
	case prompts && completes:
		return w.document(prompt, completion)
	}
	return source.Document{}, fmt.Errorf("%w: the object has neither %q nor \"prompt\" and \"completion\"", ErrExample,
		field)
}

// Pair are the documents of an object with two answers to one prompt, the preferred one first. It has the keys of TRL,
// with a prompt or with conversations that begin alike, or those of OpenAI's fine-tuning.
func (w Writer) Pair(o map[string]json.RawMessage) ([]source.Document, error) {
	prompt, chosen, rejected := o["prompt"], o["chosen"], o["rejected"]
	if input, ok := o["input"]; ok && chosen == nil {
		var in struct {
			Messages json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("%w: input: %w", ErrExample, err)
		}
		prompt, chosen, rejected = in.Messages, o["preferred_output"], o["non_preferred_output"]
	}
	if chosen == nil || rejected == nil {
		return nil, fmt.Errorf("%w: the object has neither \"prompt\", \"chosen\" and \"rejected\" nor \"input\", "+
			"\"preferred_output\" and \"non_preferred_output\"", ErrExample)
	}
	if prompt == nil {
		var err error
		if prompt, chosen, rejected, err = divide(chosen, rejected); err != nil {
			return nil, err
		}
	}
	if bytes.Equal(bytes.TrimSpace(chosen), bytes.TrimSpace(rejected)) {
		return nil, fmt.Errorf("%w: both answers are the same", ErrExample)
	}
	docs := make([]source.Document, 2)
	for i, answer := range []json.RawMessage{chosen, rejected} {
		var err error
		if docs[i], err = w.document(prompt, answer); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// divide takes the messages with which two conversations begin alike for their prompt.
func divide(chosen, rejected json.RawMessage) (prompt, one, other json.RawMessage, err error) {
	var a, b []json.RawMessage
	if json.Unmarshal(chosen, &a) != nil || json.Unmarshal(rejected, &b) != nil {
		return nil, nil, nil, fmt.Errorf("%w: without a \"prompt\", both answers must be conversations", ErrExample)
	}
	n := 0
	for n < len(a) && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}
	return joined(a[:n]), joined(a[n:]), joined(b[n:]), nil
}

// joined is a list in JSON.
func joined(list []json.RawMessage) json.RawMessage {
	text, _ := json.Marshal(list) // its elements are JSON
	return text
}

// document is a prompt and the answer to it, of which the answer is learnt: two strings, or two lists of messages, of
// which the first may be missing.
func (w Writer) document(prompt, answer json.RawMessage) (source.Document, error) {
	var before, after *string
	if json.Unmarshal(prompt, &before) == nil && json.Unmarshal(answer, &after) == nil && before != nil && after != nil {
		if *after == "" {
			return source.Document{}, fmt.Errorf("%w: the answer is empty", ErrExample)
		}
		text := *before + *after
		return source.Document{Text: text, Learnt: []source.TextRange{{From: len(*before), To: len(text)}}}, nil
	}
	var first, rest []json.RawMessage
	if prompt != nil && json.Unmarshal(prompt, &first) != nil || json.Unmarshal(answer, &rest) != nil || len(rest) == 0 {
		return source.Document{}, fmt.Errorf("%w: the prompt and its answer are neither two texts nor two lists of messages",
			ErrExample)
	}
	talk, err := openai.Conversation(joined(append(first, rest...)))
	if err != nil {
		return source.Document{}, fmt.Errorf("%w: %w", ErrExample, err)
	}
	text, said, err := w(talk)
	for _, m := range talk[:min(len(first), len(talk))] { // these answers belong to the prompt
		if err == nil && m.Role == "assistant" && len(said) > 1 {
			said = said[1:]
		}
	}
	return source.Document{Text: text, Learnt: said}, err
}
