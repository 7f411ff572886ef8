package trade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	nodesale "github.com/starling-network/starling/node/sale"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/coin"
)

// Purchase is the end of a purchase for programs.
type Purchase struct {
	Offer    uint64        `json:"offer"`
	Order    uint64        `json:"order"`
	Outcome  nodesale.Kind `json:"outcome"` // bought, unanswered, lied
	Folder   string        `json:"folder,omitempty"`
	Coin     string        `json:"coin"`
	Price    string        `json:"price"`
	Returned string        `json:"returned"` // with the bond of a seller that lied
	Leaf     *int64        `json:"leaf,omitempty"`
	Opened   int           `json:"opened_leaves,omitempty"` // that a proof showed before the payment
}

func buyCommand(c *terminal.Console) *cobra.Command {
	var t target.Target
	var to string
	var l limits
	cmd := &cobra.Command{
		Use:   "buy OFFER --to FOLDER --home DIR",
		Short: "Buy a model that is for sale on a network",
		Long: `Buy the files of an offer of starling model sales. The encrypted files are downloaded and compared with the
offer before anything is paid. The network holds the price until the seller has answered and the files could be
checked: without an answer, or if one part of the files is not what the offer says, the price comes back, and the
first buyer that shows a lie gets half of the bond. Run the command until it ends: a complaint counts within the blocks
that the offer gives for it, and an offer with fewer than --window is refused. The same command continues after an
interruption, and orders nothing twice.

With --proof nothing is paid before the seller shows that leaves which the network drew are those of the offer, and
that their keys follow from the key that is sold: a seller of garbage is found before it has a price to lose. KEY is the
verifying.key of a setup for sales of which you trust a contributor, or made it: starling model proof setup --help.

The offer says which bytes are sold, not what the model can do: docs/market.md says what to check before.

With -o json: {"offer","order","outcome","folder","coin","price","returned","leaf","opened_leaves"}; outcome is bought,
unanswered or lied, and the exit code 0, 7 or 10.`,
		Example: `  starling model buy 3 --to bought --home net/consumer
  starling model buy 3 --to bought --proof setup-of-sales/verifying.key --home net/consumer
  starling model buy 3 --to bought --most 30usdc --home net/consumer -o json`,
		Args: usage.Exactly("OFFER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			offer, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || offer == 0 {
				return usage.Error(cmd, fmt.Errorf("%q is no number of an offer; starling model sales lists them", args[0]))
			}
			if to == "" {
				return usage.Error(cmd, errors.New("--to is needed: the folder that the files go to"))
			}
			if l.most != "" {
				if err := target.WantCoins(cmd, l.most); err != nil {
					return err
				}
			}
			var p Purchase
			err = t.Act(cmd, "the folder of the account that buys", func(ctx context.Context, cl *client.Client) error {
				p, err = buy(ctx, c, cl, offer, filepath.Join(t.Home, "purchases", args[0]), to, l)
				return err
			})
			if err != nil {
				return Explain(err)
			}
			return p.print(c)
		},
	}
	t.Flags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "folder that the files go to: empty or missing")
	cmd.Flags().StringVar(&l.most, "most", "", "the most to pay, such as 30 or 30usdc (default: the price of the offer)")
	cmd.Flags().Uint32Var(&l.window, "window", 100, "the least number of blocks for a complaint")
	cmd.Flags().StringVar(&l.proof, "proof", "", "file of a verifying key: pay after a proof about drawn leaves "+
		"(default: without one)")
	return cmd
}

// limits are those of a buyer.
type limits struct {
	most   string
	window uint32 // blocks
	proof  string // file of a verifying key; "": it wants no proof
}

