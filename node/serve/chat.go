package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-network/starling/web/openai"
)

// template renders conversations for a model.
type template interface {
	// render returns the text that the assistant continues, and the strings that end its turn.
	render(conversation []openai.Message) (prompt string, stops []string, err error)
}

// plainChat is for models that say nothing about conversations: a line "User: " or "Assistant: " before each turn and an empty
// line after it; what the system says stands first, as it is. A turn ends before the next line of the user.
type plainChat struct{}

func (plainChat) render(conversation []openai.Message) (string, []string, error) {
	names := map[string]string{"user": "User: ", "assistant": "Assistant: "}
	var b strings.Builder
	for _, m := range conversation {
		fmt.Fprintf(&b, "%s%s\n\n", names[m.Role], strings.TrimSpace(m.Content))
	}
	b.WriteString("Assistant:")
	return b.String(), []string{"\nUser:"}, nil
}

// ownChat is the chat_template of a tokenizer_config.json: a program in Jinja, which nothing here runs.
type ownChat struct{}

func (ownChat) render([]openai.Message) (string, []string, error) {
	return "", nil, fmt.Errorf("%w: the model has a chat_template of its own, which is not rendered here: use /v1/completions with the prompt that it makes", openai.ErrRequest)
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
	}
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	if len(keys.Template) == 0 || string(keys.Template) == "null" {
		return nil, nil
	}
	return ownChat{}, nil
}
