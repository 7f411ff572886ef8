package market

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
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/run/crew"
)

func offerCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var o inspect.OfferSpec
	var role, hourly string
	cmd := &cobra.Command{
		Use:   "offer --home DIR --price UZEN|--hourly ZEN|--price-in COIN=AMOUNT",
		Short: "Offer work, by the operation, by the hour, or for a pool",
		Long: `Offer the work of the account of a folder, in place of its offer before: at a price in uzen for 10^15
floating-point operations, or in ZEN for an hour of its machine, which the chain translates at the rate that was
measured. With --pool the offer is for every worker that named the account (starling worker up --pool) and has no offer
of its own; the account needs no machine. --slots 0 withdraws the offer. starling worker up makes its own offer again
when it starts.

With --price-in and --hourly-in, which may be repeated, it takes orders in other coins, too, each at a price of its own:
in coins for 10^15 operations, or for an hour. With --no-zen it takes these alone. An order in another coin is backed
by a stake in this coin (starling account stake add 5usdc).

With -o json: {"offers":[as of starling market offers, of this account or its pool]}.`,
		Example: `  starling market offer --home net/worker-0 --hourly 0.4
  starling market offer --home net/pool --pool --price 800000000 --slots 2
  starling market offer --home net/worker-0 --price 800000000 --price-in usdc=0.002
  starling market offer --home net/worker-0 --slots 0`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Class = crew.ClassNamed(role); o.Class == 0 {
				return usage.Error(cmd, fmt.Errorf("--role %s: use worker, verifier or generator", role))
			}
			if hourly != "" {
				if o.Hourly, err = target.WantAmount(cmd, hourly); err != nil {
					return err
				}
			}
			switch priced := o.Price > 0; {
			case o.Prices.Foreign && (priced || hourly != "" || len(o.Prices.Operations)+len(o.Prices.Hours) == 0):
				return usage.Error(cmd, errors.New("--no-zen offers work at the prices of --price-in and --hourly-in alone"))
			case o.Prices.Foreign:
			case priced && hourly != "":
				return usage.Error(cmd, errors.New("--price and --hourly are given: one of them is the price"))
			case !priced && hourly == "" && o.Slots > 0:
				return usage.Error(cmd, errors.New("--price or --hourly is needed"))
			case o.Pool && (hourly != "" || o.Class != crew.Worker):
				return usage.Error(cmd, errors.New("a pool offers workers, at a --price: their machines are not alike"))
			}
			var mine []inspect.MarketOffer
			err = t.Act(cmd, "the folder of the account that offers", func(ctx context.Context, cl *client.Client) (err error) {
				mine, err = inspect.Offer(ctx, cl, o)
				return err
			})
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.Items("offers", offersOf(mine), func(o Offered) string { return o.ID }))
			}
			if len(mine) == 0 {
				_, err = fmt.Println("nothing of it can be matched now")
				return err
			}
			w := terminal.NewColumns(os.Stdout, c.Form, "ACCOUNT", "ROLE", "A PFLOP", "HOUR", "SLOTS")
			for _, l := range offersOf(mine) {
				w.Row(l.ID, l.Role, l.Coin.Text(l.Price), hour(l), l.Slots)
			}
			return w.Flush()
		},
	}
	t.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&role, "role", "worker", "class of work: worker, verifier, or generator (draws answers for others)")
	f.Uint64Var(&o.Price, "price", 0, "uzen for 10^15 floating-point operations")
	f.StringVar(&hourly, "hourly", "", "ZEN for an hour of the machine, at its measured rate")
	f.Uint32Var(&o.Slots, "slots", 1, "runs at a time, of each; 0 withdraws the offer")
	f.StringArrayVar(&o.Prices.Operations, "price-in", nil, "a price in another coin for 10^15 operations, as usdc=0.002 "+
		"(repeatable)")
	f.StringArrayVar(&o.Prices.Hours, "hourly-in", nil, "a price in another coin for an hour of the machine (repeatable)")
	f.BoolVar(&o.Prices.Foreign, "no-zen", false, "take orders in these coins alone, and none in ZEN")
	f.BoolVar(&o.Pool, "pool", false, "offer for the workers that named the account as their pool")
	return cmd
}
