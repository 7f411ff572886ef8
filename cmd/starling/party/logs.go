package party

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/validator"
)

// LogsCommand prints the log that a process writes in its folder.
func LogsCommand(c *terminal.Console, use, short, example string,
	dir func(cmd *cobra.Command, args []string) (string, error),
	args cobra.PositionalArgs) *cobra.Command {
	var follow bool
	var tail int64
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: args,
		Long: short + `, or, with --follow, also what is added until Ctrl-C. It reads the file in the folder, whether the
process runs or not.

With -o json: {"lines":[TEXT]}; with -o jsonl, or --follow, {"line"} for each.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := dir(cmd, args)
			if err != nil {
				return err
			}
			if tail < 1 {
				return usage.Error(cmd, errors.New("--bytes is at least 1"))
			}
			lines := []string{}
			keep := func(more []string) error { lines = append(lines, more...); return nil }
			if follow {
				keep = c.PrintLines
			}
			err = validator.ReadLog(cmd.Context(), home, tail, follow, keep)
			if errors.Is(err, validator.ErrNoLog) {
				return terminal.WithExit(&terminal.Problem{Code: "LOG_NOT_FOUND", What: err.Error(),
					Fix: "give the folder of a worker, verifier or validator that was started"}, terminal.ExitNotFound)
			}
			if err != nil || follow {
				return err
			}
			return c.PrintLog(map[string][]string{"lines": lines}, lines)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "print what is added, until Ctrl-C")
	f.Int64Var(&tail, "bytes", 16<<10, "how much of the end of the log is printed")
	return cmd
}
