package serve

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/web/openai"
)

// TestOpenAIClient talks to an engine over HTTP with OpenAI's own client.
func TestOpenAIClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run OpenAI's client with")
	}
	clients := filepath.Join("..", "..", "web", "clients")
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "openai")); err != nil {
		t.Skip("OpenAI's client is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	e := open(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- openai.Serve(ctx, l, openai.New(e, openai.Config{Token: "sesame"})) }()

	var stderr strings.Builder
	const prompt = "once upon"
	inputs.Of(t, filepath.Join(clients, "openai.mjs"))
	cmd := exec.CommandContext(t.Context(), node, "openai.mjs", "http://"+l.Addr().String()+"/v1", "sesame", prompt)
	cmd.Dir, cmd.Stderr = clients, &stderr
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	checkClient(t, e, raw, prompt)
}

type clientChoice struct {
	Text     string
	Finish   string `json:"finish_reason"`
	Message  struct{ Role, Content string }
	Delta    struct{ Role, Content string }
	LogProbs struct {
		Tokens []string
		Logs   []float64 `json:"token_logprobs"`
	}
}

type clientAnswer struct {
	Choices []clientChoice
	Usage   *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

// checkClient compares the text that the client received with the text of the engine without HTTP.
func checkClient(t *testing.T, e *Engine, raw []byte, prompt string) {
	t.Helper()
	var heard struct {
		Models       []string
		Model        string
		Completion   clientAnswer
		Streamed     string
		Chat         clientAnswer
		Pieces       []clientAnswer
		Final, Tuned string
		Errors       map[string]struct {
			Kind              string
			Status            int
			Code, Param, Type string
		}
	}
	if err := json.Unmarshal(raw, &heard); err != nil {
		t.Fatal(err)
	}
	r := openai.Request{Model: "base", Prompt: prompt, Max: 12, Temperature: 0.7, TopP: 1, Seed: 3, Likely: -1}
	want, result := generated(t, e, r)
	c := heard.Completion
	if strings.Join(heard.Models, " ") != "base tuned" || heard.Model != "tuned" {
		t.Errorf("models %q, %q", heard.Models, heard.Model)
	}
	// Bytes that are no character come as the replacement in JSON.
	valid := func(s string) string { return strings.ToValidUTF8(s, "�") }
	if valid(c.Choices[0].Text) != validEach(want) || heard.Streamed != c.Choices[0].Text ||
		c.Usage.Prompt != result.PromptTokens || c.Usage.Completion != result.Tokens ||
		len(c.Choices[0].LogProbs.Logs) != result.Tokens {
		t.Errorf("heard %q and %q, %+v; the engine says %q, %+v", c.Choices[0].Text, heard.Streamed, c.Usage, want, result)
	}
	var streamed string
	for _, p := range heard.Pieces {
		if len(p.Choices) > 0 {
			streamed += p.Choices[0].Delta.Content
		}
	}
	first := heard.Chat.Choices[0].Message
	if len(heard.Chat.Choices) != 2 || first.Role != "assistant" || streamed != first.Content ||
		heard.Final != first.Content || heard.Pieces[len(heard.Pieces)-1].Usage == nil {
		t.Errorf("chat %+v, streamed %q, at last %q", heard.Chat, streamed, heard.Final)
	}
	if heard.Tuned == first.Content || heard.Chat.Choices[1].Message.Content == first.Content {
		t.Error("the adapter, or another seed, changes nothing")
	}
	for name, want := range map[string]struct {
		kind   string
		status int
		code   string
	}{
		"model": {"NotFoundError", 404, "model_not_found"}, "temperature": {"BadRequestError", 400, "invalid_value"},
		"long": {"BadRequestError", 400, "context_length_exceeded"}, "token": {"AuthenticationError", 401, "invalid_api_key"},
	} {
		if got := heard.Errors[name]; got.Kind != want.kind || got.Status != want.status || got.Code != want.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// validEach replaces every byte that is no character, as encoding/json does.
func validEach(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
