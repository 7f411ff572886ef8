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
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
)

// netCommand is a command that asks a network for a list.
func netCommand[T any](c *cli, use, short, long, example, key string,
	ask func(ctx context.Context, t *target) ([]T, error), name func(T) string, titles []string,
	row func(T) []any) *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use: use + " --network URL", Short: short, Long: long, Example: example, Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			all, err := ask(ctx, &t)
			if err != nil {
				return err
			}
			return printList(c.form, key, all, name, titles, row)
		},
	}
	t.flags(cmd)
	return cmd
}

func (c *cli) netPeers() *cobra.Command {
	return netCommand(c, "peers", "List the validators that a validator is connected to", `List the processes of other
validators that the validator which is asked is connected to. starling worker status lists the peers of a worker.

With -o json: {"peers":[{"node_id","name","address","dialled","sent_bytes","received_bytes"}]}.`, `  starling network peers --network http://127.0.0.1:26601`,
		"peers", func(ctx context.Context, t *target) ([]client.Peer, error) {
			return dashboard.NetworkPeers(ctx, t.network)
		},
		func(p client.Peer) string { return p.NodeID },
		[]string{"NODE", "NAME", "ADDRESS", "DIALLED", "SENT", "RECEIVED"},
		func(p client.Peer) []any {
			return []any{p.NodeID, p.Name, p.Address, p.Dialled, terminal.Bytes(uint64(p.Sent)),
				terminal.Bytes(uint64(p.Received))}
		})
}

func (c *cli) netHealth() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "health --network URL",
		Short: "Say whether a network works",
		Long: `Look at a network through one of its validators: whether it makes blocks and follows the others, whether those
vote who should, whether this machine's clock fits, who offers work, and whether the coins add up. What is not as it
should be gives exit code 12. starling doctor examines a machine.

With -o json: {"status","checks":[{"name","ok","text"}],"uptime_seconds"}, the status ok or degraded.`,
		Example: `  starling network health --network http://127.0.0.1:26601
  starling network health --home net/worker-0 -o json`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.settle(cmd); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			h, err := dashboard.NetworkHealth(ctx, t.network, time.Now())
			if err != nil {
				return err
			}
			if c.form.Machine() {
				err = c.form.Print(os.Stdout, terminal.List(h, h.Checks, func(x api.HealthCheck) string { return x.Name }))
			} else {
				err = printHealth(h, c.form)
			}
			if h.Status != "ok" {
				err = errors.Join(err, terminal.WithExit(&terminal.Problem{Code: "NETWORK_DEGRADED",
					What: "the network is not as it should be", Why: failing(h),
					Fix: "compare with another validator; docs/operate.md says what to do"}, terminal.ExitFindings))
			}
			return err
		},
	}
	t.flags(cmd)
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

func (c *cli) marketPrice() *cobra.Command {
	return netCommand(c, "price", "Say what work costs on a network", `Say what is asked for work, by role: the lowest, the
median and the highest price of the offers, and what an hour of the median measured machine costs. Prices are in uzen
per 10^15 floating-point operations. starling market quote says what a job would cost.

With -o json: {"prices":[{"role","offers","slots","lowest","median","highest","hourly_uzen"}]}.`, `  starling market price --network http://127.0.0.1:26601`,
		"prices", func(ctx context.Context, t *target) ([]inspect.Prices, error) {
			return inspect.MarketPrices(ctx, t.network)
		},
		func(p inspect.Prices) string { return p.Role },
		[]string{"ROLE", "OFFERS", "SLOTS", "LOWEST", "MEDIAN", "HIGHEST", "HOUR"},
		func(p inspect.Prices) []any {
			return []any{p.Role, p.Offers, p.Slots, p.Lowest, p.Median, p.Highest, amount(p.Hourly)}
		})
}

func (c *cli) marketNodes() *cobra.Command {
	return netCommand(c, "nodes", "List the participants of a network, with their machines", `List the participants of a
network: their roles, machines as they were measured, prices, stakes and the jobs that they work for.

With -o json: {"nodes":[{"id","roles","price","offers","stake_uzen","jailed","jobs","device","class","rate"}]}.`, `  starling market nodes --network http://127.0.0.1:26601
  starling market nodes --network http://127.0.0.1:26601 -o name`,
		"nodes", func(ctx context.Context, t *target) ([]api.Participant, error) {
			s, err := inspect.AskNetwork(ctx, t.network, "")
			if err != nil {
				return nil, err
			}
			return s.Participants, nil
		},
		func(p api.Participant) string { return p.ID },
		[]string{"ACCOUNT", "ROLES", "CLASS", "GFLOP/S", "PRICE", "OFFERS", "STAKE", "JAILED", "WORKS FOR", "+DEVICE"},
		func(p api.Participant) []any {
			return []any{p.ID, strings.Join(p.Roles, ", "), p.Class, gigaflops(p.Rate), p.Price, p.Offers,
				terminal.Zen(p.Stake), p.Jailed, strings.Join(p.Jobs, ", "), p.Device}
		})
}

func (c *cli) stakeList() *cobra.Command {
	return netCommand(c, "list", "List the stakes of a network", `List what answers for the work of the participants of a
network, the largest stake first.

With -o json: {"stakes":[{"account","roles","stake_uzen","slashed_uzen","leaving_uzen","leaves_at","jailed"}]}.`, `  starling account stake list --network http://127.0.0.1:26601`,
		"stakes", func(ctx context.Context, t *target) ([]inspect.Stake, error) { return inspect.Stakes(ctx, t.network) },
		func(s inspect.Stake) string { return s.Account },
		[]string{"ACCOUNT", "ROLES", "STAKE", "SLASHED", "LEAVING", "JAILED", "+LEAVES AFTER"},
		func(s inspect.Stake) []any {
			return []any{s.Account, strings.Join(s.Roles, ", "), terminal.Zen(s.Stake), terminal.Zen(s.Slashed),
				terminal.Zen(s.Leaving), s.Jailed, whole(s.LeavesAt)}
		})
}

func (c *cli) stakeSlashes() *cobra.Command {
	return netCommand(c, "slashes", "List what was taken from stakes, and why", `List what was taken from stakes: from the
account of a folder (--home), also over broken promises of uptime, or, with --network alone, from everybody in every
job.

With -o json: {"slashes":[as of starling job explain]}.`, `  starling account stake slashes --network http://127.0.0.1:26601
  starling account stake slashes --home net/worker-0 -o jsonl`,
		"slashes", func(ctx context.Context, t *target) ([]rundir.Explanation, error) {
			return inspect.Slashes(ctx, t.network, t.account)
		},
		func(e rundir.Explanation) string { return strconv.FormatUint(e.Seq, 10) },
		[]string{"JOB", "ROUND", "UNIT", "WHO", "AMOUNT", "WHY", "+HEIGHT"},
		func(e rundir.Explanation) []any {
			return []any{e.Job, e.Round, e.Unit, e.Who, terminal.Zen(e.Amount), e.Why, e.Height}
		})
}
