package validator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

func bondCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "bond ZEN --home DIR",
		Short: "Stake for a validator, so that it votes",
		Long: `Stake coins of a validator's operator, whose account starling validator join prints, for the validator of a
folder, which runs and is where the others are. It votes from the second block after, one vote for each ZEN.
A validator that signs two votes for one step loses a part of the stake and never votes again.

With -o json: {"height","hash"}.`,
		Example: `  starling validator bond --home my-validator 100`,
		Args:    usage.Exactly("ZEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := target.WantAmount(cmd, args[1])
			if err != nil {
				return err
			}
			return operate(c, cmd, args[0], "the stake is in block %d\n",
				func(ctx context.Context, home string) (transaction.Result, error) {
					return validator.Bond(ctx, home, amount)
				})
		},
	}
}

func unbondCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "unbond ZEN|all --home DIR",
		Short: "Take the stake of a validator back, or a part of it",
		Long: `Take coins of a validator's operator back from its stake. The validator of the folder runs and is where the
others are. From the second block after it has as many votes less. The coins are the operator's again 21 days later
(starling validator earnings shows when); before that, a part of them is still lost if the validator signed two votes
for one step.

With all, it votes no longer, and its process may be stopped. Keep the folder, or the phrase that starling validator
identity shows, for the coins. To vote again: starling validator bond, then starling validator unjail.
A stake without which those who sign have no more than two thirds of the votes is refused (LAST_VOTES): the chain would
stop. The fee is paid by the account of the operator.

With -o json: {"height","hash","amount_uzen","stake_uzen","at"}.`,
		Example: `  starling validator unbond --home my-validator 40
  starling validator unbond --home my-validator all`,
		Args: usage.Exactly("ZEN|all"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			amount := uint64(0)
			if args[1] != "all" {
				if amount, err = target.WantAmount(cmd, args[1]); err != nil {
					return err
				}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			u, err := validator.Unbond(ctx, args[0], amount)
			if err != nil {
				return refused(err)
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(u, u.Hash))
			}
			fmt.Printf("%s ZEN leave the stake since block %d, and come back at %s; %s ZEN stay\n", terminal.Zen(u.Amount),
				u.Height, u.At.Local().Format(time.DateTime), terminal.Zen(u.Left))
			return nil
		},
	}
}

func unjailCommand(c *terminal.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "unjail --home DIR",
		Short: "Give a validator its vote back",
		Long: `Give the validator of a folder the vote back that it lost because it had signed too few blocks. It runs again,
and the time for which it is jailed, which starling validator status shows, is over.

With -o json: {"height","hash"}.`,
		Example: `  starling validator unjail --home net/validator-0`,
		Args:    usage.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(c, cmd, args[0], "it votes again after block %d\n", validator.Unjail)
		},
	}
}

// operate lets the operator of a validator do something.
func operate(c *terminal.Console, cmd *cobra.Command, home, done string,
	do func(context.Context, string) (transaction.Result, error)) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	r, err := do(ctx, home)
	if err != nil {
		return refused(err)
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(map[string]any{"height": r.Height, "hash": r.Hash}, r.Hash))
	}
	fmt.Printf(done, r.Height)
	return nil
}

// refused gives the errors of operators their codes.
func refused(err error) error {
	p := &terminal.Problem{What: err.Error()}
	switch {
	case errors.Is(err, keystore.ErrNoValidator):
		return cause.Network(err)
	case errors.Is(err, keystore.ErrBehind):
		p.Code, p.Fix = "VALIDATOR_BEHIND", "wait until starling validator status says that it has caught up"
	case errors.Is(err, validator.ErrNoStake):
		p.Code, p.Fix = "NOT_BONDED", "starling validator earnings shows the stake; all takes all of it"
	case errors.Is(err, validator.ErrVotes):
		p.Code, p.Fix = "LAST_VOTES", "take less, or wait until other validators have staked more and sign"
	default:
		return cause.Home(err)
	}
	return terminal.WithExit(p, terminal.ExitConflict)
}
