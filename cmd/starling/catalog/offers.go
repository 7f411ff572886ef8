package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/catalog"
)

// Offered is an offer of shares for programs.
type Offered struct {
	Offer  uint64 `json:"offer"`
	Job    string `json:"job"`
	Seller string `json:"seller"`
	Shares uint64 `json:"shares"`
	Left   uint64 `json:"left"`
	Coin   string `json:"coin"`
	Price  string `json:"price"` // of one share, in coins
	All    string `json:"price_of_left"`
}

func offerCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var price string
	cmd := &cobra.Command{
		Use:   "offer JOB SHARES --price AMOUNT --home DIR",
		Short: "Offer shares of the revenue of a model for coins",
		Long: `Offer shares of the model of a job, or of listing/NUMBER, for a price of each share, in ZEN or in another coin
of the network with its symbol. The network holds the shares until they are bought or withdrawn. Their revenue until
then is the seller's, who claims it as before.

With -o json: {"offer","job","seller","shares","left","coin","price","price_of_left"}.`,
		Example: `  starling model catalog offer job-7f3a 250000 --price 0.001usdc --home net/consumer`,
		Args:    usage.Exactly("JOB", "SHARES"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shares, err := wantShares(cmd, args[1])
			if err != nil {
				return err
			}
			if price == "" {
				return usage.Error(cmd, errors.New("--price is needed: of one share, such as 0.001usdc"))
			}
			if err := target.WantCoins(cmd, price); err != nil {
				return err
			}
			return change(c, cmd, &t, func(ctx context.Context, cl *client.Client) (uint64, string, error) {
				each, err := coins.Parse(ctx, cl.Market, price)
				if err != nil {
					return 0, "", err
				}
				id, err := cl.Catalog.OfferShares(ctx, args[0], shares, each.Grains, each.Denom)
				return id, fmt.Sprintf("offer %d: %d shares of %s for %s each", id, shares, args[0], each), err
			})
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&price, "price", "", "price of one share, such as 0.5 or 0.001usdc")
	return cmd
}

func buyCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "buy OFFER SHARES --home DIR",
		Short: "Buy shares of the revenue of a model",
		Long: `Buy shares of an offer of starling model catalog offers, some or all. The seller gets the price and the buyer
the shares in one transaction. Revenue that is paid from then on is the buyer's.

With -o json: the offer as it is then, as starling model catalog offer prints it.`,
		Example: `  starling model catalog buy 3 100000 --home net/buyer`,
		Args:    usage.Exactly("OFFER", "SHARES"),
		RunE: func(cmd *cobra.Command, args []string) error {
			offer, err := wantOffer(cmd, args[0])
			if err != nil {
				return err
			}
			shares, err := wantShares(cmd, args[1])
			if err != nil {
				return err
			}
			return change(c, cmd, &t, func(ctx context.Context, cl *client.Client) (uint64, string, error) {
				o, err := cl.Catalog.ShareOffer(ctx, offer)
				if err != nil {
					return 0, "", err
				}
				in, err := cl.Market.Coin(ctx, o.Denom)
				if err != nil {
					return 0, "", err
				}
				paid, err := cl.Catalog.BuyShares(ctx, offer, shares)
				return offer, fmt.Sprintf("%d shares of %s for %s", shares, o.Pool, in.Text(paid)), err
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

func withdrawCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	cmd := &cobra.Command{
		Use:   "withdraw OFFER --home DIR",
		Short: "Take shares back that are offered and not bought",
		Long: `Take the shares of an offer back that are not bought.

With -o json: the offer as it is then, as starling model catalog offer prints it.`,
		Example: `  starling model catalog withdraw 3 --home net/consumer`,
		Args:    usage.Exactly("OFFER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			offer, err := wantOffer(cmd, args[0])
			if err != nil {
				return err
			}
			return change(c, cmd, &t, func(ctx context.Context, cl *client.Client) (uint64, string, error) {
				n, err := cl.Catalog.WithdrawShares(ctx, offer)
				return offer, fmt.Sprintf("%d shares of offer %d came back", n, offer), err
			})
		},
	}
	t.Flags(cmd)
	return cmd
}

// change lets the account of a folder change an offer, and shows it after that.
func change(c *terminal.Console, cmd *cobra.Command, t *target.Target,
	do func(context.Context, *client.Client) (offer uint64, said string, err error)) error {
	var said string
	var o Offered
	err := t.Act(cmd, "the folder of the account", func(ctx context.Context, cl *client.Client) error {
		id, text, err := do(ctx, cl)
		if err != nil {
			return err
		}
		said = text
		left, err := cl.Catalog.ShareOffer(ctx, id)
		if err != nil {
			return err
		}
		o, err = shown(ctx, cl, left)
		return err
	})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(o, fmt.Sprint(o.Offer)))
	}
	_, err = fmt.Println(said)
	return err
}

func shown(ctx context.Context, cl *client.Client, o catalog.ShareOffer) (Offered, error) {
	in, err := cl.Market.Coin(ctx, o.Denom)
	return Offered{Offer: o.ID, Job: o.Pool, Seller: o.Seller, Shares: o.Shares, Left: o.Left, Coin: in.Name(),
		Price: in.Amount(o.Price), All: in.Amount(o.Left * o.Price)}, err
}

// wantOffer reads the number of an offer.
func wantOffer(cmd *cobra.Command, text string) (uint64, error) {
	offer, err := strconv.ParseUint(text, 10, 64)
	if err != nil || offer == 0 {
		return 0, usage.Error(cmd, fmt.Errorf("%q is no number of an offer; starling model catalog offers lists them", text))
	}
	return offer, nil
}

func offersCommand(c *terminal.Console) *cobra.Command {
	var all bool
	cmd := target.ListCommand(c, "offers", "List the shares of models that are offered for coins",
		`List the offers of shares on a network, the latest first. LEFT is how many shares can be bought.

With -o json: {"offers":[{"offer","job","seller","shares","left","coin","price","price_of_left"}]}.`,
		`  starling model catalog offers --network http://127.0.0.1:26601`, "offers",
		func(ctx context.Context, t *target.Target) ([]Offered, error) {
			return inspect.Query(ctx, t.Network, func(ctx context.Context, cl *client.Client) ([]Offered, error) {
				offers, err := cl.Catalog.ShareOffers(ctx, all)
				list := []Offered{}
				for _, o := range offers {
					shown, err := shown(ctx, cl, o)
					if err != nil {
						return nil, err
					}
					list = append(list, shown)
				}
				return list, err
			})
		},
		func(o Offered) string { return fmt.Sprint(o.Offer) },
		[]string{"OFFER", "JOB", "LEFT", "PRICE", "ALL LEFT", "+SHARES", "+SELLER"},
		func(o Offered) []any {
			return []any{o.Offer, o.Job, o.Left, o.Price + " " + o.Coin, o.All + " " + o.Coin, o.Shares, o.Seller}
		})
	cmd.Flags().BoolVar(&all, "all", false, "also offers without shares that are left")
	return cmd
}
