package openai

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/starling-network/starling/web/openai/strategy"
)

// shared are the parameters that both kinds of requests have.
type shared struct {
	Model       string            `json:"model"`
	Stream      bool              `json:"stream"`
	Streaming   streaming         `json:"stream_options"`
	Temperature *float64          `json:"temperature"`
	TopP        *float64          `json:"top_p"`
	Seed        *int64            `json:"seed"`
	N           *int              `json:"n"`
	Stop        texts             `json:"stop"`
	Max         *int              `json:"max_tokens"`
	Presence    float64           `json:"presence_penalty"`
	Frequency   float64           `json:"frequency_penalty"`
	Bias        any               `json:"logit_bias"`
	Strategy    *strategy.Options `json:"starling"`
}

type streaming struct {
	Usage bool `json:"include_usage"`
}

type completionRequest struct {
	shared
	Prompt   prompts `json:"prompt"`
	LogProbs *int    `json:"logprobs"`
	Echo     bool    `json:"echo"`
	Best     *int    `json:"best_of"`
	Suffix   string  `json:"suffix"`
}

type chatRequest struct {
	shared
	Messages  []message       `json:"messages"`
	LogProbs  bool            `json:"logprobs"`
	Top       int             `json:"top_logprobs"`
	MaxNew    *int            `json:"max_completion_tokens"`
	Tools     []any           `json:"tools"`
	Functions []any           `json:"functions"`
	Format    json.RawMessage `json:"response_format"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// texts is a string, a list of strings, or null.
type texts []string

// UnmarshalJSON reads either form.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = nil
		if string(raw) != "null" {
			*t = texts{one}
		}
		return nil
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return invalid("stop", "invalid_type", "stop is neither a string nor a list of strings.")
	}
	*t = many
	return nil
}

// content is a string, null, or a list of parts that are text.
type content struct {
	text    string
	foreign string // type of the first part that is no text; "": there is none
	at      int    // its place among the parts
}

// UnmarshalJSON reads any form.
func (c *content) UnmarshalJSON(raw []byte) error {
	*c = content{}
	if json.Unmarshal(raw, &c.text) == nil {
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return invalid("messages", "invalid_type", "The content of a message is neither a string nor a list of parts.")
	}
	var b strings.Builder
	for i, p := range parts {
		if p.Type != "text" && c.foreign == "" {
			c.foreign, c.at = cmp.Or(p.Type, "none"), i
		}
		b.WriteString(p.Text)
	}
	c.text = b.String()
	return nil
}

// prompts is a string, a list of strings, a list of tokens, or a list of these.
type prompts []prompt

type prompt struct {
	text   string
	tokens []int32
}

// UnmarshalJSON reads any form.
func (p *prompts) UnmarshalJSON(raw []byte) error {
	var many []string
	var tokens []int32
	var lists [][]int32
	var one string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		*p = prompts{{text: one}}
	case json.Unmarshal(raw, &many) == nil:
		for _, text := range many {
			*p = append(*p, prompt{text: text})
		}
	case json.Unmarshal(raw, &tokens) == nil:
		*p = prompts{{tokens: tokens}}
	case json.Unmarshal(raw, &lists) == nil:
		for _, list := range lists {
			*p = append(*p, prompt{tokens: list})
		}
	default:
		return invalid("prompt", "invalid_type", "prompt is neither a string nor a list of strings or tokens.")
	}
	return nil
}

// read decodes the body of a request. Parameters that it does not know are left to OpenAI's newer clients.
func read(r *http.Request, into any) error {
	if t := r.Header.Get("Content-Type"); t != "" && !strings.HasPrefix(t, "application/json") {
		return &refusal{status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Message: "Send the request as application/json."}
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(bytes.TrimSpace(raw), into); err != nil {
		var refused *refusal
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &refused):
			return refused
		case errors.As(err, &kind) && kind.Field != "":
			name := strings.TrimPrefix(kind.Field, "shared.")
			return invalid(name, "invalid_type", fmt.Sprintf("%s cannot be a JSON %s.", name, kind.Value))
		}
		return invalid("", "invalid_json", "We could not parse the JSON body of the request: "+err.Error())
	}
	return nil
}

// between refuses a number outside of a range; nil is the fallback.
func between[T int | float64](param string, x *T, least, most, fallback T) (T, error) {
	if x == nil {
		return fallback, nil
	}
	if !(*x >= least && *x <= most) {
		return 0, invalid(param, "invalid_value", fmt.Sprintf("%s is %v, it must be in %v..%v.", param, *x, least, most))
	}
	return *x, nil
}

// request checks the parameters, and returns them and the number of choices.
func (p *shared) request() (r Request, n int, err error) {
	if p.Presence != 0 || p.Frequency != 0 {
		return r, 0, invalid("presence_penalty", "unsupported_parameter",
			"Penalties are not supported: leave presence_penalty and frequency_penalty out.")
	}
	if bias, ok := p.Bias.(map[string]any); p.Bias != nil && (!ok || len(bias) > 0) {
		return r, 0, invalid("logit_bias", "unsupported_parameter", "logit_bias is not supported: leave it out.")
	}
	r = Request{Model: p.Model, Likely: -1, Stops: p.Stop, Strategy: p.Strategy}
	if len(p.Stop) > maxStops {
		return r, 0, invalid("stop", "invalid_value",
			fmt.Sprintf("There are %d stop strings, at most %d.", len(p.Stop), maxStops))
	}
	if r.Temperature, err = between("temperature", p.Temperature, 0, 2, 1); err != nil {
		return r, 0, err
	}
	if r.TopP, err = between("top_p", p.TopP, 0, 1, 1); err != nil {
		return r, 0, err
	}
	if r.Max, err = between("max_tokens", p.Max, 1, 1<<30, 0); err != nil {
		return r, 0, err
	}
	if n, err = between("n", p.N, 1, maxChoices, 1); err != nil {
		return r, 0, err
	}
	if p.Seed != nil {
		r.Seed = uint64(*p.Seed)
		return r, n, nil
	}
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	r.Seed = binary.LittleEndian.Uint64(seed[:])
	return r, n, nil
}

// requests are the texts that a completion asks for: the choices of each prompt in turn.
func (p *completionRequest) requests() ([]Request, error) {
	switch {
	case p.Echo:
		return nil, invalid("echo", "unsupported_parameter", "echo is not supported: the client knows its prompt.")
	case p.Suffix != "":
		return nil, invalid("suffix", "unsupported_parameter",
			"suffix is not supported: the model knows no text after a gap.")
	case p.Best != nil && *p.Best > 1:
		return nil, invalid("best_of", "unsupported_parameter", "best_of is not supported: ask for n choices and logprobs.")
	case len(p.Prompt) > maxPrompts:
		return nil, invalid("prompt", "invalid_value",
			fmt.Sprintf("There are %d prompts, at most %d.", len(p.Prompt), maxPrompts))
	case len(p.Prompt) == 0:
		p.Prompt = prompts{{}}
	}
	base, n, err := p.request()
	if err != nil {
		return nil, err
	}
	if base.Max == 0 {
		base.Max = 16
	}
	if p.LogProbs != nil {
		if base.Likely, err = between("logprobs", p.LogProbs, 0, maxLikely, -1); err != nil {
			return nil, err
		}
	}
	var all []Request
	for _, prompt := range p.Prompt {
		for range n {
			r := base
			r.Prompt, r.Tokens = prompt.text, prompt.tokens
			r.Seed += uint64(len(all))
			all = append(all, r)
		}
	}
	return all, nil
}

// requests are the choices that a chat asks for, of which the prompt is still to be set.
func (p *chatRequest) requests() ([]Request, []Message, error) {
	var format struct{ Type string }
	switch {
	case len(p.Tools) > 0 || len(p.Functions) > 0:
		return nil, nil, invalid("tools", "unsupported_parameter", "Tools are not supported: leave them out.")
	case len(p.Format) > 0 && (json.Unmarshal(p.Format, &format) != nil || format.Type != "" && format.Type != "text"):
		return nil, nil, invalid("response_format", "unsupported_parameter", "Only text is supported as response_format.")
	case len(p.Messages) == 0:
		return nil, nil, invalid("messages", "invalid_value", "There are no messages.")
	}
	talk, err := conversation(p.Messages)
	if err != nil {
		return nil, nil, err
	}
	if p.MaxNew != nil {
		p.Max = p.MaxNew
	}
	base, n, err := p.request()
	if err != nil {
		return nil, nil, err
	}
	if p.LogProbs {
		if base.Likely, err = between("top_logprobs", &p.Top, 0, maxLikely, 0); err != nil {
			return nil, nil, err
		}
	}
	all := make([]Request, n)
	for i := range all {
		all[i] = base
		all[i].Seed += uint64(i)
	}
	return all, talk, nil
}

// conversation reads messages; developers count as the system.
func conversation(messages []message) ([]Message, error) {
	var talk []Message
	for i, m := range messages {
		if m.Content.foreign != "" {
			return nil, invalid(fmt.Sprintf("messages[%d].content[%d].type", i, m.Content.at), "unsupported_content",
				fmt.Sprintf("A part of a message is of type %.40q: this model reads text alone.", m.Content.foreign))
		}
		role := m.Role
		switch role {
		case "developer":
			role = "system"
		case "system", "user", "assistant":
		default:
			return nil, invalid(fmt.Sprintf("messages[%d].role", i), "invalid_value",
				fmt.Sprintf("The role %.40q is not system, user or assistant.", m.Role))
		}
		talk = append(talk, Message{Role: role, Content: m.Content.text})
	}
	return talk, nil
}
