package manual

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

var errNoHome = terminal.WithExit(&terminal.Problem{
	Code: "USAGE", What: "--home is needed", Fix: "give the folder of the validator",
}, terminal.ExitUsage)

// Moved makes a command and all below it say that their names begin otherwise now.
func Moved(cmd *cobra.Command, old, now string, quiet *bool) {
	for _, below := range cmd.Commands() {
		Moved(below, old, now, quiet)
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := cmd.CommandPath()
		advise(*quiet, path, now+strings.TrimPrefix(path, old))
		return run(cmd, args)
	}
}

// advise says how a command is called that was called in the way of the release before.
func advise(quiet bool, old, now string) {
	if !quiet {
		fmt.Fprintf(os.Stderr, "`%s` is `%s` now; the old form goes with the next release\n", old, now)
	}
}

// HomeByFlag lets --home give the folder that the function of a command finds as its first argument. In the release
// before it was an argument, which is taken still.
func HomeByFlag(cmd *cobra.Command, quiet *bool) {
	home := cmd.Flags().String("home", "", "folder of the validator")
	check, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *home == "" {
			if len(args) == 0 {
				return errNoHome
			}
			args = args[1:]
		}
		return check(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *home != "" {
			return run(cmd, append([]string{*home}, args...))
		}
		advise(*quiet, cmd.CommandPath()+" HOME", cmd.CommandPath()+" --home HOME")
		return run(cmd, args)
	}
}
