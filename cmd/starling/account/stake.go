package account

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
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
	var machine string
	cmd := &cobra.Command{
		Use:   "remove AMOUNT|all --home DIR",
		Short: "Take a part of the stake back",
		Long: `Ask for a part of the stake back, or for all of it. It stands behind no more work from the next block on, and
answers for what was done until it is paid out: 20,000 blocks later, unless governance changed that, and not while the
account has a part in a run. A second request replaces the first, and its wait begins then. An account that commits to a
tier keeps the stake of the tier. AMOUNT is in ZEN, or in another coin with its symbol, such as 5usdc: a stake in
another coin backs the work for orders in this coin. all is all of the stake in ZEN.

With -o json: what starling account show prints.`,
		Example: `  starling account stake remove 10 --home net/worker-0
  starling account stake remove 5usdc --home net/worker-0
  starling account stake remove all --home net/worker-0`,
		Args: usage.Exactly("AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "all" {
				return restake(c, cmd, &t,
					func(ctx context.Context, cl *client.Client) error { return session.Unstake(ctx, cl, 0) })
			}
			return restakeIn(c, cmd, &t, args[0], session.Unstake, module.Stakes.Leave, machine)
		},
	}
	machineFlag(cmd, &machine)
	t.Flags(cmd)
	return cmd
}

func addCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var machine string
	cmd := &cobra.Command{
		Use:   "add AMOUNT --home DIR",
		Short: "Stake more",
		Long: `Add coins of the account of a folder to its stake. The account takes part already: starling worker up stakes
what --stake says when it registers. AMOUNT is in ZEN, or in another coin with its symbol, such as 5usdc: a stake in
another coin backs the work for orders in this coin.

With -o json: what starling account show prints.`,
		Example: `  starling account stake add 10 --home net/worker-0
  starling account stake add 5usdc --home net/worker-0`,
		Args: usage.Exactly("AMOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restakeIn(c, cmd, &t, args[0], session.AddStake, module.Stakes.Add, machine)
		},
	}
	machineFlag(cmd, &machine)
	t.Flags(cmd)
	return cmd
}

// machineFlag is for stakes in other coins than ZEN: those in ZEN are changed by starling fleet.
func machineFlag(cmd *cobra.Command, machine *string) {
	cmd.Flags().StringVar(machine, "machine", "", "account of a machine of the fleet, for a stake in another coin than "+
		"ZEN")
}

// restakeIn changes the stake in ZEN or in another coin by an amount with its symbol.
func restakeIn(c *terminal.Console, cmd *cobra.Command, t *target.Target, text string,
	own func(context.Context, *client.Client, uint64) error,
	other func(module.Stakes, context.Context, string, coin.Coin, uint64) error, machine string) error {
	if err := target.WantCoins(cmd, text); err != nil {
		return err
	}
	return restake(c, cmd, t, func(ctx context.Context, cl *client.Client) error {
		amount, err := coins.Parse(ctx, cl.Market, text)
		switch {
		case err != nil:
			return err
		case amount.Own() && machine != "":
			return usage.Error(cmd, errors.New("--machine is for other coins than ZEN: starling fleet changes the stake of a "+
				"machine in ZEN"))
		case amount.Own():
			return own(ctx, cl, amount.Grains)
		}
		return other(cl.Stakes, ctx, machine, amount.Coin, amount.Grains)
	})
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
	for _, h := range a.Coins {
		if h.Stake > 0 || h.Slashed > 0 {
			fmt.Println(stakeIn(h))
		}
	}
	return nil
}

// stakeIn says what an account has staked in another coin.
func stakeIn(h coins.Holding) string {
	text := fmt.Sprintf("staked %s, %s slashed", h.Coin.Text(h.Stake), h.Coin.Amount(h.Slashed))
	if h.Leaving > 0 {
		text += fmt.Sprintf("; of it %s leave after block %d, when it has no part in a run", h.Coin.Text(h.Leaving),
			h.LeavesAt)
	}
	return text
}
