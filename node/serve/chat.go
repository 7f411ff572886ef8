package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/compute/data/chat"
	"github.com/starling-network/starling/web/openai"
)

// template renders conversations for a model.
type template interface {
	// render returns the text that the assistant continues, and the strings that end its turn.
	render(conversation []openai.Message) (prompt string, stops []string, err error)
	// transcript returns the text of a conversation that is over. It begins as the prompt of its first messages does.
	transcript(conversation []openai.Message) (string, error)
}

// Transcripts returns how the model in a folder has whole conversations written that it is trained on, so that it is asked
// later in the form that it learnt. The error wraps ErrFolder.
func Transcripts(dir string) (func(conversation []openai.Message) (string, error), error) {
	c, err := readChat(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if c == nil {
		c = plainChat{}
	}
	return c.transcript, nil
}

// plainChat is for models that say nothing about conversations: a line "User: " or "Assistant: " before each turn and an empty
// line after it; what the system says stands first, as it is. A turn ends before the next line of the user.
type plainChat struct{}

func (p plainChat) render(conversation []openai.Message) (string, []string, error) {
	text, err := p.transcript(conversation)
	return text + "Assistant:", []string{"\nUser:"}, err
}

func (plainChat) transcript(conversation []openai.Message) (string, error) {
	names := map[string]string{"user": "User: ", "assistant": "Assistant: "}
	var b strings.Builder
	for _, m := range conversation {
		fmt.Fprintf(&b, "%s%s\n\n", names[m.Role], strings.TrimSpace(m.Content))
	}
	return b.String(), nil
}

// ownChat is the chat_template of a tokenizer_config.json.
type ownChat struct {
	template *chat.Template
	bos, eos string
}

// render ends a turn at the text of the token that ends one, also where the tokenizer does not take it for one token.
func (c ownChat) render(conversation []openai.Message) (string, []string, error) {
	prompt, err := c.template.Render(turns(conversation), c.bos, c.eos)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", openai.ErrRequest, err)
	}
	return prompt, []string{c.eos}, nil
}

func (c ownChat) transcript(conversation []openai.Message) (string, error) {
	text, err := c.template.Transcript(turns(conversation), c.bos, c.eos)
	if err != nil {
		return "", fmt.Errorf("%w: %w", openai.ErrRequest, err)
	}
	return text, nil
}

func turns(conversation []openai.Message) (list []chat.Message) {
	for _, m := range conversation {
		list = append(list, chat.Message(m))
	}
	return list
}

// unknownChat is a chat_template that cannot be rendered here.
type unknownChat struct{ why error }

func (c unknownChat) render([]openai.Message) (string, []string, error) {
	return "", nil, fmt.Errorf("%w: the model has a chat_template that is not rendered here (%w): use /v1/completions with the prompt that it makes", openai.ErrRequest, c.why)
}

func (c unknownChat) transcript([]openai.Message) (string, error) {
	return "", fmt.Errorf("%w: the model has a chat_template that is not rendered here (%w): give examples of a prompt and its completion", openai.ErrRequest, c.why)
}

// tokenText is a token of a tokenizer_config.json: its text, or an object with it.
type tokenText string

// UnmarshalJSON reads either form.
func (t *tokenText) UnmarshalJSON(raw []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(raw, (*string)(t)) == nil {
		return nil
	}
	err := json.Unmarshal(raw, &object)
	*t = tokenText(object.Content)
	return err
}

// readChat reads how the model in a folder wants conversations; nil if it does not say.
func readChat(dir string) (template, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var keys struct {
		Template json.RawMessage `json:"chat_template"`
		BOS      tokenText       `json:"bos_token"`
		EOS      tokenText       `json:"eos_token"`
	}
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	if len(keys.Template) == 0 || string(keys.Template) == "null" {
		return nil, nil
	}
	var source string
	if err := json.Unmarshal(keys.Template, &source); err != nil {
		return unknownChat{errors.New("it is not one text")}, nil
	}
	parsed, err := chat.Parse(source)
	if err != nil {
		return unknownChat{err}, nil
	}
	return ownChat{parsed, string(keys.BOS), string(keys.EOS)}, nil
}
