package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/party"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
)

func logsCommand(c *terminal.Console) *cobra.Command {
	return party.LogsCommand(c, "logs --home DIR", "Print the end of the log of a validator",
		`  starling validator logs --home net/validator-0
  starling validator logs --home net/validator-0 --follow`,
		func(_ *cobra.Command, args []string) (string, error) { return args[0], nil }, usage.Exactly())
}

// validatorProblem gives the errors of questions to the validator of a folder their codes.
func validatorProblem(home string, err error) error {
	stopped := (*endpoint.Halted)(nil)
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

func dutiesCommand(c *terminal.Console) *cobra.Command {
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

func earningsCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "earnings --home DIR",
		Short: "Show the stake of a validator, and its share of transaction fees",
		Long: `Show what the validator of a folder has earned of the fees of transactions and not withdrawn, its stake, what
leaves it (starling validator unbond) and when that comes back, and the coins of its operator. Work is paid to workers
and verifiers, and its fee goes to the community pool: a network whose transactions cost nothing pays its validators
nothing.

With -o json: {"account","operator","balance_uzen","rewards_uzen","commission_uzen","stake_uzen",
"leaving":[{"amount_uzen","at"}]}.`,
		Example: `  starling validator earnings --home net/validator-0
  starling validator earnings --home net/validator-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), target.AskTimeout)
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
			fmt.Fprintf(w, "stake\t%s ZEN\n", terminal.Zen(e.Stake))
			for _, l := range e.Leaving {
				fmt.Fprintf(w, "leaves\t%s ZEN, back at %s\n", terminal.Zen(l.Amount),
					l.At.Local().Format(time.DateTime))
			}
			fmt.Fprintf(w, "rewards\t%s ZEN, not withdrawn\ncommission\t%s ZEN of them\n", terminal.Zen(e.Rewards),
				terminal.Zen(e.Commission))
			return w.Flush()
		},
	}
}
