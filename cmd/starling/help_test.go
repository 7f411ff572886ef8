package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// called finds calls of the program in text, each in a line of its own as a shell has it, without what it is piped to.
func called(text string) (calls [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	program := regexp.MustCompile(`^(?:\$ |[A-Z_]+=\S+ )*(?:starling|\./starling|go run \./cmd/starling) (.*)$`)
	quoted := regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)
	end := regexp.MustCompile(`\s[|<>&#]|\s2>|;|\s\.\.\.`)
	for line := range strings.Lines(text) {
		m := program.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		rest := regexp.MustCompile(`\$\([^)]*\)`).ReplaceAllString(m[1], "X")
		if at := end.FindStringIndex(rest); at != nil {
			rest = rest[:at[0]]
		}
		var words []string
		last := -1
		for _, at := range quoted.FindAllStringIndex(rest, -1) {
			word := strings.Trim(rest[at[0]:at[1]], `"'`)
			if at[0] == last { // KEY='VALUE'
				words[len(words)-1] += word
			} else {
				words = append(words, word)
			}
			last = at[1]
		}
		calls = append(calls, words)
	}
	return calls
}

// takes reports what a command line is refused for, before anything is done.
func takes(words []string) error {
	c, rest, err := rootCommand(new(terminal.Console)).Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && isTopic(c) {
		return nil
	}
	for at := c; err == nil && at != nil; at = at.Parent() {
		if at.Hidden {
			err = errors.New("it is a name of the release before")
		}
	}
	if f := c.Flags().Lookup("home"); err == nil && c.HasParent() && c.Parent().Name() == "validator" && !f.Changed {
		err = errors.New("the home is an argument")
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err == nil && c.HasSubCommands() && c.Flags().NArg() == 0 && len(rest) > 0 && !c.Flags().Changed("help") {
		err = errors.New("it names no command of the group")
	}
	return err
}

// The calls in the help and the documents name commands that exist, with flags and arguments that these take.
func TestExamplesAreCalls(t *testing.T) {
	seen, taken := 0, map[string]bool{} // of the same call in many places, one is parsed: each makes all commands
	check := func(where, text string) {
		for _, words := range called(text) {
			call := strings.Join(words, "\x00")
			if seen++; words[0] == "help" || words[0] == "completion" || taken[call] {
				continue
			}
			taken[call] = true
			if err := takes(words); err != nil {
				t.Errorf("%s: starling %s: %v", where, strings.Join(words, " "), err)
			}
		}
	}
	everyCommand(rootCommand(new(terminal.Console)), func(c *cobra.Command) {
		if c.Hidden || c.HasParent() && c.Parent().Hidden {
			return // its examples are of its new name
		}
		check(c.CommandPath(), c.Example)
	})
	root := filepath.Join("..", "..")
	documents := func(path string, d fs.DirEntry, err error) error {
		// that one holds the examples seen already
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" && filepath.Base(path) != "cli.md" {
			text, err := os.ReadFile(path)
			check(path, string(text))
			return err
		}
		return err
	}
	if err := errors.Join(filepath.WalkDir(filepath.Join(root, "docs"), documents),
		filepath.WalkDir(filepath.Join(root, "sdk"), documents),
		filepath.WalkDir(filepath.Join(root, "examples"), documents)); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	check("README.md", string(readme))
	if seen < 300 {
		t.Errorf("%d calls were found", seen)
	}
	for _, wrong := range []string{"starling job lits", "starling train", "starling market price --netwrok x",
		"starling worker earn --home x", "starling verify out/x", "starling validator status net/validator-0"} {
		if err := takes(called(wrong)[0]); err == nil {
			t.Errorf("%s: it is taken", wrong)
		}
	}
}
