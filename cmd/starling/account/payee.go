package account

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/session"
)

func payeeCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var worker string
	cmd := &cobra.Command{
		Use:   "payee ADDRESS|self --home DIR",
		Short: "Name the account that is paid in place of a worker",
		Long: `Name the account that gets the pay of a worker or verifier, its bounties, and its stake when it is withdrawn,
as starling worker up --pay-to does. With self the worker is paid itself.

The key of the account that is paid now changes that at once: --worker names the worker then. The worker's own key
changes it at once while no other account is named; after that, its change takes as long as a stake takes to leave
(20,000 blocks, unless governance changed that), so that a stolen key of a worker moves nothing before its owner has
answered; the answer costs no fee. A change that waits is replaced by the next one.

With -o json: what starling account show prints of the worker.`,
		Example: `  starling account payee starling1qx... --home net/worker-0
  starling account payee starling1qx... --home wallet --worker starling1zz... --network http://127.0.0.1:26601`,
		Args: usage.Exactly("ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			payee := args[0]
			if payee == "self" {
				payee = ""
			} else if err := target.WantAddress(payee); err != nil {
				return err
			}
			if worker != "" {
				if err := target.WantAddress(worker); err != nil {
					return err
				}
			}
			err := t.Act(cmd, "the folder of the worker, or of the account that is paid now",
				func(ctx context.Context, cl *client.Client) error { return session.SetPayee(ctx, cl, worker, payee) })
			if err != nil {
				return err
			}
			if worker == "" {
				worker = t.Account
			}
			a, err := session.ReadAccount(cmd.Context(), t.Network, worker)
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(a, a.Address))
			}
			if a.Payee == "" {
				fmt.Printf("%s is paid itself\n", a.Address)
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			printPayee(w, a)
			return w.Flush()
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&worker, "worker", "", "worker or verifier that is paid, if the folder is that of "+
		"the account that gets the pay")
	return cmd
}

// printPayee prints which account is paid in place of another.
func printPayee(w io.Writer, a *session.Account) {
	if a.Payee != "" {
		fmt.Fprintf(w, "paid to\t%s\n", a.Payee)
	}
	if a.PayeeAt > 0 {
		next := a.NextPayee
		if next == "" {
			next = a.Address
		}
		fmt.Fprintf(w, "then to\t%s, from block %d on\n", next, a.PayeeAt)
	}
}
