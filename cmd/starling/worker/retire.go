package worker

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/retire"
)

func retireCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	o := retire.Options{}
	cmd := &cobra.Command{
		Use:   "retire --home DIR [--to ADDRESS]",
		Short: "Leave a network: drain, unstake, and send the coins away",
		Long: `Leave a network in good order. The process that runs over the folder drains, as starling worker drain lets
it; if none runs, the offer is withdrawn and the runs of the account are left, so that what it has not committed goes
to others at once. Then all of its stake is asked back, which ends a tier that it committed to; it is paid out 20,000
blocks later, unless governance changed that, and not while the account has a part in a run. At last everything that
the account has goes to --to, but for what the fee of that may take; without --to the coins stay in the account of the
folder.

The command waits for all of this, and keeps other processes out of the folder meanwhile. Ctrl-C ends the wait alone:
the stake leaves by itself, and the same command, given again, continues where it was. If no block comes for --timeout,
the command ends in the same way (TIMED_OUT). Shares of models stay with the
account: starling model claim takes what they earned, before, and starling model transfer gives them away.

With -o json: {"account","drained","left":[JOB],"unstaked_uzen","to","sent_uzen","hash","balance_uzen"}.`,
		Example: `  starling worker retire --home net/worker-0 --to starling1qx...
  starling worker retire --home net/worker-0 --to starling1qx... --memo "invoice 17" -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.Home == "" {
				return usage.Error(cmd, errors.New("--home is needed"))
			}
			if o.To != "" {
				if err := target.WantAddress(o.To); err != nil {
					return err
				}
			}
			if err := t.Settle(cmd); err != nil {
				return err
			}
			if o.To == t.Account {
				return usage.Error(cmd, errors.New("--to is the account itself: leave --to out, and the coins stay there"))
			}
			o.Home, o.RPC, o.Say, o.Wait = t.Home, t.Network, c.Say, c.Counter("blocks until the stake leaves")
			done, err := retire.Run(cmd.Context(), o)
			if err != nil {
				return terminal.IfInterrupted(cmd.Context(), err, "the same command")
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(done, done.Account))
			}
			return printRetired(done)
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&o.To, "to", "", "account that is sent the coins")
	cmd.Flags().DurationVar(&o.GiveUp, "timeout", drainTimeout, "end when no block has come for so long; 0 waits")
	cmd.Flags().StringVar(&o.Memo, "memo", "", "note of that transfer, which everybody can read")
	return cmd
}

func printRetired(d *retire.Retired) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "account\t%s\n", d.Account)
	for _, job := range d.Left {
		fmt.Fprintf(w, "left\t%s\n", job)
	}
	fmt.Fprintf(w, "unstaked\t%s ZEN\n", terminal.Zen(d.Unstaked))
	if d.Sent > 0 {
		fmt.Fprintf(w, "sent\t%s ZEN\nto\t%s\ntransaction\t%s\n", terminal.Zen(d.Sent), d.To, d.Hash)
	}
	fmt.Fprintf(w, "coins left\t%s ZEN\n", terminal.Zen(d.Balance))
	return w.Flush()
}
