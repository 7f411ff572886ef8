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
median and the highest price of the offers, and what an hour of the median measured machine costs. Prices are per
PFLOP, 10^15 floating-point operations, and those in one coin are in lines of their own; with -o json they are in uzen,
or in grains of the coin. starling market quote says what a job would cost.

With -o json: {"prices":[{"role","offers","slots","lowest","median","highest","hourly_uzen",
"coin":{"denom","symbol","decimals"}}]}.`,
		`  starling market price --network http://127.0.0.1:26601`,
		"prices", func(ctx context.Context, t *target.Target) ([]inspect.Prices, error) {
			return inspect.MarketPrices(ctx, t.Network)
		},
		func(p inspect.Prices) string {
			if p.Coin.Own() {
				return p.Role
			}
			return p.Role + "/" + p.Coin.Name()
		},
		[]string{"ROLE", "OFFERS", "SLOTS", "LOWEST", "MEDIAN", "HIGHEST", "HOUR"},
		func(p inspect.Prices) []any {
			return []any{p.Role, p.Offers, p.Slots, p.Coin.Text(p.Lowest), p.Coin.Text(p.Median), p.Coin.Text(p.Highest),
				terminal.Optional(p.Coin, p.Hourly)}
		})
}

func nodesCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "nodes", "List the participants of a network, with their machines",
		`List the participants of a
network: their roles, machines as they were measured, prices, stakes and the jobs that they work for.

With -o json: {"nodes":[{"id","roles","price","offers","stake_uzen","jailed","jobs","device","class","rate",
"asks":[{"price","coin":{"denom","symbol","decimals"}}]}]}. Prices in ZEN are in "price", those in other coins
in "asks".`,
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
		[]string{"ACCOUNT", "ROLES", "CLASS", "GFLOP/S", "A PFLOP", "OFFERS", "STAKE", "JAILED", "WORKS FOR", "+DEVICE"},
		func(p api.Participant) []any {
			return []any{p.ID, strings.Join(p.Roles, ", "), p.Class, terminal.Gigaflops(p.Rate), target.Asks(p), p.Offers,
				terminal.Zen(p.Stake), p.Jailed, strings.Join(p.Jobs, ", "), p.Device}
		})
}
