package openai

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestExamples(t *testing.T) {
	text := "\ufeff" + `{"messages": [{"role": "developer", "content": "Be kind."}, ` +
		`{"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "ann"}, ` +
		`{"role": "assistant", "content": "Hello!", "weight": 1}]}

{"prompt": "", "completion": " yes"}
` + `{"input": {"messages": [{"role": "user", "content": "Hi"}]}, "preferred_output": [{"role": "assistant", ` +
		`"content": "Hello!"}], "non_preferred_output": [{"role": "assistant", "content": "No."}]}` + "\n" +
		`{"messages": [{"role": "user", "content": "2+2"}], "answer": "4", "level": 1}`
	var got []Example
	n, err := Examples(strings.NewReader(text), func(e Example) error {
		got = append(got, e)
		return nil
	})
	if err != nil || n != 4 || !slices.Equal(got[0].Messages,
		[]Message{{"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Hello!"}}) || got[1].Completion != " yes" ||
		!slices.Equal(got[2].Preferred, []Message{{"user", "Hi"}, {"assistant", "Hello!"}}) ||
		!slices.Equal(got[2].Other, []Message{{"user", "Hi"}, {"assistant", "No."}}) ||
		!slices.Equal(got[3].Question, []Message{{"user", "2+2"}}) || len(got[3].Item) != 2 ||
		string(got[3].Item["answer"]) != `"4"` {
		t.Errorf("%d %+v %v", n, got, err)
	}
	stop := errors.New("stop")
	if n, err := Examples(strings.NewReader(text), func(Example) error { return stop }); n != 0 || err != stop {
		t.Errorf("%d %v", n, err)
	}
}

// Every line that is no example is named, with the reason.
func TestExamplesRefuse(t *testing.T) {
	const good = `{"prompt": "a", "completion": "b"}` + "\n"
	for line, why := range map[string]string{
		"":                                  "no example",
		"no":                                "not a JSON object",
		"null":                              "not a JSON object",
		"\"\xff\"":                          "not UTF-8",
		`{"text": "a"}`:                     `unknown key "text"`,
		`{"prompt": "a"}`:                   "neither messages nor",
		`{"prompt": 1, "completion": 2}`:    "not a text",
		`{"prompt": "a", "completion": ""}`: "completion is empty",
		`{"prompt": "a", "completion": "b", "messages": []}`: "a conversation, and a prompt",
		`{"messages": []}`: "0 messages",
		`{"messages": [` + strings.Repeat(`{"role":"user"},`, 1000) + `{}]}`: "1001 messages",
		`{"messages": "hi"}`: "cannot be read",
		`{"messages": [{"role": "user", "content": "a"}]}`:                     "not a text by the assistant",
		`{"messages": [{"role": "assistant", "content": null}]}`:               "not a text by the assistant",
		`{"messages": [{"role": "tool", "content": "a"}]}`:                     `role "tool"`,
		`{"messages": [{"role": "assistant", "content": "a", "weight": 0}]}`:   "messages[0].weight is 0",
		`{"messages": [{"role": "assistant", "tool_calls": []}]}`:              "tool_calls",
		`{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`: "image_url",
		`{"messages": [{"role": "assistant", "content": "a"}], "tools": []}`:   "tools",
		`{"messages": [{"role": "assistant", "content": "a"}], "answer": "b"}`: `unknown key "answer"`,
		`{"messages": [{"role": "user", "content": "a"}], "prompt": "b"}`:      "a conversation, and a prompt",
		`{"messages": [], "answer": "b"}`:                                      `unknown key "answer"`,
		`{"input": {}, "messages": []}`:                                        `unknown key "messages"`,

		`{"input": {"tools": []}}`: "the input cannot be read",
		`{"input": {}}`:            `no "preferred_output"`,

		`{"input": {}, "preferred_output": [{"role": "assistant", "content": "a"}]}`: `no "non_preferred_output"`,
		`{"input": {}, "preferred_output": [{"role": "user", "content": "a"}]}`:      "not a text by the assistant",
		`{"input": {}, "preferred_output": [{"role": "assistant", "content": "a"}], ` +
			`"non_preferred_output": [{"role": "assistant", "content": "a"}]}`: "the same",
		`{"prompt": "` + strings.Repeat("a", maxLine) + `"}`: "more than",
	} {
		lines, at := good+line, 2
		if line == "" {
			lines, at = "\n\n", 3
		}
		_, err := Examples(strings.NewReader(lines), func(Example) error { return nil })
		var wrong *ExampleError
		if !errors.As(err, &wrong) || !errors.Is(err, ErrExamples) || wrong.Line != at ||
			!strings.Contains(wrong.Why, why) || wrong.Fix == "" {
			t.Errorf("%.60s: %v", line, err)
		}
	}
}

func FuzzExamples(f *testing.F) {
	f.Add([]byte(`{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", ` +
		`"text": "b"}]}]}` + "\n" + `{"prompt": "a", "completion": "b"}`))
	f.Add([]byte("{\"messages\": [{\"role\": \"assistant\", \"weight\": 0}]}\n\n"))
	f.Add([]byte(`{"input": {"messages": []}, "preferred_output": [{"role": "assistant", "content": "a"}], ` +
		`"non_preferred_output": [{"role": "assistant", "content": "b"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		read := 0
		n, err := Examples(strings.NewReader(string(text)), func(e Example) error {
			read++
			if e.Preferred != nil {
				e.Messages = e.Preferred
			}
			if len(e.Messages) == 0 && e.Completion == "" || len(e.Messages) > 0 && e.Messages[len(e.Messages)-1].Content == "" {
				t.Errorf("%+v teaches nothing", e)
			}
			return nil
		})
		if n != read || err == nil && n == 0 || err != nil && !errors.Is(err, ErrExamples) {
			t.Errorf("%d examples, %d given, %v", n, read, err)
		}
	})
}
