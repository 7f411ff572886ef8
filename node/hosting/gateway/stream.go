package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/starling-network/starling/web/openai"
)

// Limits of the stream of a provider.
const (
	maxEvent  = 256 << 10 // bytes
	maxEvents = 1 << 16   // lines: three for a token, and some
	maxText   = 4 << 20   // bytes of an answer
)

// errStream is wrapped by the reasons why a stream is no answer.
var errStream = errors.New("the stream of the provider is no answer")

// event is a piece of an answer in a stream of OpenAI's interface.
type event struct {
	Choices []struct {
		Text   string  `json:"text"`
		Delta  delta   `json:"delta"`
		Finish *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt int `json:"prompt_tokens"`
		Made   int `json:"completion_tokens"`
	} `json:"usage"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type delta struct {
	Content string `json:"content"`
}

// readStream reads a stream of events to its end and gives emit the text. tick is called with each event.
func readStream(from io.Reader, tick func(), emit func(text string) error) (made openai.Result, _ error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	size := 0
	for n := 0; lines.Scan(); n++ {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		tick()
		if n > maxEvents {
			return made, fmt.Errorf("%w: it has more than %d lines", errStream, maxEvents)
		}
		if string(data) == "[DONE]" {
			if made.Finish == "" || made.PromptTokens < 1 || made.Tokens < 0 {
				return made, fmt.Errorf("%w: it ends without a reason or a count of tokens", errStream)
			}
			_, err := io.Copy(io.Discard, io.LimitReader(from, maxEvent)) // to the trailer
			return made, err
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			return made, fmt.Errorf("%w: %w", errStream, err)
		}
		if e.Error != nil {
			return made, fmt.Errorf("%w: %.200s", errStream, e.Error.Message)
		}
		if e.Usage != nil {
			made.PromptTokens, made.Tokens = e.Usage.Prompt, e.Usage.Made
		}
		for _, c := range e.Choices {
			piece := c.Text + c.Delta.Content
			if size += len(piece); size > maxText {
				return made, fmt.Errorf("%w: it has more than %d bytes", errStream, maxText)
			}
			if c.Finish != nil {
				made.Finish = *c.Finish
			}
			if piece != "" {
				if err := emit(piece); err != nil {
					return made, err
				}
			}
		}
	}
	if err := lines.Err(); err != nil {
		return made, fmt.Errorf("%w: %w", errStream, err)
	}
	return made, fmt.Errorf("%w: it breaks off", errStream)
}
