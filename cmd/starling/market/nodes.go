package market

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
)

func priceCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "price", "Say what work costs on a network",
		`Say what is asked for work, by role: the lowest, the
median and the highest price of the offers, and what an hour of the median measured machine costs. Prices are in ZEN
per PFLOP, 10^15 floating-point operations; with -o json in uzen. starling market quote says what a job would cost.

With -o json: {"prices":[{"role","offers","slots","lowest","median","highest","hourly_uzen"}]}.`,
		`  starling market price --network http://127.0.0.1:26601`,
		"prices", func(ctx context.Context, t *target.Target) ([]inspect.Prices, error) {
			return inspect.MarketPrices(ctx, t.Network)
		},
		func(p inspect.Prices) string { return p.Role },
		[]string{"ROLE", "OFFERS", "SLOTS", "LOWEST", "MEDIAN", "HIGHEST", "HOUR"},
		func(p inspect.Prices) []any {
			return []any{p.Role, p.Offers, p.Slots, terminal.Zen(p.Lowest), terminal.Zen(p.Median), terminal.Zen(p.Highest),
				terminal.OptionalZen(p.Hourly)}
		})
}

func nodesCommand(c *terminal.Console) *cobra.Command {
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
		[]string{"ACCOUNT", "ROLES", "CLASS", "GFLOP/S", "ZEN/PFLOP", "OFFERS", "STAKE", "JAILED", "WORKS FOR", "+DEVICE"},
		func(p api.Participant) []any {
			return []any{p.ID, strings.Join(p.Roles, ", "), p.Class, terminal.Gigaflops(p.Rate), terminal.Zen(p.Price), p.Offers,
				terminal.Zen(p.Stake), p.Jailed, strings.Join(p.Jobs, ", "), p.Device}
		})
}
