package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/trade"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/protocol/catalog"
)

// adding is what an owner says of a work.
type adding struct {
	target.Target
	title, licence, text, job, royalty string
	parents                            []uint
	digests, used                      []string
	data                               bool
}

func addCommand(c *terminal.Console) *cobra.Command {
	var o adding
	cmd := &cobra.Command{
		Use:   "add FOLDER --title TEXT --licence NAME --home DIR",
		Short: "List a model or a data set on a network",
		Long: `List the model in a folder, or with --data the data set of all its files, with its licence and the works that
it was made from. A listing has the digest of the files that starling model sell sells, and never changes. --licence is
an identifier of SPDX such as Apache-2.0, or a name that begins with LicenseRef- and --licence-text with the file of
its text.

--job names the job that trained the model, which the account ordered: its shares get the revenue. Without --job the
listing has a million shares of its own, which the account gets. --royalty is the part of the revenue of each work that
is made from this one, in percent, at most 50. Parents get the royalty that their listing had. While other accounts
have shares of --job, or some are offered, --parent takes works that its order names, or that have no royalty.

--digest makes orders of any account on this network name the work: the digest of the first checkpoint, of the frozen
weights or of the manifest of the data in the specification of an order that uses it. A job ordered 20 blocks later
with that digest owes the royalty. --used-by takes it from the output folder of a run that used the work: of the data
with --data, else of the weights that the run froze, or of the checkpoint that it started from. A digest that another
account ordered with before is refused: list a work before you order with it. docs/market.md says what this shows and
what not.

With -o json: the listing, as starling model catalog list prints it.`,
		Example: `  starling model catalog add out/quickstart --title "Quickstart" --licence Apache-2.0 --royalty 5 \
    --home net/consumer
  starling model catalog add out/tuned --title "Tuned" --licence Apache-2.0 --job job-7f3a --parent 7 \
    --home net/consumer
  starling model catalog add texts --data --title "Our texts" --licence LicenseRef-ours --licence-text LICENSE.txt \
    --home net/consumer`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			terms, err := o.terms(cmd)
			if err != nil {
				return err
			}
			for _, folder := range o.used {
				d, err := usedBy(cmd.Context(), folder, terms.Kind)
				if err != nil {
					return err
				}
				if !slices.Contains(terms.Digests, d) {
					terms.Digests = append(terms.Digests, d)
				}
			}
			return trade.Explain(o.add(cmd, c, args[0], terms))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.title, "title", "", "title of the work")
	f.StringVar(&o.licence, "licence", "", "identifier of SPDX, or a name that begins with LicenseRef-")
	f.StringVar(&o.text, "licence-text", "", "file with the text of a licence whose name begins with LicenseRef-")
	f.StringVar(&o.job, "job", "", "job that trained the model (default: none, and shares of its own)")
	f.StringVar(&o.royalty, "royalty", "0", "part of the revenue of works made from this one, in percent")
	f.UintSliceVar(&o.parents, "parent", nil, "listing that the work was made from; may be repeated")
	f.StringArrayVar(&o.digests, "digest", nil, "digest by which orders name the work; may be repeated")
	f.StringArrayVar(&o.used, "used-by", nil, "output folder of a run that used the work, for its digest; may be repeated")
	f.BoolVar(&o.data, "data", false, "all files of the folder, as a data set")
	return cmd
}

// terms reads the flags.
func (o *adding) terms(cmd *cobra.Command) (t catalog.Terms, err error) {
	t = catalog.Terms{Kind: catalog.Model, Title: o.title, Job: o.job, Licence: catalog.Licence{Name: o.licence},
		Files: canon.Sum("later")} // replaced once they are read; the other terms are checked before
	if o.data {
		t.Kind = catalog.Data
	}
	part, err := trade.Percent.Parse(o.royalty)
	if err != nil || part > catalog.MaxRoyalty {
		return t, usage.Error(cmd, fmt.Errorf("--royalty %q: give percents from 0 to 50, such as 2.5", o.royalty))
	}
	t.Royalty = uint32(part)
	if o.text != "" {
		text, err := os.ReadFile(o.text)
		if err != nil {
			return t, usage.Error(cmd, fmt.Errorf("--licence-text: %w", err))
		}
		t.Licence.Text = canon.Sum("starling/licence/1", text)
	}
	for _, text := range o.digests {
		var d canon.Digest
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return t, usage.Error(cmd, fmt.Errorf("--digest %q: %w", text, err))
		}
		t.Digests = append(t.Digests, d)
	}
	switch {
	case o.title == "" || o.licence == "":
		return t, usage.Error(cmd, errors.New("--title and --licence are needed"))
	case o.Home == "":
		return t, usage.Error(cmd, errors.New("--home is needed: the folder of the account that owns the work"))
	}
	if err := t.Validate(); err != nil {
		return t, usage.Error(cmd, err)
	}
	return t, nil
}

func (o *adding) add(cmd *cobra.Command, c *terminal.Console, folder string, terms catalog.Terms) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	source, err := trade.Source(path, o.data)
	if err != nil {
		return err
	}
	say := trade.Steps(c)
	if terms.Files, err = goods.Describe(cmd.Context(), source,
		func(done, total int64) { say("reads the files", done, total) }); err != nil {
		return err
	}
	parents := make([]uint64, len(o.parents))
	for i, p := range o.parents {
		parents[i] = uint64(p)
	}
	var l catalog.Listing
	err = o.Act(cmd, "the folder of the account that owns the work",
		func(ctx context.Context, cl *client.Client) error {
			id, err := cl.Catalog.List(ctx, terms, parents)
			if err != nil {
				return err
			}
			l, err = cl.Catalog.Listing(ctx, id)
			return err
		})
	if err != nil {
		return err
	}
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.One(listed(l), fmt.Sprint(l.ID)))
	}
	_, err = fmt.Printf("listing %d: %s; its shares are %s\n", l.ID, l.Terms.Title, l.Pool())
	return err
}
