// Package catalog has the commands about the revenue of models: their shares, the market of shares, and the listings
// with licences and royalties. The rules are those of protocol/reward and protocol/catalog.
package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/trade"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/catalog"
)

// Commands are those of starling model that are about revenue.
func Commands(c *terminal.Console) []*cobra.Command {
	group := &cobra.Command{
		Use:   "catalog",
		Short: "List models and data sets with licences and royalties, and sell shares of revenue",
		Long: `List models and data sets on a network with their licence, the works that they were made from, and the
royalty that works made from them owe. Revenue of a listed work, by starling model pay, starling model sell --listing
and hosting, is divided by itself: parents get their royalties, of which their parents get theirs, and the holders of
shares the rest. Shares are sold for any coin of the network. docs/market.md has the rules.`,
		Example: `  starling model catalog add out/quickstart --title "Quickstart" --licence Apache-2.0 --royalty 5 \
    --home net/consumer
  starling model catalog list --network http://127.0.0.1:26601
  starling model catalog lineage 7 --network http://127.0.0.1:26601
  starling model catalog offer job-7f3a 250000 --price 0.001usdc --home net/consumer`,
		Args: usage.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(addCommand(c), listCommand(c), lineageCommand(c), offerCommand(c), offersCommand(c), buyCommand(c),
		withdrawCommand(c))
	return []*cobra.Command{group, sharesCommand(c), payCommand(c), claimCommand(c), transferCommand(c)}
}

// Royalty of a work for programs.
type Royalty struct {
	Listing uint64 `json:"listing"`
	Royalty string `json:"royalty_percent"`
	Known   bool   `json:"known"`
}

// Listed is a listing for programs.
type Listed struct {
	Listing uint64    `json:"listing"`
	Owner   string    `json:"owner"`
	Height  int64     `json:"height"`
	Kind    string    `json:"kind"`
	Title   string    `json:"title"`
	Licence string    `json:"licence"`
	Text    string    `json:"licence_text,omitempty"` // digest
	Files   string    `json:"files"`                  // digest
	Job     string    `json:"job,omitempty"`
	Shares  string    `json:"shares"` // the name of its shares: JOB of starling model shares
	Royalty string    `json:"royalty_percent"`
	Parents []Royalty `json:"parents"`
	Digests []string  `json:"digests"`
}

func listed(l catalog.Listing) Listed {
	t := l.Terms
	shown := Listed{Listing: l.ID, Owner: l.Owner, Height: l.Height, Kind: string(t.Kind), Title: t.Title,
		Licence: t.Licence.Name, Files: t.Files.String(), Job: t.Job, Shares: l.Pool(),
		Royalty: trade.Percent.Amount(uint64(t.Royalty)), Parents: []Royalty{}, Digests: []string{}}
	if !t.Licence.Text.IsZero() {
		shown.Text = t.Licence.Text.String()
	}
	for _, p := range l.Parents {
		shown.Parents = append(shown.Parents, Royalty{p.Listing, trade.Percent.Amount(uint64(p.Royalty)), p.Known})
	}
	for _, d := range t.Digests {
		shown.Digests = append(shown.Digests, d.String())
	}
	return shown
}

func listCommand(c *terminal.Console) *cobra.Command {
	var parent uint64
	cmd := target.ListCommand(c, "list", "List the models and data sets of a network",
		`List the models and data sets that are listed on a network, the latest first, with their licences and the royalty
that works made from them owe. --parent lists those that were made from one. MADE FROM is the numbers of the works that
a work was made from; starling model catalog lineage shows them.

With -o json: {"listings":[{"listing","owner","height","kind","title","licence","licence_text","files","job","shares",`+
			`"royalty_percent","parents":[{"listing","royalty_percent","known"}],"digests"}]}.`,
		`  starling model catalog list --network http://127.0.0.1:26601
  starling model catalog list --parent 7 --network http://127.0.0.1:26601 -o json`, "listings",
		func(ctx context.Context, t *target.Target) ([]Listed, error) {
			return inspect.Query(ctx, t.Network, func(ctx context.Context, cl *client.Client) ([]Listed, error) {
				all, err := cl.Catalog.Listings(ctx, parent)
				shown := []Listed{}
				for _, l := range all {
					shown = append(shown, listed(l))
				}
				return shown, err
			})
		},
		func(l Listed) string { return fmt.Sprint(l.Listing) },
		[]string{"LISTING", "KIND", "TITLE", "LICENCE", "ROYALTY", "MADE FROM", "+SHARES", "+OWNER", "+FILES"},
		func(l Listed) []any {
			from := []string{}
			for _, p := range l.Parents {
				from = append(from, fmt.Sprint(p.Listing))
			}
			return []any{l.Listing, l.Kind, l.Title, l.Licence, l.Royalty + " %", strings.Join(from, ", "), l.Shares,
				l.Owner, l.Files}
		})
	cmd.Flags().Uint64Var(&parent, "parent", 0, "only works that were made from this listing")
	return cmd
}
