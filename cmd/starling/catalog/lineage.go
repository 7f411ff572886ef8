package catalog

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/trade"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/market"
)

// Node is a work in the lineage of another for programs.
type Node struct {
	Listing uint64 `json:"listing,omitempty"` // absent: the work is not listed
	Title   string `json:"title,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Licence string `json:"licence,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Shares  string `json:"shares"`
	Royalty string `json:"royalty_percent,omitempty"`     // of the revenue of the work that was made from it
	Part    string `json:"part_percent"`                  // of the revenue of the work that was asked for
	Known   bool   `json:"known"`                         // an order names the work; false: its owner does
	Proven  int    `json:"proven,omitempty"`              // layers with a proof about the work that was made from it
	Setup   uint32 `json:"setup_contributions,omitempty"` // the fewest that a key of one of these proofs claims
	Parents []Node `json:"parents"`
	More    bool   `json:"more,omitempty"` // it has parents, which get no part
}

// levels of parents that have a part of revenue.
const levels = 2

// million is the whole revenue.
const million = 1_000_000

func lineageCommand(c *terminal.Console) *cobra.Command {
	var network string
	cmd := &cobra.Command{
		Use:   "lineage WORK --network URL",
		Short: "Show what a work was made from, with licences and royalties",
		Long: `Show the works that a model or a data set was made from, two levels deep, with their licences, and the part of
the revenue of the work that each gets. WORK is the number of a listing, or a job. A parent is "known" if the order of
the job names a digest of it; the others are named by the owner. PROVEN is the number of layers of the parent about
which the network has verified a proof that was made for the owner, and the fewest contributions to a key of one, as the
maker of the key claims: with one, or if the claim is false, its maker forges proofs. The network runs no model and
checks no claim: starling model proof list names the keys, starling model proof check with the base model and setup
verify check the rest, and docs/proofs.md says what they show. Read the licences: the network checks none.

With -o json: {"listing","title","kind","licence","owner","shares","royalty_percent","part_percent","known","proven",
"setup_contributions","parents","more"}; parents are of the same form, and more says that a work has parents that get
no part.`,
		Example: `  starling model catalog lineage 7 --network http://127.0.0.1:26601
  starling model catalog lineage job-7f3a --network http://127.0.0.1:26601 -o json`,
		Args: usage.Exactly("WORK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := target.WantNetwork(cmd, network); err != nil {
				return err
			}
			n, err := inspect.Query(cmd.Context(), network,
				func(ctx context.Context, cl *client.Client) (Node, error) { return lineage(ctx, cl, args[0]) })
			if err != nil {
				return err
			}
			if c.Form.Machine() {
				return c.Form.Print(os.Stdout, terminal.One(n, n.Shares))
			}
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "WORK\tPART\tLICENCE\tSHARES\tKNOWN\tPROVEN")
			n.Write(w, 0)
			return w.Flush()
		},
	}
	target.NetworkFlag(cmd, &network)
	return cmd
}

// Write writes a row of a table, and below it, deeper, those of the parents.
func (n Node) Write(w io.Writer, depth int) {
	known := ""
	if n.Known {
		known = "by its order"
	}
	name := terminal.Printable(n.Title)
	if n.Listing > 0 {
		name = fmt.Sprintf("%d %s", n.Listing, name)
	}
	proven := ""
	if n.Proven > 0 {
		proven = fmt.Sprintf("%s, %s claimed", terminal.Counted(n.Proven, "layer"),
			terminal.Counted(int(n.Setup), "contribution"))
	}
	fmt.Fprintf(w, "%s%s\t%s %%\t%s\t%s\t%s\t%s\n", strings.Repeat("  ", depth), name, n.Part, n.Licence, n.Shares, known,
		proven)
	for _, p := range n.Parents {
		p.Write(w, depth+1)
	}
	if n.More {
		fmt.Fprintf(w, "%s...\t%s %%\t\t\t\t\n", strings.Repeat("  ", depth+1), trade.Percent.Amount(0))
	}
}

func lineage(ctx context.Context, cl *client.Client, work string) (Node, error) {
	id, err := strconv.ParseUint(work, 10, 64)
	if err != nil {
		id, _ = catalog.Number(work)
	}
	if id > 0 {
		l, err := cl.Catalog.Listing(ctx, id)
		if err != nil {
			return Node{}, err
		}
		return grow(ctx, cl, l, l.Parents, million, 0)
	}
	l, parents, err := cl.Catalog.OfJob(ctx, work)
	if err != nil {
		return Node{}, err
	}
	if l.ID == 0 {
		l.Terms.Job, l.Terms.Title = work, work
	}
	return grow(ctx, cl, l, parents, million, 0)
}

// grow returns a work that gets some millionths of the revenue, with its parents.
func grow(ctx context.Context, cl *client.Client, l catalog.Listing, parents []catalog.Parent, part uint64,
	depth int) (Node, error) {
	n := Node{Listing: l.ID, Title: l.Terms.Title, Kind: string(l.Terms.Kind), Licence: l.Terms.Licence.Name,
		Owner: l.Owner, Shares: l.Pool(), Parents: []Node{}}
	if depth == levels {
		n.More, parents = len(parents) > 0, nil
	}
	proofs, err := proofsOf(ctx, cl, l.ID, len(parents))
	if err != nil {
		return n, err
	}
	left := part
	for _, p := range parents {
		of, err := cl.Catalog.Listing(ctx, p.Listing)
		if err != nil {
			return n, err
		}
		due := market.Share(part, p.Royalty)
		left -= due
		parent, err := grow(ctx, cl, of, of.Parents, due, depth+1)
		if err != nil {
			return n, err
		}
		parent.Royalty, parent.Known = trade.Percent.Amount(uint64(p.Royalty)), p.Known
		parent.Proven, parent.Setup = catalog.Layers(proofs, p.Listing)
		n.Parents = append(n.Parents, parent)
	}
	n.Part = trade.Percent.Amount(left)
	return n, nil
}

// proofsOf are the proofs about a listing, if it is one and has parents.
func proofsOf(ctx context.Context, cl *client.Client, listing uint64, parents int) ([]catalog.Proven, error) {
	if listing == 0 || parents == 0 {
		return nil, nil
	}
	return cl.Catalog.Proofs(ctx, listing)
}
