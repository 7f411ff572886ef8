// Package usage is how commands are called: their groups, their arguments, the flags that commands of several groups
// have, and the error of a wrong call. It runs no command.
package usage

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// Error is the error of a call that a command does not take.
func Error(cmd *cobra.Command, err error) error {
	return terminal.WithExit(&terminal.Problem{
		Code: "USAGE", What: err.Error(), Fix: fmt.Sprintf("see `%s --help`", cmd.CommandPath()),
	}, terminal.ExitUsage)
}

// DidYouMean ends the error about a command that is not there, with those of similar names.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}

// Exactly is cobra.ExactArgs with our errors.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == len(names):
			return nil
		case len(names) == 0 && cmd.HasAvailableSubCommands():
			cmd.SuggestionsMinimumDistance = cmd.Root().SuggestionsMinimumDistance
			return Error(cmd, fmt.Errorf("there is no command %q of %s%s", args[0], cmd.CommandPath(),
				DidYouMean(cmd.SuggestionsFor(args[0]))))
		case len(names) == 0:
			return Error(cmd, fmt.Errorf("%q is given, and %s takes no argument", args[0], cmd.CommandPath()))
		}
		given := terminal.Counted(len(args), "argument")
		return Error(cmd, fmt.Errorf("%s given, wanted %s", given, strings.Join(names, " ")))
	}
}
