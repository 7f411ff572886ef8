package payout

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	nodepayout "github.com/starling-network/starling/node/payout"
)

func signCommand(c *terminal.Console) *cobra.Command {
	var dir, network string
	cmd := &cobra.Command{
		Use:   "sign --home DIR --network URL",
		Short: "Sign payouts with the key of a validator that left",
		Long: `Sign what the set of validators is signing, by a transaction of the operator of a validator. Validators that
vote sign in their votes and need no command. It is for those that left the network while their set had not handed
over: if they had more than a third of its stake, no payout is signed without them.`,
		Example: `  starling payout sign --home net/validator-3 --network http://127.0.0.1:26601`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usage.Error(cmd, errors.New("--home is needed: the folder of the validator"))
			}
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			secret, err := identity.ReadSecret(dir)
			if err != nil {
				return cause.Network(err)
			}
			return explain(inspect.TransactAs(cmd.Context(), dir, network,
				func(ctx context.Context, cl *client.Client) error {
					n, err := nodepayout.Sign(ctx, cl.Payout, identity.KeysOf(secret))
					if err == nil {
						c.Say(fmt.Sprintf("%d messages are signed", n))
					}
					return err
				}))
		},
	}
	cmd.Flags().StringVar(&dir, "home", "", "folder of the validator")
	target.NetworkFlag(cmd, &network)
	return cmd
}
