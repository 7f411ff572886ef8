package account

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/session"
)

// StakeCommand is starling account stake.
func StakeCommand(c *terminal.Console) *cobra.Command {
	return usage.Group("stake", "See and change the stake behind work",
		`Add to the coins that answer for the work of an account, or take some back. They bound how much work it is
leased at a time, and a conviction takes a part of them. docs/market.md has the rules.`,
		addCommand(c), removeCommand(c), unjailCommand(c), listCommand(c), slashesCommand(c))
}

func unjailCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "unjail --home DIR",
		Short: "Be given work again after a conviction",
		Long: `End the bar that follows a conviction, so that the network assigns work to the account again. An account may
ask 20,000 blocks after the conviction, unless governance changed that number, and after a new measurement of its
machine, which starling worker up requests, also while the account is barred. The chain then resets the history of the
account; a second conviction within thirty days slashes at least half of the stake. Restart the worker or verifier of
the account afterwards, so that it makes its offer.

With -o json: what starling account show prints.`,
		Example: `  starling account stake unjail --home net/worker-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return restake(c, cmd, &t, session.UnjailStake)
		},
	}
	t.Flags(cmd)
	return cmd
}

func removeCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "remove ZEN|all --home DIR",
		Short: "Take a part of the stake back",
		Long: `Ask for a part of the stake back, or for all of it. It stands behind no more work from the next block on, and
answers for what was done until it is paid out: 20,000 blocks later, unless governance changed that, and not while the
account has a part in a run. A second request replaces the first, and its wait begins then. An account that commits to a
tier keeps the stake of the tier.

With -o json: what starling account show prints.`,
		Example: `  starling account stake remove 10 --home net/worker-0
  starling account stake remove all --home net/worker-0`,
		Args: usage.Exactly("ZEN"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var amount uint64 // all
			if args[0] != "all" {
				if amount, err = target.WantAmount(cmd, args[0]); err != nil {
					return err
				}
			}
			return restake(c, cmd, &t, func(ctx context.Context, cl *client.Client) error {
				return session.Unstake(ctx, cl,
					amount)
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

func addCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "add ZEN --home DIR",
		Short: "Stake more",
		Long: `Add coins of the account of a folder to its stake. The account takes part already: starling worker up stakes
what --stake says when it registers.

With -o json: what starling account show prints.`,
		Example: `  starling account stake add 10 --home net/worker-0`,
		Args:    usage.Exactly("ZEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := target.WantAmount(cmd, args[0])
			if err != nil {
				return err
			}
			return restake(c, cmd, &t, func(ctx context.Context, cl *client.Client) error {
				return session.AddStake(ctx, cl,
					amount)
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

// restake changes the stake of the account of a folder, and says what it is then.
func restake(c *terminal.Console, cmd *cobra.Command, t *target.Target,
	change func(context.Context, *client.Client) error) error {
	if err := t.Act(cmd, "the folder of the account", change); err != nil {
		return err
	}
	a, err := session.ReadAccount(cmd.Context(), t.Network, t.Account)
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(a, a.Address))
	}
	fmt.Printf("the stake is %s ZEN\n", terminal.Zen(a.Stake))
	if a.Leaving > 0 {
		fmt.Printf("of it %s ZEN leave %safter block %d, when the account has no part in a run\n", terminal.Zen(a.Leaving),
			terminal.Positive(a.LeavesIn, func(s float64) string { return "in about " + terminal.Seconds(s) + ", " }),
			a.LeavesAt)
	}
	return nil
}
