// Package manual writes the help of commands: examples first, in the width of a terminal. It parses nothing.
package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Columns is the width of every help text.
const Columns = 80

// firstLevel are the commands of the first level by purpose, in the order of the help, which fits a screen of 24
// lines.
var firstLevel = []struct {
	purpose  string
	commands []string
}{
	{"Train", []string{"train", "sim", "job", "data", "model", "web", "gateway"}},
	{"Provide", []string{"worker", "verifier", "fleet", "market", "account", "payout"}},
	{"Operate", []string{"validator", "network", "supervise", "dev"}},
	{"Examine", []string{"bench", "doctor", "version"}},
}

// Install makes a command and all below it show their help as Text writes it.
func Install(root *cobra.Command) {
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]...", Hidden: true, Short: "Show the help of a command",
		Long:    "Show what --help of a command shows.",
		Example: "  starling help job verify",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = cmd.ValidateArgs(rest)
			}
			if err != nil {
				return err
			}
			return cmd.Help()
		},
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := Text(cmd)
		if cmd == root {
			text = First(root)
		}
		fmt.Fprint(cmd.OutOrStdout(), text)
	})
}

// First is the help of the program itself.
func First(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", root.Example)
	for _, level := range firstLevel {
		purpose := level.purpose
		for _, name := range level.commands {
			if c, _, err := root.Find([]string{name}); err == nil {
				fmt.Fprintf(&b, "%-9s %-10s %s\n", purpose, name, c.Short)
				purpose = ""
			}
		}
	}
	b.WriteString("`starling COMMAND --help` says more; all take -o FORM, -q, --passphrase-file.\n")
	return b.String()
}

// Text is the help of a command: examples first, then what it does, its commands and its flags.
func Text(cmd *cobra.Command) string {
	var b strings.Builder
	examples := strings.TrimRight(cmd.Example, "\n")
	fmt.Fprintf(&b, "%s\n\n%s\n\nUsage: %s\n", examples, filled(cmd.Long), cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				b.WriteString(listed(fmt.Sprintf("  %-*s ", cmd.NamePadding(), c.Name()), c.Short))
			}
		}
	}
	for _, part := range []struct {
		title string
		flags *pflag.FlagSet
	}{{"Flags", cmd.LocalFlags()}, {"Flags of every command", cmd.InheritedFlags()}} {
		shown := pflag.NewFlagSet("", pflag.ContinueOnError)
		part.flags.VisitAll(func(f *pflag.Flag) {
			switch f.Name {
			case "help":
				return
			case "threads", "loop-threads", "cpus": // the default differs from machine to machine
				all := *f
				all.Usage, all.DefValue = f.Usage+" (default: all cores)", "0"
				f = &all
			}
			shown.AddFlag(f)
		})
		if shown.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s:\n%s", part.title, shown.FlagUsagesWrapped(Columns))
		}
	}
	return b.String()
}

// listed is a name and its meaning, wrapped in a column after the name.
func listed(name, means string) string {
	indented := strings.ReplaceAll(wrapped(means, Columns-len(name)), "\n", "\n"+strings.Repeat(" ", len(name)))
	return name + indented + "\n"
}

// filled wraps the paragraphs of a text. Lines that are indented stay as they are.
func filled(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = wrapped(p, Columns)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// wrapped breaks a text between words into lines of at most columns, where words are no longer.
func wrapped(text string, columns int) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(text) {
		switch n := len([]rune(word)); {
		case used == 0:
			used = n
		case used+1+n > columns:
			b.WriteByte('\n')
			used = n
		default:
			b.WriteByte(' ')
			used += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}
