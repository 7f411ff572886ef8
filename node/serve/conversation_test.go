package serve

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/web/openai"
)

// The same turns get the same answers, each with those before it in view, and a conversation outlives the model's
// context.
func TestConversation(t *testing.T) {
	e := open(t, Options{Texts: 1})
	talk := func(system string) (answers []string) {
		c := NewConversation(e, openai.Request{Model: e.Models()[0].Name, Max: 4, Temperature: 1, TopP: 1, Seed: 3,
			Likely: -1}, system)
		for range 2 * contextTokens / len("User: hi\n\nAssistant:") {
			var told strings.Builder
			text, made, err := c.Say(t.Context(), "hi", func(piece string) error { told.WriteString(piece); return nil })
			if err != nil || told.String() != text || made.Tokens == 0 || made.PromptTokens+4 > contextTokens {
				t.Fatalf("%q, %+v, %v", text, made, err)
			}
			answers = append(answers, text)
		}
		return answers
	}
	first, again := talk(""), talk("")
	if strings.Join(first, "|") != strings.Join(again, "|") {
		t.Errorf("%q and %q", first, again)
	}
	if len(first) < 3 {
		t.Fatalf("only %d turns: the context was never full", len(first))
	}
	c := NewConversation(e, openai.Request{Model: e.Models()[0].Name, Max: 4, TopP: 1, Likely: -1}, "")
	if _, _, err := c.Say(t.Context(), strings.Repeat("long ", contextTokens),
		func(string) error { return nil }); err == nil {
		t.Error("a turn longer than the context was answered")
	}
}
