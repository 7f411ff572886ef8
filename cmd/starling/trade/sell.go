package trade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/push/published"
	nodesale "github.com/starling-network/starling/node/sale"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/ceremony"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/protocol/sale"
)

// selling is what a seller asks for.
type selling struct {
	target.Target
	name, job, price, bond string
	listen                 string
	urls                   []string
	answer, complaint      uint32
	withdraw, data         bool
	listing                uint64
	part                   string
	proof                  string
}

func sellCommand(c *terminal.Console) *cobra.Command {
	var o selling
	cmd := &cobra.Command{
		Use:   "sell FOLDER --price AMOUNT --home DIR",
		Short: "Sell the model in a folder, with the network as the judge",
		Long: `Sell the files of the model in a folder, those that starling model push sends: encrypt them, offer them on a
network, serve the encrypted files at --listen, and answer orders until interrupted. Run the same command again to
continue. Keep it running: an order that is not answered within --answer-blocks gets its price back.

A buyer checks the encrypted files before it pays. The network holds the price until --complaint-blocks after the
answer. If one part of the files is not what the offer says, a buyer shows it to the network, and has the price and
half of the bond. docs/market.md has the rules, and what a buyer cannot know before it pays.

--url is where buyers reach --listen, or a copy of the files, such as a bucket. --withdraw takes no new orders and ends
when those that are open are settled. AMOUNT is in ZEN, or in another coin with its symbol, such as 25usdc.

--listing sells the files of a listing of the account (starling model catalog add): the price is revenue of the listing,
of which the works that it was made from get their royalties, and the holders of its shares the rest. --seller-part is
what the account keeps of this rest, in percent. --data sells all files of the folder, as a data set.

--proof names a setup for sales (starling model proof setup start --leaves N): buyers that ask for it get a proof before
they pay. After the offer the network draws N leaves of 4,096 bytes, and the seller publishes the keys of these leaves,
with a proof that they follow from the key that is sold. Everyone can read the drawn leaves, so a setup for more than a
tenth of the leaves of the files is refused.

The folder sales/ in --home has the key of the files: keep it until the sale ends.`,
		Example: `  starling model sell out/quickstart --price 25 --home net/consumer --listen 127.0.0.1:7400
  starling model sell out/tuned --price 25usdc --bond 5usdc --home net/consumer --listen 0.0.0.0:7400 \
    --url http://203.0.113.8:7400
  starling model sell out/tuned --price 25usdc --listing 8 --seller-part 10 --home net/consumer
  starling model sell out/tuned --price 25 --proof setup-of-sales --home net/consumer
  starling model sell out/quickstart --home net/consumer --withdraw`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return Explain(o.sell(cmd, c, args[0]))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.price, "price", "", "price, such as 25 or 25usdc")
	f.StringVar(&o.bond, "bond", "", "cost of a lie, in the coin of the price: half goes to the first buyer that "+
		"shows it (default: none)")
	f.StringVar(&o.name, "name", "", "name of the offer (default: that of the folder)")
	f.StringVar(&o.job, "job", "", "job that trained the model, by your word")
	f.Uint64Var(&o.listing, "listing", 0, "listing whose files these are: the price is its revenue")
	f.StringVar(&o.part, "seller-part", "0", "percent that the account keeps of the part of the shares of the listing")
	f.BoolVar(&o.data, "data", false, "all files of the folder, as a data set")
	f.StringVar(&o.proof, "proof", "", "folder of a setup for sales, with whose keys drawn leaves are opened "+
		"(default: no proof)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:7400", "host:port at which the encrypted files are served")
	f.StringArrayVar(&o.urls, "url", nil, "where buyers get the encrypted files (default: http:// and --listen)")
	f.Uint32Var(&o.answer, "answer-blocks", 300, "blocks in which an order is answered")
	f.Uint32Var(&o.complaint, "complaint-blocks", 600, "blocks in which a buyer may complain after an answer")
	f.BoolVar(&o.withdraw, "withdraw", false, "take no new orders, and end when the open ones are settled")
	return cmd
}

func (o *selling) check(cmd *cobra.Command) error {
	if o.Home == "" {
		return usage.Error(cmd, errors.New("--home is needed: the folder of the account that sells"))
	}
	for _, text := range []string{o.price, o.bond} {
		if text == "" {
			continue
		}
		if err := target.WantCoins(cmd, text); err != nil {
			return err
		}
	}
	if part, err := Percent.Parse(o.part); err != nil || part > 1_000_000 || part > 0 && o.listing == 0 {
		return usage.Error(cmd, fmt.Errorf("--seller-part %q: give percents from 0 to 100, with --listing", o.part))
	}
	for _, at := range o.urls {
		if !strings.HasPrefix(at, "http://") && !strings.HasPrefix(at, "https://") {
			return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", at))
		}
	}
	return nil
}

