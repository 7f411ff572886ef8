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
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/web/openai"
)

// template renders conversations for a model.
type template interface {
	// render returns the text that the assistant continues, and the strings that end its turn.
	render(conversation []openai.Message) (prompt string, stops []string, err error)
	// transcript returns the text of a conversation that is over. It begins as the prompt of its first messages does.
	transcript(conversation []openai.Message) (string, error)
}

// Transcripts returns how the model in a folder has whole conversations written that it is trained on, so that it is
// asked later in the form that it learnt; "" is a model that is made from nothing. The error wraps ErrFolder.
func Transcripts(dir string) (func(conversation []openai.Message) (string, error), error) {
	if dir == "" {
		return plainChat{}.transcript, nil
	}
	c, err := readChat(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	if c == nil {
		c = plainChat{}
	}
	return c.transcript, nil
}

// Answers is Transcripts with the ranges of the assistant's turns: the bytes after the prompt of each turn, to the
// end of the turn.
func Answers(dir string) (func(conversation []openai.Message) (string, []source.TextRange, error), error) {
	var c template = plainChat{}
	if dir != "" {
		own, err := readChat(dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFolder, err)
		}
		if own != nil {
			c = own
		}
	}
	return func(conversation []openai.Message) (string, []source.TextRange, error) {
		return answers(c, conversation)
	}, nil
}

func answers(c template, conversation []openai.Message) (string, []source.TextRange, error) {
	text, err := c.transcript(conversation)
	said := []source.TextRange{}
	for i, m := range conversation {
		if err != nil || m.Role != "assistant" {
			continue
		}
		var prompt, turn string
		if i > 0 {
			prompt, _, err = c.render(conversation[:i])
		}
		if err == nil {
			turn, err = c.transcript(conversation[:i+1])
		}
		if err == nil && !(strings.HasPrefix(turn, prompt) && strings.HasPrefix(text, turn)) {
			err = fmt.Errorf("%w: the chat template of the model does not write turn %d after those before it, so that it is "+
				"not known what of the text it is", openai.ErrRequest, i+1)
		}
		said = append(said, source.TextRange{From: len(prompt), To: len(turn)})
	}
	return text, said, err
}

// Labels of a job whose model is tuned on conversations in the form of plainChat.
const (
	LabelTemplate = "chat_template"
	Plain         = "plain"
)

// PlainTemplate is plainChat as other programs render it: Jinja.
const PlainTemplate = "{% for message in messages %}{% if message['role'] == 'user' %}{{ 'User: ' }}" +
	"{% elif message['role'] == 'assistant' %}{{ 'Assistant: ' }}{% endif %}{{ message['content'] | trim }}{{ '\n\n' " +
	"}}{% endfor %}" +
	"{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"

// plainChat is for models that say nothing about conversations: a line "User: " or "Assistant: " before each turn and
// an empty line after it; what the system says stands first, as it is. A turn ends before the next line of the user.
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

// ownChat is the chat template of a folder.
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
	return "", nil, fmt.Errorf("%w: the model has a chat_template that is not rendered here (%w): use /v1/completions "+
		"with the prompt that it makes", openai.ErrRequest, c.why)
}

func (c unknownChat) transcript([]openai.Message) (string, error) {
	return "", fmt.Errorf("%w: the model has a chat_template that is not rendered here (%w): give examples of a prompt "+
		"and its completion", openai.ErrRequest, c.why)
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

// chatKeys are what the files of a folder say about conversations.
type chatKeys struct {
	Template json.RawMessage `json:"chat_template"`
	BOS      tokenText       `json:"bos_token"`
	EOS      tokenText       `json:"eos_token"`
}

// Files that say something about conversations.
const (
	fileTokenizerConfig = "tokenizer_config.json"
	fileTemplate        = "chat_template.jinja"     // in place of the key chat_template
	fileSpecialTokens   = "special_tokens_map.json" // in place of the keys of tokens
)

// readKeys reads those of the files that are there.
func readKeys(dir string) (k chatKeys, err error) {
	var tokens chatKeys
	for name, into := range map[string]*chatKeys{fileTokenizerConfig: &k, fileSpecialTokens: &tokens} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return k, fmt.Errorf("%s: %w", name, err)
		}
	}
	template, err := os.ReadFile(filepath.Join(dir, fileTemplate))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if string(k.Template) == "null" {
		k.Template = nil
	}
	if len(k.Template) == 0 && len(template) > 0 {
		if k.Template, err = json.Marshal(string(template)); err != nil {
			return k, err
		}
	}
	if k.BOS == "" && k.EOS == "" {
		k.BOS, k.EOS = tokens.BOS, tokens.EOS
	}
	return k, nil
}

// TemplateOf is the chat template of the model in a folder, in Jinja; "" if it has none, or several.
func TemplateOf(dir string) (string, error) {
	k, err := readKeys(dir)
	var source string
	if err != nil || len(k.Template) == 0 || json.Unmarshal(k.Template, &source) != nil {
		return "", err
	}
	return source, nil
}

// ChatFiles returns the files, by name, in which a model that was made of the one in a folder keeps how it wants
// conversations; none if the folder does not say.
func ChatFiles(dir string) (map[string][]byte, error) {
	k, err := readKeys(dir)
	var source string
	if err != nil || len(k.Template) == 0 || json.Unmarshal(k.Template, &source) != nil {
		return nil, err
	}
	tokens, err := json.MarshalIndent(map[string]tokenText{"bos_token": k.BOS, "eos_token": k.EOS}, "", "  ")
	return map[string][]byte{fileTemplate: []byte(source), fileSpecialTokens: append(tokens, '\n')}, err
}

// readChat reads how the model in a folder wants conversations; nil if it does not say.
func readChat(dir string) (template, error) {
	keys, err := readKeys(dir)
	if err != nil || len(keys.Template) == 0 {
		return nil, err
	}
	var source string
	if err := json.Unmarshal(keys.Template, &source); err != nil {
		return unknownChat{errors.New("it is not one text")}, nil
	}
	if source == PlainTemplate {
		return plainChat{}, nil
	}
	parsed, err := chat.Parse(source)
	if err != nil {
		return unknownChat{err}, nil
	}
	return ownChat{parsed, string(keys.BOS), string(keys.EOS)}, nil
}
