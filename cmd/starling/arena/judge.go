package arena

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/compute/kernel"
	nodearena "github.com/starling-network/starling/node/arena"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/protocol/coin"
)

// judging is what an evaluator asks for.
type judging struct {
	target.Target
	bond    string
	contest uint64
	threads int
	private bool
}

func judgeCommand(c *terminal.Console) *cobra.Command {
	var o judging
	cmd := &cobra.Command{
		Use:   "judge --home DIR",
		Short: "Evaluate the models of contests that the network draws the account for",
		Long: `Make the account, a registered verifier, an evaluator of contests, and evaluate models until interrupted.
The network draws evaluators in proportion to the stake of verifiers. For each contest it is drawn for, the command
downloads the hidden set and the models, computes the exact loss of each on each example, looks for copies, seals the
report, and opens it when the seed of the duels is known. An evaluator whose report is that of more than half of its
panel has the fee. One that seals no report, or does not open it, loses a tenth of its bond and is not drawn before it
starts this command again; starling market arena retire returns the bond.

Models are read, not executed: config.json and safetensors. Downloads continue after a restart, and losses that were
computed are kept. Strangers choose the URLs: no redirection is followed, and files at private addresses
are not got without --private. --contest ends the command when that contest is over.`,
		Example: `  starling market arena judge --home net/verifier --bond 5
  starling market arena judge --home net/verifier --contest 3`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.Home == "":
				return usage.Error(cmd, errors.New("--home is needed: the folder of the verifier"))
			case o.threads < 1:
				return usage.Error(cmd, errors.New("--threads is at least 1"))
			}
			if err := target.WantCoins(cmd, o.bond); err != nil {
				return err
			}
			return explain(o.judge(cmd, c))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.bond, "bond", "1", "ZEN that the bond has at least: more are locked if there are fewer")
	f.Uint64Var(&o.contest, "contest", 0, "end when this contest is over")
	f.BoolVar(&o.private, "private", false, "also get files from private addresses, as those of a network on this "+
		"machine have")
	f.IntVar(&o.threads, "threads", kernel.Cores, "number of threads")
	return cmd
}

func (o *judging) judge(cmd *cobra.Command, c *terminal.Console) error {
	say := c.Note
	err := o.Act(cmd, "the folder of the verifier", func(ctx context.Context, cl *client.Client) error {
		if err := o.ready(ctx, cl, say); err != nil {
			return err
		}
		j := &nodearena.Judge{Dir: dirs(o.Home, "judge"), Account: cl.Address(), Threads: o.threads, Say: say,
			Private: o.private}
		next, err := client.Heights(ctx, cl)
		if err != nil {
			return err
		}
		for {
			height, err := next(ctx)
			if err != nil {
				return err
			}
			if err := j.Block(ctx, cl.Arena, height); err != nil {
				if ctx.Err() != nil {
					return err
				}
				say(fmt.Sprintf("the next block tries again: %v", err))
			}
			if o.contest == 0 {
				continue
			}
			if s, err := cl.Arena.Contest(ctx, o.contest); err != nil || !s.Open() {
				return err
			}
		}
	})
	return terminal.IfInterrupted(cmd.Context(), err, "run the same command again before the contests of the account end")
}

// ready makes the account an evaluator that may be drawn.
func (o *judging) ready(ctx context.Context, cl *client.Client, say func(string)) error {
	want, err := coins.Parse(ctx, cl.Market, o.bond)
	if err == nil && !want.Own() {
		err = fmt.Errorf("%w: a bond is in %s, not in %s", coins.ErrText, coin.Coin{}.Name(), want.Name())
	}
	if err != nil {
		return err
	}
	bond, changed, err := nodearena.Offer(ctx, cl.Arena, cl.Address(), want.Grains)
	if changed {
		say(fmt.Sprintf("%s evaluates, with a bond of %s", cl.Address(), coin.Coin{}.Text(bond)))
	}
	return err
}

func retireCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "retire --home DIR",
		Short: "End the evaluations of an account, and take its bond back",
		Long: `Return the bond of an evaluator that is in no panel. The account is drawn for no contest any more.

With -o json: {"bond"}.`,
		Example: `  starling market arena retire --home net/verifier`,
		Args:    usage.Exactly(), Annotations: terminal.FiguresOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var bond uint64
			err := t.Act(cmd, "the folder of the verifier", func(ctx context.Context, cl *client.Client) (err error) {
				bond, err = cl.Arena.Retire(ctx)
				return err
			})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"bond": coin.Coin{}.Amount(bond)}))
			}
			_, err = fmt.Printf("%s came back\n", coin.Coin{}.Text(bond))
			return err
		},
	}
	t.Flags(cmd)
	return cmd
}
