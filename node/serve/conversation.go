package serve

import (
	"context"
	"strings"

	"github.com/starling-network/starling/web/openai"
)

// Conversation is a conversation of one user with a model of an engine, turn by turn.
type Conversation struct {
	engine   *Engine
	how      openai.Request
	system   []openai.Message // that stands first, if it is there
	messages []openai.Message // the turns
}

// NewConversation begins one. how names the model that answers, and how its tokens are drawn; system, if it is not
// "", is the first message.
func NewConversation(e *Engine, how openai.Request, system string) *Conversation {
	c := &Conversation{engine: e, how: how}
	if system != "" {
		c.system = []openai.Message{{Role: "system", Content: system}}
	}
	return c
}

// Say returns the model's answer to a turn, and tells it as it comes. The first turns are forgotten when the
// conversation outgrows the model's context; a turn that does so alone fails.
func (c *Conversation) Say(ctx context.Context, text string,
	emit func(piece string) error) (string, openai.Result, error) {
	c.messages = append(c.messages, openai.Message{Role: "user", Content: text})
	for {
		r := c.how
		var err error
		if r.Prompt, r.Stops, err = c.engine.Prompt(r.Model,
			append(c.system[:len(c.system):len(c.system)], c.messages...)); err != nil {
			return "", openai.Result{}, err
		}
		prompt := len(c.engine.tok.EncodeText(r.Prompt)) // tokens
		if len(c.messages) > 1 && prompt+r.Max > c.engine.context {
			c.messages = c.messages[min(2, len(c.messages)-1):] // a turn and its answer
			continue
		}
		r.Max = max(1, min(r.Max, c.engine.context-prompt))
		var answer strings.Builder
		made, err := c.engine.Generate(ctx, r, func(p openai.Piece) error {
			answer.WriteString(p.Text)
			return emit(p.Text)
		})
		if err != nil {
			c.messages = c.messages[:len(c.messages)-1]
			return "", made, err
		}
		c.messages = append(c.messages, openai.Message{Role: "assistant", Content: strings.TrimSpace(answer.String())})
		return answer.String(), made, nil
	}
}
