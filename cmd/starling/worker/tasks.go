package worker

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/provider"
)

func logsCommand(c *terminal.Console) *cobra.Command {
	var home string
	cmd := party.LogsCommand(c, "logs --home DIR", "Print the end of the log of a worker or verifier",
		`  starling worker logs --home net/worker-0
  starling worker logs --home net/worker-0 --follow`,
		func(cmd *cobra.Command, _ []string) (string, error) {
			if home == "" {
				return "", usage.Error(cmd, errors.New("--home is needed"))
			}
			return home, nil
		}, usage.Exactly())
	cmd.Flags().StringVar(&home, "home", "", "folder of the worker or verifier")
	return cmd
}

func tasksCommand(c *terminal.Console) *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:   "tasks --home DIR",
		Short: "List what a worker or verifier is computing",
		Long: `Ask the process that runs over a folder which runs it takes part in, and what it is computing or sending for
each. starling worker explain says what it waits for.

With -o json: {"tasks":[{"job","action","since"}],"runs":[JOB]}.`,
		Example: `  starling worker tasks --home net/worker-0
  starling worker tasks --home net/worker-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if home == "" {
				return usage.Error(cmd, errors.New("--home is needed"))
			}
			p := &provider.WorkerStatus{}
			err := control.Status(cmd.Context(), home, p)
			if errors.Is(err, control.ErrNotRunning) {
				return terminal.WithExit(&terminal.Problem{Code: "NOT_RUNNING", What: "no process runs over " + home,
					Why: err.Error(), Fix: "start it with starling worker up"}, terminal.ExitUnreachable)
			}
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(map[string]any{"tasks": p.Actions, "runs": p.Runs}, p.Actions,
					func(a instrument.ActionStatus) string { return a.Job }))
			}
			w := terminal.NewColumns(os.Stdout, c.Form, "JOB", "ACTION", "FOR", "+SINCE")
			for _, a := range p.Actions {
				w.Row(a.Job, a.Action, terminal.Span(time.Since(a.Since)), terminal.When(a.Since))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			_, err = fmt.Printf("%d tasks in %d runs\n", len(p.Actions), len(p.Runs))
			return err
		},
	}
	cmd.Flags().StringVar(&home, "home", "", "folder of the worker or verifier")
	return cmd
}