func buy(ctx context.Context, c *terminal.Console, cl *client.Client, id uint64, dir, to string,
	l limits) (Purchase, error) {
	offer, err := cl.Sale.Offer(ctx, id)
	if err != nil {
		return Purchase{}, err
	}
	in, err := cl.Market.Coin(ctx, offer.Terms.Denom)
	if err != nil {
		return Purchase{}, err
	}
	if err := within(ctx, cl, l.most, in, offer.Terms.Price); err != nil {
		return Purchase{}, err
	}
	if offer.Terms.Complaint < l.window {
		return Purchase{}, terminal.WithExit(&terminal.Problem{Code: "WINDOW",
			What: fmt.Sprintf("the offer gives %d blocks for a complaint", offer.Terms.Complaint),
			Why:  "files that are not checked by then are paid",
			Fix:  fmt.Sprintf("buy another offer, or give --window %d", offer.Terms.Complaint)}, terminal.ExitConflict)
	}
	var proofs *opening.Verifier
	if l.proof != "" {
		if proofs, err = ceremony.VerifyingOpenings(l.proof); err != nil {
			return Purchase{}, noKey(err)
		}
		if !c.Quiet {
			fmt.Fprintf(os.Stderr, "a proof about %d drawn leaves is wanted, by keys that claim %s\n", proofs.Leaves(),
				terminal.Counted(int(proofs.Key().Contributions), "contribution"))
		}
	}
	if !c.Quiet {
		fmt.Fprintf(os.Stderr, "%s for %s: the seller has %d blocks to answer, and a complaint %d\n", offer.Terms.Name,
			in.Text(offer.Terms.Price), offer.Terms.Answer, offer.Terms.Complaint)
		if proofs != nil {
			fmt.Fprintf(os.Stderr, "a proof about %d drawn leaves comes first, by keys to which %d parties contributed, as "+
				"their maker says\n", proofs.Leaves(), proofs.Key().Contributions)
		}
	}
	wait, err := client.Heights(ctx, cl)
	if err != nil {
		return Purchase{}, err
	}
	end, err := nodesale.Buyer{Market: cl.Sale, Address: cl.Address(), Offer: id, Dir: dir, To: to, Say: Steps(c),
		Openings: proofs, Next: func(ctx context.Context) error { _, err := wait(ctx); return err }}.Buy(ctx)
	p := Purchase{Offer: id, Order: end.Order, Outcome: end.Kind, Folder: end.Folder, Coin: in.Name(),
		Price: in.Amount(offer.Terms.Price), Returned: in.Amount(end.Amount), Opened: end.Opened}
	if proofs != nil && end.Order > 0 && end.Opened == 0 && !c.Quiet {
		fmt.Fprintln(os.Stderr, "an earlier command ordered without a proof: none was verified")
	}
	if end.Kind == nodesale.Lied {
		p.Leaf = &end.Leaf
	}
	return p, err
}

// within refuses a price above the most that the buyer pays.
func within(ctx context.Context, cl *client.Client, most string, in coin.Registered, price uint64) error {
	if most == "" {
		return nil
	}
	limit, err := coins.Parse(ctx, cl.Market, most)
	if err != nil {
		return err
	}
	if limit.Denom != in.Denom || limit.Grains < price {
		return terminal.WithExit(&terminal.Problem{Code: "PRICE", What: "the price is " + in.Text(price),
			Why: "--most is " + limit.String(), Fix: "raise --most, or buy another offer"}, terminal.ExitFunds)
	}
	return nil
}

// print prints the end of a purchase. One without the files fails.
func (p Purchase) print(c *terminal.Console) error {
	if c.Form.Machine() {
		if err := c.Form.Print(os.Stdout, terminal.One(p, fmt.Sprint(p.Order))); err != nil {
			return err
		}
	}
	switch p.Outcome {
	case nodesale.Unanswered:
		return terminal.WithExit(&terminal.Problem{Code: "SALE_UNANSWERED", What: "the seller did not answer",
			Why: fmt.Sprintf("%s %s came back", p.Returned, p.Coin), Fix: "buy from another seller"},
			terminal.ExitNoCapacity)
	case nodesale.Lied:
		part := "the key is not that of the offer"
		if p.Leaf != nil && *p.Leaf >= 0 {
			part = fmt.Sprintf("part %d of the files is not that of the offer", *p.Leaf)
		}
		return terminal.WithExit(&terminal.Problem{Code: "SALE_LIE", What: "the seller lied: " + part,
			Why: fmt.Sprintf("%s %s came back", p.Returned, p.Coin), Fix: "buy from another seller"},
			terminal.ExitVerification)
	}
	if !c.Form.Machine() {
		fmt.Printf("bought    offer %d, order %d\npaid      %s %s\nfiles     %s\n", p.Offer, p.Order, p.Price, p.Coin,
			p.Folder)
		if p.Opened > 0 {
			fmt.Printf("proof     of %d drawn leaves\n", p.Opened)
		}
	}
	return nil
}
