package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/web/openai"
)

// together is an engine that emits no text before all requests have begun.
type together struct {
	*Engine
	begun *sync.WaitGroup
}

// Generate implements openai.Model.
func (g together) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	first := sync.OnceFunc(func() { g.begun.Done(); g.begun.Wait() })
	return g.Engine.Generate(ctx, r, func(p openai.Piece) error { first(); return emit(p) })
}

// completed asks a server for a text, at once or piece by piece.
func completed(t *testing.T, server string, model string, i int, stream bool) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "prompt": fmt.Sprint("prompt ", i), "max_tokens": 12 + i,
		"temperature": 0.9, "seed": i, "stream": stream})
	if err != nil {
		t.Error(err)
	}
	r, err := http.Post(server+"/v1/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Body.Close()
	var all bytes.Buffer
	if _, err := all.ReadFrom(r.Body); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("%d, %v: %s", r.StatusCode, err, all.String())
	}
	var answer struct {
		Model   string
		Choices []struct{ Text string }
	}
	text := ""
	for line := range strings.Lines(all.String()) {
		if stream {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			line = data
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.Model != model {
			t.Errorf("%s: %v", line, err)
		}
		for _, c := range answer.Choices {
			text += c.Text
		}
	}
	return text
}

// Over HTTP, a model and two adapters of it write at the same time what each writes that is served by itself.
func TestAdaptersOverHTTP(t *testing.T) {
	const texts = 9
	dir, first := folders(t)
	adapters := []Adapter{{Name: "first", Dir: first}, {Name: "second", Dir: adapterOf(t, config(t), 9)}}
	serve := func(o Options, begun *sync.WaitGroup) string {
		o.Name = "base"
		e, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		m := openai.Model(e)
		if begun != nil {
			m = together{e, begun}
		}
		s := httptest.NewServer(openai.New(m, openai.Config{}))
		t.Cleanup(s.Close)
		return s.URL
	}
	models := []string{"base", "first", "second"}
	alone := []string{serve(Options{}, nil), serve(Options{Adapters: adapters[:1]}, nil),
		serve(Options{Adapters: adapters[1:]}, nil)}
	var begun, asked sync.WaitGroup
	begun.Add(texts)
	all := serve(Options{Adapters: adapters, Texts: texts}, &begun)
	heard := make([]string, texts)
	for i := range heard {
		asked.Go(func() { heard[i] = completed(t, all, models[i%3], i/3, i%2 == 1) })
	}
	asked.Wait()
	for i, text := range heard {
		if want := completed(t, alone[i%3], models[i%3], i/3, false); text != want || text == "" {
			t.Errorf("%s, prompt %d: %q beside the others, %q alone", models[i%3], i/3, text, want)
		}
		if slices.Contains(heard[:i], text) {
			t.Errorf("%s, prompt %d: it says %q as another", models[i%3], i/3, text)
		}
	}
}
