// Package committee has the commands of committees: those that host, join, leave and show them. The rules are those of
// protocol/committee, and the parties are in node/committee.
package committee

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	nodearena "github.com/starling-network/starling/node/arena"
	node "github.com/starling-network/starling/node/committee"
	"github.com/starling-network/starling/protocol/coin"
)

// Command is starling market committee.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("committee", "Rounds of training whose public models are scored and paid",
		`Let owners of data train one model in rounds, and pay them for the gain of their models. A host publishes the
model of a round, and commits to a set of examples. The network draws members by their stake; each trains the model on
data of its own, and enters the result by a commitment. Then the models and the set are public, and evaluators that
the network draws seal and open the losses. The gain of a member is the loss of the model of the round less the loss of
that model after a step towards the model of the member, or the same by losses that do not depend on how often a model
expects each token, if that is lower; the median of the evaluators counts. The pay of the round is shared in proportion
to the median of the last rounds of each member, which an account keeps when it leaves and joins again.

The data stay with the owners. The models do not: they may repeat examples of the data. docs/federated.md has the rules,
and docs/security.md says what they show and what they do not.`,
		hostCommand(c), joinCommand(c), leaveCommand(c), listCommand(c), showCommand(c))
}

// explain explains the errors of the parties.
func explain(err error) error {
	return cause.Step(err, map[string]int{node.BadJob: terminal.ExitConflict, node.BadText: terminal.ExitUsage,
		node.Disk: terminal.ExitFailure, nodearena.Disk: terminal.ExitFailure, nodearena.BadFolder: terminal.ExitNotFound,
		nodearena.Changed: terminal.ExitConflict})
}

// wantCommittee reads the number of a committee.
func wantCommittee(cmd *cobra.Command, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 {
		return 0, usage.Error(cmd, fmt.Errorf("%q is no number of a committee; starling market committee list lists them",
			text))
	}
	return id, nil
}

// follow calls a function at each block until it is done. An error of one block does not keep it from the next.
func follow(ctx context.Context, cl *client.Client, say func(string), block func() (bool, error)) error {
	next, err := client.Heights(ctx, cl)
	if err != nil {
		return err
	}
	for {
		if _, err := next(ctx); err != nil {
			return err
		}
		done, err := block()
		if done || ctx.Err() != nil {
			return err
		}
		if err != nil {
			say(fmt.Sprintf("the next block tries again: %v", err))
		}
	}
}

func leaveCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "leave COMMITTEE --home DIR",
		Short: "Leave a committee, and take the stake back",
		Long: `Return the stake of a member that is not drawn for the round under way.

With -o json: {"stake"}.`,
		Example: `  starling market committee leave 2 --home net/owner`,
		Args:    usage.Exactly("COMMITTEE"), Annotations: terminal.FiguresOnly,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := wantCommittee(cmd, args[0])
			if err != nil {
				return err
			}
			var stake uint64
			err = t.Act(cmd, "the folder of the member", func(ctx context.Context, cl *client.Client) (err error) {
				stake, err = cl.Arena.Leave(ctx, id)
				return err
			})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Figures(map[string]any{"stake": coin.Coin{}.Amount(stake)}))
			}
			_, err = fmt.Printf("%s came back\n", coin.Coin{}.Text(stake))
			return err
		},
	}
	t.Flags(cmd)
	return cmd
}
