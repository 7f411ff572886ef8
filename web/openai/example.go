package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode/utf8"
)

// Example is an example of fine-tuning: a conversation that ends with the assistant, a prompt and its completion, a
// pair of conversations that differ in their last answer, or a question.
type Example struct {
	Messages           []Message // none: Prompt and Completion, a pair, or a question
	Prompt, Completion string
	Preferred, Other   []Message // of a pair: with the preferred answer, and with the other one

	Question []Message                  // a conversation that ends with the user
	Item     map[string]json.RawMessage // of a question: its other keys, to which graders refer
}

// Limits of a file of examples.
const (
	maxLine     = 1 << 20 // bytes
	maxMessages = 1000    // of an example
)

// ErrExamples is wrapped by every reason why a file does not consist of examples.
var ErrExamples = errors.New("not a file of examples")

// ExampleError says which line of a file is no example, and why. It wraps ErrExamples.
type ExampleError struct {
	Line     int // from 1
	Why, Fix string
}

func (e *ExampleError) Error() string { return fmt.Sprintf("Line %d: %s: %s.", e.Line, e.Why, e.Fix) }

func (e *ExampleError) Unwrap() error { return ErrExamples }

// Examples reads a file of one JSON object a line, and gives each its example; empty lines say nothing. It returns how
// many there are. The error is an *ExampleError, or that of r or each.
func Examples(r io.Reader, each func(Example) error) (n int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	line := 0
	for lines.Scan() {
		line++
		text := lines.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		e, wrong := parseExample(text)
		if wrong != nil {
			wrong.Line = line
			return n, wrong
		}
		if err := each(e); err != nil {
			return n, err
		}
		n++
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return n, &ExampleError{line + 1, fmt.Sprintf("it has more than %d bytes", maxLine), "split the example"}
	case err != nil:
		return n, err
	case n == 0:
		return n, &ExampleError{line + 1, "the file ends, and it has no example",
			`write one a line, such as {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": ` +
				`"Hello!"}]}`}
	}
	return n, nil
}

