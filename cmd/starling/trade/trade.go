// Package trade has the commands that sell and buy the files of models over a network. The rules are those of
// protocol/sale, and both sides are in node/sale.
package trade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/sale"
)

// Commands are those of starling model that sell and buy.
func Commands(c *terminal.Console) []*cobra.Command {
	return []*cobra.Command{sellCommand(c), salesCommand(c), buyCommand(c)}
}

// Percent is the coin, so to say, in which millionths of a whole are percents.
var Percent = coin.Coin{Denom: "%", Symbol: "%", Exponent: 4}

// Listed is an offer for programs.
type Listed struct {
	Offer     uint64   `json:"offer"`
	Name      string   `json:"name"`
	Job       string   `json:"job,omitempty"`
	Listing   uint64   `json:"listing,omitempty"`
	Part      string   `json:"seller_part_percent,omitempty"` // of the part of the price of the shares of the listing
	Seller    string   `json:"seller"`
	Coin      string   `json:"coin"`
	Price     string   `json:"price"` // in coins
	Bond      string   `json:"bond"`
	Bytes     uint64   `json:"bytes"`
	Answer    uint32   `json:"answer_blocks"`
	Complaint uint32   `json:"complaint_blocks"`
	Open      uint32   `json:"open"`
	Sold      uint32   `json:"sold"`
	Proof     bool     `json:"proof"` // drawn leaves may be opened, with a proof
	Status    string   `json:"status"`
	Locations []string `json:"locations"`
}

// status of an offer.
func status(o sale.Offer) string {
	switch {
	case o.Lied:
		return "lied"
	case o.Withdrawn:
		return "withdrawn"
	}
	return "open"
}

func salesCommand(c *terminal.Console) *cobra.Command {
	var all bool
	cmd := target.ListCommand(c, "sales", "List the models that are for sale on a network",
		`List the offers of files on a network, the latest first: what starling model sell offers. SOLD counts the orders
that were paid. A seller of whom a buyer showed a lie is "lied" with --all.

With -o json: {"sales":[{"offer","name","job","listing","seller_part_percent","seller","coin","price","bond",`+
			`"bytes","answer_blocks","complaint_blocks","open","sold","proof","status","locations"}]}. proof says that drawn
leaves can be opened with a proof (starling model buy --proof).`,
		`  starling model sales --network http://127.0.0.1:26601`, "sales",
		func(ctx context.Context, t *target.Target) ([]Listed, error) { return list(ctx, t.Network, all) },
		func(l Listed) string { return fmt.Sprint(l.Offer) },
		[]string{"OFFER", "NAME", "PRICE", "BOND", "SIZE", "SOLD", "STATUS", "+SELLER", "+JOB", "+LISTING",
			"+LOCATIONS"},
		func(l Listed) []any {
			return []any{l.Offer, l.Name, l.Price + " " + l.Coin, l.Bond, terminal.Bytes(l.Bytes), l.Sold, l.Status, l.Seller,
				l.Job, l.Listing, strings.Join(l.Locations, ", ")}
		})
	cmd.Flags().BoolVar(&all, "all", false, "also offers that take no new orders")
	return cmd
}

func list(ctx context.Context, network string, all bool) ([]Listed, error) {
	return inspect.Query(ctx, network, func(ctx context.Context, cl *client.Client) ([]Listed, error) {
		coins, err := cl.Market.ByDenom(ctx)
		if err != nil {
			return nil, err
		}
		offers, err := cl.Sale.Offers(ctx, all)
		listed := []Listed{}
		for _, o := range offers {
			t, in := o.Terms, coins[o.Terms.Denom]
			l := Listed{Offer: o.ID, Name: t.Name, Job: t.Job, Listing: t.Listing, Seller: o.Seller, Coin: in.Name(),
				Price: in.Amount(t.Price), Bond: in.Amount(t.Bond), Bytes: t.Content.Bytes, Answer: t.Answer,
				Complaint: t.Complaint, Open: o.Open, Sold: o.Sold, Proof: len(o.Drawing) > 0, Status: status(o),
				Locations: t.Locations}
			if t.Listing > 0 {
				l.Part = Percent.Amount(uint64(t.SellerPart))
			}
			listed = append(listed, l)
		}
		return listed, err
	})
}

// Explain explains the errors of node/sale.
func Explain(err error) error {
	return cause.Step(err, map[string]int{fault.BadFolder: terminal.ExitUsage, fault.BadIndex: terminal.ExitVerification,
		fault.BadSealed: terminal.ExitVerification, fault.BadOpening: terminal.ExitVerification,
		fault.BadBox: terminal.ExitVerification,
		fault.Exists: terminal.ExitConflict, fault.Unreachable: terminal.ExitUnreachable,
		fault.Closed: terminal.ExitConflict, fault.Late: terminal.ExitVerification,
		fault.OtherOffer: terminal.ExitConflict, fault.Disk: terminal.ExitFailure})
}

// noKey explains an error of the keys of proofs of sales.
func noKey(err error) error {
	if !errors.Is(err, opening.ErrKey) && !errors.Is(err, ceremony.ErrSetup) {
		return err
	}
	return terminal.WithExit(&terminal.Problem{Code: "PROOF_KEY", What: err.Error(),
		Fix: "name keys of a setup for sales: starling model proof setup start --leaves 256"}, terminal.ExitUsage)
}

// Steps returns a function that writes a line to stderr when a step begins.
func Steps(c *terminal.Console) func(step string, done, total int64) {
	last := ""
	return func(step string, _, total int64) {
		if step != last && !c.Quiet {
			fmt.Fprintf(os.Stderr, "%s (%s)\n", step, terminal.Bytes(uint64(total)))
		}
		last = step
	}
}
