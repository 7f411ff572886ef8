package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/web/openai"
)

const contextTokens = 48

func config(t testing.TB) architecture.Config {
	c, err := architecture.Parse(architecture.Llama,
		map[string]any{"vocab_size": 256, "max_position_embeddings": contextTokens, "hidden_size": 16,
			"intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeFiles(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(t testing.TB, list []architecture.Named, tensors map[string]*tensor.Tensor) []byte {
	t.Helper()
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, names, tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folders writes a tiny model with random weights, which the folders name, and an adapter that changes what it says.
func folders(t testing.TB) (dir, adapter string) {
	t.Helper()
	c := config(t)
	dir = t.TempDir()
	writeFiles(t, dir, map[string][]byte{"config.json": c.JSON(), "tokenizer.json": tokenizer.Bytes().JSON(),
		"model.safetensors": encode(t, c.Tensors(), c.Init(3))})
	return dir, adapterOf(t, c, 5)
}

// adapterOf writes an adapter with random weights.
func adapterOf(t testing.TB, c architecture.Config, seed uint64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	a, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	tensors := a.InitAdapters(1)
	for i, n := range a.Adapters() {
		philox.NormalTo(tensors[n.Name].F32(), seed, uint64(i))
	}
	json, err := a.AdapterJSON()
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, dir, map[string][]byte{"adapter_config.json": json,
		"adapter_model.safetensors": encode(t, a.Adapters(), tensors)})
	return dir
}

func open(t testing.TB, o Options) *Engine {
	t.Helper()
	dir, adapter := folders(t)
	o.Name, o.Adapters = "base", []Adapter{{Name: "tuned", Dir: adapter}}
	e, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func generated(t testing.TB, e *Engine, r openai.Request) (string, openai.Result) {
	t.Helper()
	var b strings.Builder
	out, err := e.Generate(t.Context(), r, func(p openai.Piece) error { b.WriteString(p.Text); return nil })
	if err != nil {
		t.Error(err)
	}
	return b.String(), out
}

// TestManyAtOnce asks for many texts at the same time and then for each alone.
func TestManyAtOnce(t *testing.T) {
	e := open(t, Options{Texts: 4})
	var requests []openai.Request
	for i := range 10 {
		requests = append(requests, openai.Request{Model: []string{"base", "tuned"}[i%2], Prompt: fmt.Sprint("prompt ", i),
			Max: 5 + i, Temperature: 0.9, TopP: 0.95, Seed: uint64(i), Likely: -1})
	}
	texts := make([]string, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() { texts[i], _ = generated(t, e, r) })
	}
	wg.Wait()
	for i, r := range requests {
		alone, out := generated(t, e, r)
		if alone != texts[i] || out.Tokens != r.Max || out.Finish != "length" || out.PromptTokens != len(r.Prompt) {
			t.Errorf("%d: %q alone, %q beside others, %+v", i, alone, texts[i], out)
		}
	}
	requests[0].Model = "tuned"
	if text, _ := generated(t, e, requests[0]); text == texts[0] {
		t.Error("the adapter changes nothing")
	}
}

func TestGenerateEnds(t *testing.T) {
	e := open(t, Options{})
	r := openai.Request{Model: "base", Prompt: "abc", Likely: 2}
	var pieces []openai.Piece
	out, err := e.Generate(t.Context(), r, func(p openai.Piece) error { pieces = append(pieces, p); return nil })
	if err != nil || out.Finish != "length" || out.Tokens != contextTokens-3+1 {
		t.Errorf("to the end of the context: %+v, %v", out, err)
	}
	if first := pieces[0].Tokens[0]; len(first.Likely) != 2 || first.Log != first.Likely[0].Log || first.Log > 0 {
		t.Errorf("greedily the first token is %+v", first)
	}
	whole, _ := generated(t, e, r)
	r.Stops = []string{whole[4:6]}
	if text, out := generated(t, e, r); text != whole[:strings.Index(whole, whole[4:6])] || out.Finish != "stop" {
		t.Errorf("until %q: %q of %q, %+v", r.Stops, text, whole, out)
	}
	r.Stops, r.Tokens, r.Prompt = nil, []int32{'a', 'b', 'c'}, ""
	if text, _ := generated(t, e, r); text != whole {
		t.Errorf("tokens give %q, text %q", text, whole)
	}
}

func TestGenerateRefusals(t *testing.T) {
	e := open(t, Options{Memory: 1})
	emit := func(openai.Piece) error { t.Error("text was made"); return nil }
	for want, r := range map[error]openai.Request{
		openai.ErrModel:   {Model: "other", Prompt: "a"},
		openai.ErrTooLong: {Model: "base", Prompt: strings.Repeat("a", contextTokens+1)},
		openai.ErrRequest: {Model: "base", Prompt: "a", Max: 4}, // no memory for it
	} {
		if _, err := e.Generate(t.Context(), r, emit); !errors.Is(err, want) {
			t.Errorf("%v: %v", want, err)
		}
	}
}

// TestQueueIsBounded fills the line while the engine cannot write.
func TestQueueIsBounded(t *testing.T) {
	e := open(t, Options{Waiting: 2})
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, want := range []error{nil, nil, openai.ErrBusy} {
		g, err := e.request(openai.Request{Model: "base", Prompt: "a", Max: 3})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.enqueue(g, make(chan generate.Token, g.Tokens)); !errors.Is(err, want) {
			t.Errorf("text %d: %v", i, err)
		}
	}
}

func TestCancelAndClose(t *testing.T) {
	e := open(t, Options{Texts: 1})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := e.Generate(ctx, openai.Request{Model: "base", Prompt: "a"},
		func(openai.Piece) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	gone := errors.New("gone")
	if _, err := e.Generate(t.Context(), openai.Request{Model: "base", Prompt: "a"},
		func(openai.Piece) error { return gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
	e.mu.Lock()
	if waiting, running := e.scheduler.Load(); waiting+running+len(e.readers) != 0 {
		t.Errorf("%d texts wait and %d are written, for %d readers", waiting, running, len(e.readers))
	}
	e.mu.Unlock()
	e.Close()
	if _, err := e.Generate(t.Context(), openai.Request{Model: "base", Prompt: "a"}, nil); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func TestPrompt(t *testing.T) {
	e := open(t, Options{})
	prompt, stops, err := e.Prompt("tuned",
		[]openai.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: " Hi "},
			{Role: "assistant", Content: "Hello."}, {Role: "user", Content: "Bye"}})
	if want := "Be brief.\n\nUser: Hi\n\nAssistant: Hello.\n\nUser: Bye\n\nAssistant:"; err != nil || prompt != want ||
		len(stops) != 1 {
		t.Errorf("%q, %q, %v", prompt, stops, err)
	}
}

// TestChatTemplates reads those that are written into the folder of a model.
func TestChatTemplates(t *testing.T) {
	conversation := []openai.Message{{Role: "user", Content: "Hi"}}
	for config, want := range map[string]string{
		`{}`:                      "User: Hi\n\nAssistant:",
		`{"chat_template": null}`: "User: Hi\n\nAssistant:",
		`{"chat_template": "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}` +
			`{% endfor %}", "bos_token": "B", "eos_token": {"content": "E"}}`: "B<user>HiE",
		`{"chat_template": "{% macro f() %}"}`:                      "",
		`{"chat_template": [{"name": "default", "template": "x"}]}`: "",
		`{"chat_template": "{{ raise_exception('no') }}"}`:          "",
	} {
		dir, _ := folders(t)
		writeFiles(t, dir, map[string][]byte{"tokenizer_config.json": []byte(config)})
		e, err := Open(dir, Options{Name: "m"})
		if err != nil {
			t.Fatal(err)
		}
		prompt, _, err := e.Prompt("m", conversation)
		if kept, err := ChatFiles(dir); err != nil || (len(kept) == 2) != strings.Contains(config, `"chat_template": "`) {
			t.Errorf("%s: kept in %q, %v", config, kept, err)
		} else if len(kept) > 0 && want != "" {
			other, _ := folders(t)
			writeFiles(t, other, kept)
			c, err := readChat(other)
			if err != nil {
				t.Fatal(err)
			}
			if again, _, err := c.render(conversation); err != nil || again != want {
				t.Errorf("%s: a model made of it has %q, %v", config, again, err)
			}
		}
		if prompt != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, openai.ErrRequest) {
			t.Errorf("%s: %q, %v; want %q", config, prompt, err, want)
		}
		e.Close()
	}
}

func TestOpenRefusals(t *testing.T) {
	dir, adapter := folders(t)
	for name, o := range map[string]Options{
		"same name":  {Name: "a", Adapters: []Adapter{{Name: "a", Dir: adapter}}},
		"no name":    {Adapters: []Adapter{{Name: "", Dir: adapter}}},
		"no folder":  {Adapters: []Adapter{{Name: "a", Dir: filepath.Join(adapter, "none")}}},
		"no adapter": {Adapters: []Adapter{{Name: "a", Dir: dir}}},
	} {
		if _, err := Open(dir, o); !errors.Is(err, ErrFolder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(adapter, Options{}); !errors.Is(err, ErrFolder) {
		t.Error(err)
	}
}