// parseExample reads a line.
func parseExample(line []byte) (e Example, wrong *ExampleError) {
	bad := func(fix, why string, args ...any) (Example, *ExampleError) {
		return Example{}, &ExampleError{Why: fmt.Sprintf(why, args...), Fix: fix}
	}
	if !utf8.Valid(line) {
		return bad("save the file as UTF-8", "it is not UTF-8")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil || keys == nil {
		return bad("write one object a line, with no line break inside", "it is not a JSON object")
	}
	if _, pair := keys["input"]; pair {
		return parsePair(keys)
	}
	if _, talks := keys["messages"]; talks && len(keys) > 1 {
		if e, ok := parseQuestion(keys); ok {
			return e, nil
		}
	}
	for key := range keys {
		switch key {
		case "messages", "prompt", "completion":
		case "tools", "functions", "parallel_tool_calls":
			return bad("leave it out", "%q is given, and models are not tuned to use tools", key)
		default:
			return bad(`write "messages", "prompt" and "completion", or "input" with two answers`,
				"it has the unknown key %.40q", key)
		}
	}
	_, talks := keys["messages"]
	_, prompts := keys["prompt"]
	_, completes := keys["completion"]
	switch {
	case talks && (prompts || completes):
		return bad("keep one of the two", "it is a conversation, and a prompt with its completion")
	case talks:
		if e.Messages, wrong = parseTalk(keys["messages"]); wrong != nil {
			return Example{}, wrong
		}
		return e, nil
	case !prompts || !completes:
		return bad(`write "messages", or "prompt" and "completion"`,
			"it has neither messages nor a prompt with its completion")
	}
	var prompt, completion *string
	if json.Unmarshal(keys["prompt"], &prompt) != nil || json.Unmarshal(keys["completion"], &completion) != nil ||
		prompt == nil || completion == nil {
		return bad("write both as strings", "the prompt or the completion is not a text")
	}
	if *completion == "" {
		return bad("write what the model is to say", "the completion is empty")
	}
	return Example{Prompt: *prompt, Completion: *completion}, nil
}

// parsePair reads a line with two answers to one conversation, in the form of OpenAI's preferences.
func parsePair(keys map[string]json.RawMessage) (e Example, wrong *ExampleError) {
	const form = `write "input": {"messages": [...]}, and "preferred_output" and "non_preferred_output", lists of messages`
	bad := func(why string, args ...any) (Example, *ExampleError) {
		return Example{}, &ExampleError{Why: fmt.Sprintf(why, args...), Fix: form}
	}
	for key := range keys {
		if key != "input" && key != "preferred_output" && key != "non_preferred_output" {
			return bad("it has an input, and the unknown key %.40q", key)
		}
	}
	var input struct {
		Messages []json.RawMessage `json:"messages"`
	}
	d := json.NewDecoder(bytes.NewReader(keys["input"]))
	d.DisallowUnknownFields()
	if err := d.Decode(&input); err != nil {
		return bad("the input cannot be read (%s)", strings.TrimPrefix(err.Error(), "json: "))
	}
	talk := func(answer string) ([]Message, *ExampleError) {
		var said []json.RawMessage
		if json.Unmarshal(keys[answer], &said) != nil || len(said) == 0 {
			return nil, &ExampleError{Why: fmt.Sprintf("it has no %q", answer), Fix: form}
		}
		all, _ := json.Marshal(append(input.Messages[:len(input.Messages):len(input.Messages)], said...)) // it was JSON
		return parseTalk(all)
	}
	if e.Preferred, wrong = talk("preferred_output"); wrong == nil {
		e.Other, wrong = talk("non_preferred_output")
	}
	if wrong != nil {
		return Example{}, wrong
	}
	if bytes.Equal(bytes.TrimSpace(keys["preferred_output"]), bytes.TrimSpace(keys["non_preferred_output"])) {
		return bad("both answers are the same")
	}
	return e, nil
}

// parseQuestion reads a line with a conversation that ends with the user, and other keys; ok: it is one.
func parseQuestion(keys map[string]json.RawMessage) (e Example, ok bool) {
	for _, of := range []string{"prompt", "completion", "tools", "functions", "parallel_tool_calls"} {
		if _, given := keys[of]; given {
			return Example{}, false
		}
	}
	talk, wrong := parseMessages(keys["messages"])
	if wrong != nil || talk[len(talk)-1].Role != "user" {
		return Example{}, false
	}
	e = Example{Question: talk, Item: maps.Clone(keys)}
	delete(e.Item, "messages")
	return e, true
}

// Conversation reads the messages of an example, which end with the assistant.
func Conversation(raw []byte) ([]Message, error) {
	talk, wrong := parseTalk(raw)
	if wrong != nil {
		return nil, fmt.Errorf("%s: %s", wrong.Why, wrong.Fix)
	}
	return talk, nil
}

// parseTalk reads the messages of a line, which end with the assistant.
func parseTalk(raw json.RawMessage) ([]Message, *ExampleError) {
	messages, wrong := parseMessages(raw)
	if wrong != nil {
		return nil, wrong
	}
	if last := messages[len(messages)-1]; last.Role != "assistant" || last.Content == "" {
		return nil, &ExampleError{Why: "the last message is not a text by the assistant",
			Fix: `end it with a message of the assistant, or give another key, such as "reference_answer"`}
	}
	return messages, nil
}

// parseMessages reads the messages of a line.
func parseMessages(raw json.RawMessage) ([]Message, *ExampleError) {
	bad := func(fix, why string, args ...any) ([]Message, *ExampleError) {
		return nil, &ExampleError{Why: fmt.Sprintf(why, args...), Fix: fix}
	}
	var list []struct {
		message
		Name   string `json:"name"`
		Weight *int   `json:"weight"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return bad(`a message has a "role" and a "content", a text`, "the messages cannot be read (%s)",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	if len(list) == 0 || len(list) > maxMessages {
		return bad(fmt.Sprintf("write 1 to %d", maxMessages), "it has %d messages", len(list))
	}
	var talk []message
	for i, m := range list {
		if m.Weight != nil && *m.Weight != 1 {
			return bad("leave the weight out, and the conversation too if it is not to be learned",
				"messages[%d].weight is %d, and a model learns the whole of a conversation", i, *m.Weight)
		}
		talk = append(talk, m.message)
	}
	messages, err := conversation(talk)
	if err != nil {
		return bad("use the roles system, developer, user and assistant, and text", "%s",
			strings.TrimSuffix(err.Error(), "."))
	}
	return messages, nil
}
