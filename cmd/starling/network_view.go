package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
)

func netPeersCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "peers", "List the validators that a validator is connected to",
		`List the processes of other
validators that the validator which is asked is connected to. starling worker status lists the peers of a worker.

With -o json: {"peers":[{"node_id","name","address","dialled","sent_bytes","received_bytes"}]}.`,
		`  starling network peers --network http://127.0.0.1:26601`,
		"peers", func(ctx context.Context, t *target.Target) ([]client.Peer, error) {
			return dashboard.NetworkPeers(ctx, t.Network)
		},
		func(p client.Peer) string { return p.NodeID },
		[]string{"NODE", "NAME", "ADDRESS", "DIALLED", "SENT", "RECEIVED"},
		func(p client.Peer) []any {
			return []any{p.NodeID, p.Name, p.Address, p.Dialled, terminal.Bytes(uint64(p.Sent)),
				terminal.Bytes(uint64(p.Received))}
		})
}

func netHealthCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "health --network URL",
		Short: "Say whether a network works",
		Long: `Look at a network through one of its validators: whether it makes blocks and follows the others, whether those
vote who should, whether this machine's clock fits, who offers work, and whether the coins add up. What is not as it
should be gives exit code 12. starling doctor examines a machine.

With -o json: {"status","checks":[{"name","ok","text"}],"uptime_seconds"}, the status ok or degraded.`,
		Example: `  starling network health --network http://127.0.0.1:26601
  starling network health --home net/worker-0 -o json`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.Settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			h, err := dashboard.NetworkHealth(ctx, t.Network, time.Now())
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.List(h, h.Checks, func(x api.HealthCheck) string { return x.Name }))
			} else {
				err = printHealth(h, c.Form)
			}
			if h.Status != "ok" {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{Code: "NETWORK_DEGRADED",
					What: "the network is not as it should be", Why: failing(h),
					Fix: "compare with another validator; docs/operate.md says what to do"}, terminal.ExitFindings))
			}
			return err
		},
	}
	t.Flags(cmd)
	return cmd
}

func failing(h *api.Health) string {
	var texts []string
	for _, x := range h.Checks {
		if !x.OK {
			texts = append(texts, x.Name+": "+x.Text)
		}
	}
	return strings.Join(texts, "; ")
}

func printHealth(h *api.Health, f terminal.Form) error {
	w := terminal.NewColumns(os.Stdout, f, "CHECK", "STATE", "WHAT")
	for _, x := range h.Checks {
		w.Row(x.Name, map[bool]string{true: "ok", false: "FAILS"}[x.OK], x.Text)
	}
	return w.Flush()
}

func marketPriceCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "price", "Say what work costs on a network",
		`Say what is asked for work, by role: the lowest, the
median and the highest price of the offers, and what an hour of the median measured machine costs. Prices are in uzen
per 10^15 floating-point operations. starling market quote says what a job would cost.

With -o json: {"prices":[{"role","offers","slots","lowest","median","highest","hourly_uzen"}]}.`,
		`  starling market price --network http://127.0.0.1:26601`,
		"prices", func(ctx context.Context, t *target.Target) ([]inspect.Prices, error) {
			return inspect.MarketPrices(ctx, t.Network)
		},
		func(p inspect.Prices) string { return p.Role },
		[]string{"ROLE", "OFFERS", "SLOTS", "LOWEST", "MEDIAN", "HIGHEST", "HOUR"},
		func(p inspect.Prices) []any {
			return []any{p.Role, p.Offers, p.Slots, p.Lowest, p.Median, p.Highest, terminal.OptionalZen(p.Hourly)}
		})
}

func marketNodesCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "nodes", "List the participants of a network, with their machines",
		`List the participants of a
network: their roles, machines as they were measured, prices, stakes and the jobs that they work for.

With -o json: {"nodes":[{"id","roles","price","offers","stake_uzen","jailed","jobs","device","class","rate"}]}.`,
		`  starling market nodes --network http://127.0.0.1:26601
  starling market nodes --network http://127.0.0.1:26601 -o name`,
		"nodes", func(ctx context.Context, t *target.Target) ([]api.Participant, error) {
			s, err := inspect.AskNetwork(ctx, t.Network, "")
			if err != nil {
				return nil, err
			}
			return s.Participants, nil
		},
		func(p api.Participant) string { return p.ID },
		[]string{"ACCOUNT", "ROLES", "CLASS", "GFLOP/S", "PRICE", "OFFERS", "STAKE", "JAILED", "WORKS FOR", "+DEVICE"},
		func(p api.Participant) []any {
			return []any{p.ID, strings.Join(p.Roles, ", "), p.Class, terminal.Gigaflops(p.Rate), p.Price, p.Offers,
				terminal.Zen(p.Stake), p.Jailed, strings.Join(p.Jobs, ", "), p.Device}
		})
}

func stakeListCommand(c *terminal.Console) *cobra.Command {
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

func stakeSlashesCommand(c *terminal.Console) *cobra.Command {
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
			return []any{e.Job, e.Round, e.Unit, e.Who, terminal.Zen(e.Amount), e.Why, e.Height}
		})
}
