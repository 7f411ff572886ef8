package account

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
)

func listCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "list", "List the stakes of a network",
		`List what answers for the work of the participants of a
network, the largest stake first.

With -o json: {"stakes":[{"account","roles","stake_uzen","slashed_uzen","leaving_uzen","leaves_at","jailed"}]}.`,
		`  starling account stake list --network http://127.0.0.1:26601`,
		"stakes", func(ctx context.Context, t *target.Target) ([]inspect.Stake, error) {
			return inspect.Stakes(ctx, t.Network)
		},
		func(s inspect.Stake) string { return s.Account },
		[]string{"ACCOUNT", "ROLES", "STAKE", "SLASHED", "LEAVING", "JAILED", "+LEAVES AFTER"},
		func(s inspect.Stake) []any {
			return []any{s.Account, strings.Join(s.Roles, ", "), terminal.Zen(s.Stake), terminal.Zen(s.Slashed),
				terminal.Zen(s.Leaving), s.Jailed, terminal.Whole(s.LeavesAt)}
		})
}

func slashesCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "slashes", "List what was taken from stakes, and why",
		`List what was taken from stakes: from the
account of a folder (--home), also over broken promises of uptime, or, with --network alone, from everybody in every
job.

With -o json: {"slashes":[as of starling job explain]}.`,
		`  starling account stake slashes --network http://127.0.0.1:26601
  starling account stake slashes --home net/worker-0 -o jsonl`,
		"slashes", func(ctx context.Context, t *target.Target) ([]rundir.Explanation, error) {
			return inspect.Slashes(ctx, t.Network, t.Account)
		},
		func(e rundir.Explanation) string { return strconv.FormatUint(e.Seq, 10) },
		[]string{"JOB", "ROUND", "UNIT", "WHO", "AMOUNT", "WHY", "+HEIGHT"},
		func(e rundir.Explanation) []any {
			return []any{e.Job, e.Round, e.Unit, e.Who, e.Coin.Text(e.Amount), e.Why, e.Height}
		})
}
