package network

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/gov"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
)

// citizen is the folder whose account proposes or votes.
type citizen struct {
	home, network string
	dry           bool
}

func govProposeCommand(c *terminal.Console) *cobra.Command {
	var v citizen
	var deposit string
	cmd := &cobra.Command{
		Use:   "propose FILE --home DIR",
		Short: "Make a proposal of a file",
		Long: `Make a proposal: {"title","summary","messages":[{"@type",...}]}, as starling network gov params writes it and
as other programs of the ecosystem take it. Every message acts in the name of governance. It is voted on once its
deposit is large enough; the deposit comes back unless it is vetoed. FILE - is standard input.

With -o json: {"proposal","height","hash"}, or with --dry-run {"gas"}.`,
		Example: `  starling network gov propose fee.json --home net/consumer --dry-run
  starling network gov propose fee.json --home net/consumer --deposit 10`,
		Args: usage.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := target.WantAmount(cmd, deposit)
			if err != nil {
				return err
			}
			text, err := usage.ReadOrStdin(args[0])
			if err != nil {
				return err
			}
			p, err := gov.ParseProposal(text)
			if err != nil {
				return terminal.WithExit(&terminal.Problem{
					Code: "PROPOSAL_INVALID", What: args[0] + " holds no proposal", Why: err.Error(),
					Fix: "start with the output of `starling network gov params MODULE`",
				}, terminal.ExitUsage)
			}
			var id uint64
			var made transaction.Result
			gas, err := v.act(cmd, func(ctx context.Context, cl *client.Client) (err error) {
				id, made, err = gov.New(cl).Propose(ctx, p, amount)
				return err
			}, func(ctx context.Context, cl *client.Client) (uint64, error) {
				return gov.New(cl).TryProposal(ctx, p, amount)
			})
			switch {
			case err != nil:
				return err
			case v.dry:
				return tried(c, gas)
			case c.Form.Machine():
				return c.Form.Print(os.Stdout, terminal.One(map[string]any{"proposal": id, "height": made.Height,
					"hash": made.Hash}, strconv.FormatUint(id, 10)))
			}
			_, err = fmt.Printf("proposal %d is made in block %d\n", id, made.Height)
			return err
		},
	}
	v.flags(cmd)
	v.dryRunFlag(cmd)
	cmd.Flags().StringVar(&deposit, "deposit", "10", "ZEN that answer for it")
	return cmd
}

// tried says what a transaction that was not made would have taken.
func tried(c *terminal.Console, gas uint64) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"gas": gas}))
	}
	_, err := fmt.Printf("the network would take it, for %d gas\n", gas)
	return err
}

func govDepositCommand(c *terminal.Console) *cobra.Command {
	var v citizen
	cmd := &cobra.Command{
		Use:   "deposit PROPOSAL ZEN --home DIR",
		Short: "Add to the deposit of a proposal",
		Long: `Add to the deposit of a proposal that is not voted on yet, because it is too small.

With -o json: {"height","hash"}.`,
		Example: `  starling network gov deposit 3 5 --home net/consumer`,
		Args:    usage.Exactly("PROPOSAL", "ZEN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantProposal(cmd, args[0])
			if err != nil {
				return err
			}
			amount, err := target.WantAmount(cmd, args[1])
			if err != nil {
				return err
			}
			var r transaction.Result
			_, err = v.act(cmd, func(ctx context.Context, cl *client.Client) (err error) {
				r, err = gov.New(cl).DepositFor(ctx, id, amount)
				return err
			}, nil)
			return target.Done(c, r, err, fmt.Sprintf("%s ZEN are deposited for proposal %d", terminal.Zen(amount), id))
		},
	}
	v.flags(cmd)
	return cmd
}

func govVoteCommand(c *terminal.Console) *cobra.Command {
	var v citizen
	cmd := &cobra.Command{
		Use:   "vote PROPOSAL yes|no|abstain|veto --home DIR",
		Short: "Vote on a proposal",
		Long: `Vote on a proposal with the stake that the account of a folder has delegated to validators, or, if the folder
is that of a validator, with all that is delegated to it. The last vote of an account counts.

With -o json: {"height","hash"}, or with --dry-run {"gas"}.`,
		Example: `  starling network gov vote 3 yes --home net/validator-0
  starling network gov vote 3 no --home net/consumer --dry-run`,
		Args: usage.Exactly("PROPOSAL", strings.Join(gov.VoteOptions(), "|")),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantProposal(cmd, args[0])
			if err != nil {
				return err
			}
			if !slices.Contains(gov.VoteOptions(), args[1]) {
				return usage.Error(cmd, fmt.Errorf("%q is no vote; wanted one of %s", args[1],
					strings.Join(gov.VoteOptions(), ", ")))
			}
			var r transaction.Result
			gas, err := v.act(cmd, func(ctx context.Context, cl *client.Client) (err error) {
				r, err = gov.New(cl).Vote(ctx, id, args[1])
				return err
			}, func(ctx context.Context, cl *client.Client) (uint64, error) {
				return gov.New(cl).TryVote(ctx, id, args[1])
			})
			if err == nil && v.dry {
				return tried(c, gas)
			}
			return target.Done(c, r, err, fmt.Sprintf("voted %s on proposal %d", args[1], id))
		},
	}
	v.flags(cmd)
	v.dryRunFlag(cmd)
	return cmd
}
