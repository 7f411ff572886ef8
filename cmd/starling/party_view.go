package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/provider"
)

func workerLogsCommand(c *terminal.Console) *cobra.Command {
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

func validatorLogsCommand(c *terminal.Console) *cobra.Command {
	return party.LogsCommand(c, "logs --home DIR", "Print the end of the log of a validator",
		`  starling validator logs --home net/validator-0
  starling validator logs --home net/validator-0 --follow`,
		func(_ *cobra.Command, args []string) (string, error) { return args[0], nil }, usage.Exactly())
}

func workerTasksCommand(c *terminal.Console) *cobra.Command {
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

// validatorProblem gives the errors of questions to the validator of a folder their codes.
func validatorProblem(home string, err error) error {
	stopped := (*client.Stopped)(nil)
	switch {
	case errors.Is(err, keystore.ErrNoValidator), errors.As(err, &stopped):
		return cause.Network(err)
	case errors.Is(err, inspect.ErrNoBond):
		return terminal.WithExit(&terminal.Problem{Code: "NOT_BONDED", What: err.Error(),
			Fix: "stake for it with starling validator bond --home " + home}, terminal.ExitNotFound)
	}
	return terminal.WithExit(&terminal.Problem{
		Code: "VALIDATOR_NOT_RUNNING", What: "the validator of " + home + " does not answer", Why: err.Error(),
		Fix: "start it with starling validator up --home " + home,
	}, terminal.ExitUnreachable)
}

func validatorDutiesCommand(c *terminal.Console) *cobra.Command {
	var blocks int
	cmd := &cobra.Command{
		Use:   "duties --home DIR",
		Short: "List which of the latest blocks a validator signed and proposed",
		Long: `List the latest blocks, and of each whether the validator of a folder voted for it and whether it proposed it.
starling validator status counts what it missed in the whole window that it is judged by.

With -o json: {"duties":[{"height","signed","proposed","power","block"}],"signed","missed","proposed"}.`,
		Example: `  starling validator duties --home net/validator-0
  starling validator duties --home net/validator-0 --blocks 100 -o jsonl`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if blocks < 1 || blocks > 1000 {
				return usage.Error(cmd, errors.New("--blocks is 1 to 1000"))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			duties, err := inspect.ValidatorParticipation(ctx, args[0], blocks)
			if err != nil {
				return validatorProblem(args[0], err)
			}
			signed, missed, proposed := 0, 0, 0
			for _, d := range duties {
				switch {
				case d.Signed:
					signed++
				case d.Power > 0:
					missed++
				}
				if d.Proposed {
					proposed++
				}
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.List(map[string]any{"duties": duties, "signed": signed, "missed": missed,
					"proposed": proposed}, duties, func(d inspect.BlockParticipation) string {
					return strconv.FormatInt(d.Height,
						10)
				}))
			}
			w := terminal.NewColumns(os.Stdout, c.Form, "HEIGHT", "SIGNED", "PROPOSED", "POWER", "+BLOCK")
			for _, d := range duties {
				w.Row(d.Height, d.Signed, d.Proposed, d.Power, d.Block)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			_, err = fmt.Printf("%d signed, %d missed, %d proposed\n", signed, missed, proposed)
			return err
		},
	}
	cmd.Flags().IntVar(&blocks, "blocks", 20, "how many of the latest blocks")
	return cmd
}

func validatorEarningsCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "earnings --home DIR",
		Short: "Show what a validator has earned of the fees of transactions",
		Long: `Show what the validator of a folder has earned of the fees of transactions and not withdrawn, and the coins of
its operator. Work is paid to workers and verifiers, and its fee goes to the community pool: a network whose
transactions cost nothing pays its validators nothing.

With -o json: {"account","operator","balance_uzen","rewards_uzen","commission_uzen"}.`,
		Example: `  starling validator earnings --home net/validator-0
  starling validator earnings --home net/validator-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), target.AskPatience)
			defer cancel()
			e, err := inspect.AskValidatorEarnings(ctx, args[0])
			if err != nil {
				return validatorProblem(args[0], err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(e, e.Account))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "operator\t%s\naccount\t%s, %s ZEN\n", e.Operator, e.Account, terminal.Zen(e.Balance))
			fmt.Fprintf(w, "rewards\t%s ZEN, not withdrawn\ncommission\t%s ZEN of them\n", terminal.Zen(e.Rewards),
				terminal.Zen(e.Commission))
			return w.Flush()
		},
	}
}
