package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
)

func statusCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "status --home DIR",
		Short: "Show the validator of a folder, and how it keeps up with its duty",
		Long: `Ask the validator that runs over a folder where it stands, and the chain how it votes.

With -o json: {"home","network","chain_id","node_id","address","height","block_time","catching_up","power",
"of_power","signed","missed_blocks","window_blocks","jailed_until","tombstoned","peers","of_peers"}.`,
		Example: `  starling validator status --home net/validator-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), target.AskTimeout)
			defer cancel()
			s, err := inspect.AskValidator(ctx, args[0])
			stopped := (*endpoint.Halted)(nil)
			switch {
			case errors.Is(err, keystore.ErrNoValidator), errors.As(err, &stopped):
				return cause.Network(err)
			case err != nil:
				return terminal.WithExit(&terminal.Problem{
					Code: "VALIDATOR_NOT_RUNNING", What: "the validator of " + args[0] + " does not answer", Why: err.Error(),
					Fix: "start it with starling validator up --home " + args[0] + "; validator.log there says why it ended",
				}, terminal.ExitUnreachable)
			case c.Form.Machine():
				return c.Form.Print(os.Stdout, terminal.One(s, s.Home))
			}
			return printValidator(s)
		},
	}
}

func printValidator(s *inspect.ValidatorStatus) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	duty := "it signed the latest block"
	switch {
	case s.Tombstoned:
		duty = "it signed two votes for one step and never votes again"
	case s.Power == 0:
		duty = "it does not vote"
	case s.CatchingUp:
		duty = "it is catching up with the others"
	case !s.Signed:
		duty = "its vote is not in the latest block"
	}
	fmt.Fprintf(w, "validator\t%s of %s: %s\n", s.Address, s.ChainID, duty)
	fmt.Fprintf(w, "height\t%d, block of %s\n", s.Height, s.Time.Local().Format(time.DateTime))
	fmt.Fprintf(w, "power\t%d of %d\n", s.Power, s.OfPower)
	fmt.Fprintf(w, "missed\t%d of the latest %d blocks\n", s.Missed, s.Window)
	if !s.JailedUntil.IsZero() {
		fmt.Fprintf(w, "jailed\tuntil %s\n", s.JailedUntil.Local().Format(time.DateTime))
	}
	fmt.Fprintf(w, "peers\t%d of %d\n", s.Peers, s.OfPeers)
	fmt.Fprintf(w, "interface\t%s\n", s.Network)
	return w.Flush()
}
