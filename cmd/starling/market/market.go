// Package market is starling market: commands that show what is offered and asked on a network, and offer. How orders
// are matched is in protocol/market.
package market

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/cmd/starling/arena"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/committee"
	"github.com/starling-network/starling/cmd/starling/jobfile"
	"github.com/starling-network/starling/cmd/starling/quote"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
)

// Command is starling market.
func Command(c *terminal.Console) *cobra.Command {
	return usage.Group("market", "See what is offered and asked on a network, and offer",
		`See the offers and the open orders of a network, what would become of a job there, and offer work.
docs/market.md says how they are matched and what is paid.`,
		quoteCommand(c), offerCommand(c), priceCommand(c), offersCommand(c), ordersCommand(c), nodesCommand(c),
		coinsCommand(c), arena.Command(c), committee.Command(c))
}

func quoteCommand(c *terminal.Console) *cobra.Command {
	var network string
	var set []string
	cmd := &cobra.Command{
		Use:   "quote JOB.yaml --network URL",
		Short: "Say who would train a job, for how much and how long",
		Long: `Say what would become of a job on a network now: the offers whose seats would be drawn and how likely each is,
the price, the time that the training takes at the measured rates, and of every other offer why it cannot be drawn.
Nothing is ordered. A beacon that is not known before draws the seats, in proportion to stake, and all of a role are
paid the highest price that one of them asks. If the job would wait, the exit code is 7, or 6 if it is its budget that
is too small.

With -o json: {"job","matched","why","round_uzen","likely_uzen","whole_uzen","budget_uzen","work_price","audit_price",
"seconds","members":[{"id","role","price","class","region","odds"}],
"others":[{"id","role","price","class","region","why","text"}]}.`,
		Example: `  starling market quote examples/quickstart.yaml --network http://127.0.0.1:26601
  starling market quote job.yaml --network http://127.0.0.1:26601 --set resources.placement.regions=[eu]`,
		Args: usage.Exactly("JOB.yaml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			j, err := jobfile.Load(cmd.Context(), c, args[0], set)
			if err != nil {
				return err
			}
			q, err := plan.QuoteJob(cmd.Context(), j, network)
			if err != nil {
				return cause.Train(err)
			}
			if c.Form.Machine() {
				err = c.Form.Print(os.Stdout, terminal.One(q, q.Job))
			} else {
				err = quote.Print(q)
			}
			return errors.Join(err, quote.Placed(q))
		},
	}
	target.NetworkFlag(cmd, &network)
	cmd.Flags().StringArrayVar(&set, "set", nil, "change a key of the job file: KEY=VALUE (repeatable)")
	return cmd
}

// seats is how many workers an order asks for.
func seats(least, most uint32) string {
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// devices are accelerators in words, as starling worker up takes them.
func devices(n uint32, model string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", model, n)
}

func offersCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "offers", "List the offers, with the known properties of their machines",
		`List the offers of a network
as they are matched: those of pools one for each member, with the class, place and tier of its machine, and the
slots that are left.

With -o json: {"offers":[{"id","role","price","slots","since","class","tier","memory_mib",`+
			`"upload_kbps","disk_mib","cpus",
"accelerators","accelerator_model","audits_passed","region","jurisdiction","domain",`+
			`"attested","rate","latency_ms","cover_uzen","coin":{"denom","symbol","decimals"}}]}. An offer that takes several
coins is listed for each.`,
		`  starling market offers --network http://127.0.0.1:26601`,
		"offers", func(ctx context.Context, t *target.Target) ([]Offered, error) {
			lots, err := inspect.MarketOffers(ctx, t.Network)
			return offersOf(lots), err
		},
		func(o Offered) string { return o.ID },
		[]string{"ACCOUNT", "ROLE", "A PFLOP", "HOUR", "SLOTS", "CLASS", "TIER", "REGION", "JURISDICTION", "MEMORY",
			"+GFLOP/S", "+CPUS", "+ACCELERATORS", "+DISK", "+AUDITS PASSED", "+UPLOAD", "+LATENCY", "+DOMAIN", "+ATTESTED",
			"+COVER", "+SINCE HEIGHT"},
		func(o Offered) []any {
			return []any{o.ID, o.Role, o.Coin.Text(o.Price), hour(o), o.Slots,
				o.Class, o.Tier, o.Region, o.Jurisdiction, unit(o.Memory, "MiB"),
				terminal.Gigaflops(o.Rate), o.Cores, devices(o.Devices, o.Model), unit(o.Disk, "MiB"), o.Passed,
				unit(o.Upload, "kbit/s"),
				unit(uint64(o.Latency), "ms"), o.Domain, o.Attested, o.Coin.Text(o.Cover), o.Since}
		})
}

// hour is the price of an hour of the machine of an offer; nothing if it was never measured.
func hour(o Offered) string {
	if price := cost.Hourly(o.Price, o.Rate); price > 0 {
		return o.Coin.Text(price)
	}
	return ""
}

func coinsCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "coins", "List the coins in which orders may be placed",
		`List the coins in which a network
takes orders: its own, and those that governance registered (starling network gov coin). The budget of a job, its
prices, its pay, its fee and its refund are in one coin. Amounts in JSON are grains: the smallest amounts that the
network counts.

With -o json: {"coins":[{"symbol","denom","decimals","waiting","closed"}]}.`,
		`  starling market coins --network http://127.0.0.1:26601`,
		"coins", func(ctx context.Context, t *target.Target) ([]coin.Registered, error) {
			return inspect.MarketCoins(ctx, t.Network)
		},
		func(r coin.Registered) string { return r.Name() },
		[]string{"COIN", "DECIMALS", "AN ORDER PAYS AT LEAST", "ORDERS", "DENOMINATION"},
		func(r coin.Registered) []any {
			decimals, denom, state := r.Exponent, r.Denom, "taken"
			if r.Own() {
				decimals, denom = uint32(r.Digits()), adapter.Denom
			}
			if r.Closed {
				state = "no new ones"
			}
			return []any{r.Name(), decimals, r.Text(r.Waiting), state, denom}
		})
}

// unit is a quantity that is not known where it is 0.
func unit(n uint64, of string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n, " ", of)
}

func ordersCommand(c *terminal.Console) *cobra.Command {
	return target.ListCommand(c, "orders", "List the open orders, and why each waits",
		`List the orders of a network that are not
matched yet, and why each waits.

With -o json: {"orders":[{"job","consumer","budget_uzen","price_cap","workers","most_workers","verifiers","since",
"expires","why","coin":{"denom","symbol","decimals"}}]}.`, `  starling market orders --network http://127.0.0.1:26601`,
		"orders", func(ctx context.Context, t *target.Target) ([]Ordered, error) {
			orders, err := inspect.MarketOrders(ctx, t.Network)
			return ordersOf(orders), err
		},
		func(o Ordered) string { return o.Job },
		[]string{"JOB", "BUDGET", "MOST A PFLOP", "WORKERS", "WAITS BECAUSE", "+VERIFIERS", "+SINCE HEIGHT",
			"+UNTIL HEIGHT", "+CONSUMER"},
		func(o Ordered) []any {
			return []any{o.Job, o.Coin.Text(o.Budget), o.Coin.Text(o.PriceCap), seats(o.Workers, o.Most),
				market.Reason(o.Why).Text(), o.Verifiers, o.Since, terminal.Whole(o.Expires), o.Consumer}
		})
}
