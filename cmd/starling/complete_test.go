package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// completed returns the words that complete a line, without the directive that ends them.
func completed(t *testing.T, line ...string) []string {
	t.Helper()
	var b bytes.Buffer
	root := rootCommand(new(terminal.Console))
	root.SetOut(&b)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(append([]string{"__complete"}, line...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(b.String())
	return words[:len(words)-1]
}

func TestComplete(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		line []string
		want []string
		only bool
	}{
		{[]string{"network", "status", "-o", ""}, []string{"table", "wide", "json", "jsonl", "yaml", "name"}, true},
		{[]string{"network", "status", "-o", "js"}, []string{"json", "jsonl"}, true},
		{[]string{"job", "init", ""}, templateNames(), true},
		{[]string{"job", "init", "pretrain", ""}, nil, true},
		{[]string{"job", "export-metrics", "out", "--format", "t"}, []string{"trainer-state", "tensorboard"}, true},
		{[]string{"train", ""}, []string{"yaml", "yml"}, true},
		{[]string{"train", "job.yaml", "--set", "strategy.method="},
			[]string{"strategy.method=diloco", "strategy.method=allreduce"}, false},
		{[]string{"train", "job.yaml", "--set", "strat"}, []string{"strategy."}, true},
		{[]string{"train", "job.yaml", "--set", "training.max"}, []string{"training.max_steps="}, false},
		{[]string{"train", "job.yaml", "--set", "nothing.at.all="}, nil, true},
		{[]string{"sim", "job.yaml", "--act", "worker-1="}, []string{"worker-1=skips"}, false},
		{[]string{"worker", "up", "--role", ""}, []string{"worker", "verifier", "generator", "worker,verifier",
			"worker,host", "verifier,judge", "verifier,judge,host", "verifier,host", "generator,host", "worker,verifier,judge",
			"worker,verifier,judge,host", "worker,verifier,host"}, true},
		{[]string{"bench", "train", "--preset", "gpt2-10"}, []string{"gpt2-10m"}, true},
		{[]string{"job", "pause", ""}, nil, true},
		{[]string{"validator", "import", "--home", "net/validator-0", ""}, []string{"json"}, true},
		{[]string{"validator", "import", "--home", "net/validator-0", ""}, []string{"json"}, true},
	} {
		got := completed(t, c.line...)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %q lacks %s", c.line, got, w)
			}
		}
		if c.only && len(got) != len(c.want) {
			t.Errorf("%q: %q, wanted %q", c.line, got, c.want)
		}
	}
}
