package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/manual"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/compute/kernel"
)

var rewrite = flag.Bool("rewrite", false, "rewrite docs/cli.md and the schema in examples/")

// reference is docs/cli.md: the help of every command that is not hidden.
func reference() string {
	var b strings.Builder
	b.WriteString("# The command line\n\nWritten from the commands: `go test ./cmd/starling -run Reference -rewrite`.\n\n")
	root := rootCommand(new(terminal.Console))
	fmt.Fprintf(&b, "## starling\n\n```\n%s```\n", manual.First(root))
	var write func(c *cobra.Command)
	write = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n```\n%s```\n", sub.CommandPath(), sub.Short, manual.Text(sub))
				write(sub)
			}
		}
	}
	write(root)
	return b.String()
}

// docs/cli.md is what the commands say of themselves.
func TestReferenceIsOfTheCommands(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	text := reference()
	defer func(cores int) { kernel.Cores = cores }(kernel.Cores)
	if kernel.Cores++; reference() != text {
		t.Error("the reference differs from machine to machine")
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if published, err := os.ReadFile(path); err != nil || string(published) != text {
		t.Errorf("docs/cli.md is not what the commands say: go test ./cmd/starling -run Reference -rewrite (%v)", err)
	}
}

// The first level fits a screen, every help begins with an example, and prose and flags keep to the width of a
// terminal.
func TestHelpFitsTheScreen(t *testing.T) {
	root := rootCommand(new(terminal.Console))
	first := manual.First(root)
	if n := strings.Count(first, "\n"); n > 24 {
		t.Errorf("the help of the first level has %d lines:\n%s", n, first)
	}
	for line := range strings.Lines(first) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > manual.Columns {
			t.Errorf("wider than a screen: %s", line)
		}
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && !strings.Contains(first, " "+c.Name()+" ") {
			t.Errorf("the first level does not show %s", c.Name())
		}
	}
	everyCommand(root, func(c *cobra.Command) {
		text := manual.Text(c)
		if !isTopic(c) && !strings.HasPrefix(strings.TrimSpace(text), strings.Fields(c.Example)[0]) {
			t.Errorf("the help of %s begins with no example:\n%s", c.CommandPath(), text)
		}
		_, flags, _ := strings.Cut(manual.Text(c), "\nFlags")
		for line := range strings.Lines(flags) {
			if len([]rune(line)) > manual.Columns+1 && strings.Count(strings.TrimSpace(line), " ") > 6 {
				t.Errorf("%s: a flag is wider than a screen: %s", c.CommandPath(), line)
			}
		}
	})
}

// The names of the release before do the same, and say once how the command is called now.
func TestOldNamesAdvise(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		old, now []string
		advice   string
	}{
		{[]string{"verify", dir}, []string{"job", "verify", dir}, "`starling verify` is `starling job verify` now"},
		{
			[]string{"net", "check", "--network", "x"}, []string{"network", "check", "--network", "x"},
			"`starling net check` is `starling network check` now",
		},
		{
			[]string{"gov", "list", "--network", "x"}, []string{"network", "gov", "list", "--network", "x"},
			"`starling gov list` is `starling network gov list` now",
		},
		{
			[]string{"export", dir}, []string{"job", "export-metrics", dir},
			"`starling export` is `starling job export-metrics` now",
		},
		{
			[]string{"validator", "status", dir}, []string{"validator", "status", "--home", dir},
			"`starling validator status HOME` is `starling validator status --home HOME` now",
		},
	} {
		oldCode, oldOut, oldSaid := starling(t, c.old...)
		code, out, said := starling(t, c.now...)
		advice, rest, _ := strings.Cut(oldSaid, "\n")
		if oldCode != code || oldOut != out || rest != said || !strings.HasPrefix(advice, c.advice) {
			t.Errorf("%v: exit %d, %d by the new name\n%s\n%s", c.old, oldCode, code, oldSaid, said)
		}
	}
}
