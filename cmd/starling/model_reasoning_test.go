package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-network/starling/web/openai/strategy"
)

// TestModelServeVotes asks a server for votes, searches and tools over HTTP.
func TestModelServeVotes(t *testing.T) {
	tool := filepath.Join("..", "..", "examples", "tools", "add.star")
	c := command(t, "model", "serve", llamaFolder(t), "--name", "m", "--tool", "add="+tool, "--listen", "127.0.0.1:0",
		"--no-log", "-o", "json")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
	var served struct {
		Base string `json:"base_url"`
	}
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&served); err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Choices []struct {
			Text     string
			Starling *strategy.Trace
		}
		Usage struct {
			Tokens int `json:"completion_tokens"`
		}
		Error *struct{ Message string }
	}
	ask := func(strategy string) (a answer) {
		t.Helper()
		r, err := http.Post(served.Base+"/completions", "application/json", strings.NewReader(`{"model": "m",
			"prompt": "a", "max_tokens": 6, "seed": 5, "starling": `+strategy+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(raw, &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, strategy := range []string{`{"answers": 5, "vote": "text"}`,
		`{"search": {"beams": 2, "branches": 2, "steps": 2}}`, `{"tools": ["add"]}`} {
		first, again := ask(strategy), ask(strategy)
		if first.Error != nil || len(first.Choices) != 1 || first.Choices[0].Starling == nil {
			t.Fatalf("%s: %+v", strategy, first)
		}
		if !reflect.DeepEqual(first, again) {
			t.Errorf("%s: %+v, then %+v", strategy, first, again)
		}
		if n := first.Choices[0].Starling.Texts; strings.Contains(strategy, "answers") && n != 5 {
			t.Errorf("%d texts, %+v", n, first)
		}
	}
	if e := ask(`{"tools": ["sub"]}`).Error; e == nil || !strings.Contains(e.Message, "add") {
		t.Errorf("a tool that is not there: %+v", e)
	}
	code, _, errs := starling(t, "model", "serve", llamaFolder(t), "--tool", "add=nothing.star")
	if code == 0 || !strings.Contains(errs, "TOOL_INVALID") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