func (o *selling) sell(cmd *cobra.Command, c *terminal.Console, folder string) (err error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.Home, "sales", filepath.Base(path))
	if _, err := os.Stat(dir); err != nil && (o.price == "" || o.withdraw) {
		return notForSale(cmd)
	}
	source, err := Source(path, o.data)
	if err != nil {
		return err
	}
	opener, err := o.opener()
	if err != nil {
		return err
	}
	say := Steps(c)
	s, err := nodesale.Prepare(cmd.Context(), source, dir, opener,
		func(done, total int64) { say("encrypts the files", done, total) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return o.Act(cmd, "the folder of the account that sells", func(ctx context.Context, cl *client.Client) error {
		if err := o.offer(ctx, cmd, cl, s, filepath.Base(path)); err != nil {
			return err
		}
		if o.withdraw {
			if offer, err := cl.Sale.Offer(ctx, s.Offer()); err != nil || !offer.Closed() {
				if err := errors.Join(err, cl.Sale.Withdraw(ctx, s.Offer())); err != nil {
					return err
				}
			}
		}
		return o.serve(ctx, cl, s, opener)
	})
}

// opener opens drawn leaves with the keys of a setup; nil: the sale has no proof.
func (o *selling) opener() (*circuit.Opener, error) {
	if o.proof == "" {
		return nil, nil
	}
	v, pk, err := ceremony.OpeningKeys(o.proof)
	if err != nil {
		return nil, noKey(err)
	}
	return circuit.NewOpener(v, pk)
}

// open opens the drawn leaves of the offer, once a block has drawn them.
func open(ctx context.Context, cl *client.Client, s *nodesale.Seller, opener *circuit.Opener,
	wait func(context.Context) (int64, error)) error {
	for {
		o, err := cl.Sale.Offer(ctx, s.Offer())
		if err != nil {
			return err
		}
		if !o.Draws() {
			return s.Open(o, opener)
		}
		if _, err := wait(ctx); err != nil {
			return err
		}
	}
}

// Source are the files of a folder that are sold: those of a model, or all as a data set.
func Source(folder string, data bool) (goods.Source, error) {
	source := goods.Source{Folder: folder}
	if data {
		return source, nil
	}
	found, err := published.Files(folder)
	for _, f := range found {
		source.Files = append(source.Files, f.Name)
	}
	if err != nil || !published.IsModel(folder) {
		return source, terminal.WithExit(&terminal.Problem{Code: "NO_MODEL", What: folder + " holds no model",
			Fix: "name a folder with the safetensors of a model, such as the output folder of a finished run"},
			terminal.ExitNotFound)
	}
	return source, nil
}

// notForSale refuses to continue or withdraw the sale of a folder that was never offered.
func notForSale(cmd *cobra.Command) error {
	return usage.Error(cmd, errors.New("this folder is not for sale yet: --price is needed, such as 25 or 25usdc"))
}

// offer makes the offer, unless an earlier call did.
func (o *selling) offer(ctx context.Context, cmd *cobra.Command, cl *client.Client, s *nodesale.Seller,
	name string) error {
	if s.Offer() > 0 {
		return o.same(ctx, cl, s.Offer())
	}
	terms := s.Terms(sale.Terms{Name: cmp.Or(o.name, name), Job: o.job, Answer: o.answer, Complaint: o.complaint,
		Locations: o.urls, Listing: o.listing, SellerPart: o.sellerPart()})
	id, err := cl.Sale.Find(ctx, terms.Content.Key) // of a call that was cut off
	switch {
	case err != nil:
		return err
	case id > 0:
		if err := o.same(ctx, cl, id); err != nil {
			return err
		}
	case o.price == "" || o.withdraw:
		return notForSale(cmd)
	default:
		if terms, err = o.asks(ctx, cl, terms); err != nil {
			return err
		}
		if id, err = cl.Sale.Create(ctx, terms); err != nil {
			return err
		}
	}
	offered, err := cl.Sale.Offer(ctx, id)
	if err != nil {
		return err
	}
	return s.Offered(offered)
}

// sellerPart is the part in millionths. It was checked.
func (o *selling) sellerPart() uint32 {
	part, _ := Percent.Parse(o.part)
	return uint32(part)
}

// asks completes terms with the price, the bond and the locations.
func (o *selling) asks(ctx context.Context, cl *client.Client, terms sale.Terms) (sale.Terms, error) {
	if len(terms.Locations) == 0 {
		terms.Locations = []string{"http://" + o.listen}
	}
	price, err := coins.Parse(ctx, cl.Market, o.price)
	if err != nil || o.bond == "" {
		terms.Price, terms.Denom = price.Grains, price.Denom
		return terms, err
	}
	bond, err := coins.Parse(ctx, cl.Market, o.bond)
	if err == nil && bond.Denom != price.Denom {
		err = fmt.Errorf("%w: a bond of %s for a price of %s: one coin is wanted", coins.ErrText, bond, price)
	}
	terms.Price, terms.Denom, terms.Bond = price.Grains, price.Denom, bond.Grains
	return terms, err
}

// same refuses a price that is not that of the offer: its terms never change.
func (o *selling) same(ctx context.Context, cl *client.Client, id uint64) error {
	if o.price == "" {
		return nil
	}
	made, err := cl.Sale.Offer(ctx, id)
	if err != nil {
		return err
	}
	price, err := coins.Parse(ctx, cl.Market, o.price)
	if err == nil && (price.Grains != made.Terms.Price || price.Denom != made.Terms.Denom) {
		err = terminal.WithExit(&terminal.Problem{Code: "OFFERED",
			What: fmt.Sprintf("offer %d has another price, which does not change", id),
			Fix:  "leave --price out to continue, or withdraw the offer with --withdraw"}, terminal.ExitConflict)
	}
	return err
}

// serve serves the encrypted files and answers orders until the offer is over or the context ends.
func (o *selling) serve(ctx context.Context, cl *client.Client, s *nodesale.Seller, opener *circuit.Opener) error {
	l, err := terminal.Listen(ctx, o.listen)
	if err != nil {
		return err
	}
	defer terminal.Serve(l, s.Handler())()
	wait, err := client.Heights(ctx, cl)
	if err != nil {
		return err
	}
	if opener != nil {
		if err := open(ctx, cl, s, opener, wait); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "offer %d is served at http://%s\n", s.Offer(), l.Addr())
	err = s.Run(ctx, cl.Sale, wait, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, "offer %d is over\n", s.Offer())
	}
	return err
}
