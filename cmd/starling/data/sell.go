package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/cmd/starling/target"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/usage"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/hosting/pages"
	"github.com/starling-network/starling/node/hosting/pages/host"
	"github.com/starling-network/starling/node/hosting/purse"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// Earned is the end of a seller for programs.
type Earned struct {
	Set      uint64 `json:"set"`
	Provider string `json:"provider"`
	Coin     string `json:"coin"`
	Earned   string `json:"earned"` // redeemed by this process, for the provider
	Shares   string `json:"shares"`
	Fee      string `json:"fee"`
}

func hostCommand(c *terminal.Console) *cobra.Command {
	var to target.Target
	var o host.Options
	var listen string
	var part float64
	cmd := &cobra.Command{
		Use:   "host FOLDER --price AMOUNT --home DIR",
		Short: "Sell the files of a folder page by page on a network",
		Long: `Sell the files of a folder page by page: register the data set on a network unless --model names it, lock a
bond, and answer requests at --listen until interrupted. Hidden files are left out. starling data fetch reads pages. A
request that is not paid gets status 402 with the terms, in the form of x402 (docs/market.md). A page is --page bytes of
the files, one after another; readers get the list of files and the digests of pages for nothing, and compare each page
that they pay. Run the same command again to continue; vouchers are in hosting/ in --home.

The network has a fee of each redeemed amount, and --part percent of the rest go to the holders of shares of --job, such
as listing/8, whose royalties are paid of it (starling model catalog), or to the account. A reader can pass on what it
bought. starling model hosted lists data sets, too: OUTPUT is the price of a million pages. starling model host --leave
ends the sale.

AMOUNT is in ZEN or in another coin, such as 0.001usdc. With -o json, at the end:
{"set","provider","coin","earned","shares","fee"}.`,
		Example: `  starling data host corpus --price 0.001 --home net/consumer
  starling data host corpus --price 0.001usdc --job listing/8 --part 80 --licence CC-BY-4.0 \
    --listen 0.0.0.0:7550 --url http://203.0.113.8:7550 --home net/consumer`,
		Args: usage.Exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case to.Home == "":
				return usage.Error(cmd, errors.New("--home is needed: the folder of the account that sells"))
			case o.Price == "":
				return usage.Error(cmd, errors.New("--price is needed: that of a page"))
			case part < 0 || part > 100:
				return usage.Error(cmd, errors.New("--part is a percentage, from 0 to 100"))
			case o.URL != "" && !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://"):
				return usage.Error(cmd, fmt.Errorf("--url %s: it begins with http:// or https://", o.URL))
			}
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			o.Folder, o.Home, o.PartPPM, o.Name = path, to.Home, uint32(part*10_000), cmp.Or(o.Name, filepath.Base(path))
			o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			return explainSale(to.Act(cmd, "the folder of the account that sells", func(ctx context.Context,
				cl *client.Client) error {
				l, err := terminal.Listen(ctx, listen)
				if err != nil {
					return err
				}
				sold, err := host.Run(ctx, o, cl, l, func(m hosting.Model, at hosting.Place, p pages.Manifest) {
					fmt.Fprintf(os.Stderr, "data set %d, %s, has %d pages at %s\n", m.ID, m.Name, p.Pages(), at.URL)
				})
				if err != nil {
					return err
				}
				in := sold.Coin
				e := Earned{sold.Set.ID, cl.Address(), in.Name(), in.Amount(sold.Earned.Provider), in.Amount(sold.Earned.Part),
					in.Amount(sold.Earned.Fee)}
				if c.Form.Machine() {
					return c.Form.Print(os.Stdout, terminal.One(e, e.Earned))
				}
				_, err = fmt.Printf("earned    %s %s\nshares    %s\nfee       %s\n", e.Earned, e.Coin, e.Shares, e.Fee)
				return err
			}))
		},
	}
	to.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Price, "price", "", "price of a page, such as 0.001 or 0.001usdc")
	f.IntVar(&o.Page, "page", 1<<20, "bytes of a page")
	f.Uint64Var(&o.Model, "model", 0, "number of the data set on the network (default: it is registered)")
	f.StringVar(&o.Name, "name", "", "name of the data set (default: that of the folder)")
	f.StringVar(&o.Job, "job", "", "shares whose holders have the part of the revenue (default: the account)")
	f.Float64Var(&part, "part", 0, "percent of the revenue, after the fee, for the share holders")
	f.StringVar(&o.Licence, "licence", "", "SPDX identifier of the licence, such as CC-BY-4.0")
	f.StringVar(&o.Bond, "bond", "10", "ZEN that are locked while the account sells the data set")
	f.StringVar(&o.Redeem, "redeem", "0.1", "coins for which a voucher is redeemed while its channel is open")
	f.StringVar(&listen, "listen", "127.0.0.1:7550", "host:port at which requests are answered")
	f.StringVar(&o.URL, "url", "", "where readers reach it (default: http:// and --listen)")
	return cmd
}

// Fetched is the result of a purchase for programs.
type Fetched struct {
	pages.Counts
	Of     int    `json:"of"` // pages of the data set
	Coin   string `json:"coin"`
	Amount string `json:"amount"` // spent
}

func fetchCommand(c *terminal.Console) *cobra.Command {
	var o target.Target
	var budget, to, which string
	var private, shut bool
	cmd := &cobra.Command{
		Use:   "fetch SET --budget AMOUNT --to DIR --home DIR",
		Short: "Buy pages of a data set on a network",
		Long: `Buy pages of a data set that starling data host sells, and write them into the files of a folder. SET is its
number or name: starling model hosted lists it. Providers are asked by price, the cheapest first; each is paid through a
channel, and all channels together hold at most --budget. Each page is compared with its digest. A provider whose page
is another keeps its price, and is not asked again. Pages that are in the folder already are not bought.

Channels stay open for the next call: starling data fetch --close closes them, and the rest of each returns after the
blocks of closing.

With -o json: {"pages","present","bytes","spent","of","coin","amount"}.`,
		Example: `  starling data fetch corpus --budget 1 --to corpus --home net/consumer
  starling data fetch 4 --pages 0-9,12 --budget 0.5usdc --to corpus --home net/consumer`,
		Args: usage.Exactly("SET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Home == "":
				return usage.Error(cmd, errors.New("--home is needed: the folder of the account that pays"))
			case budget == "" || to == "" && !shut:
				return usage.Error(cmd, errors.New("--budget, such as 1 or 1usdc, and --to are needed"))
			}
			if err := target.WantCoins(cmd, budget); err != nil {
				return err
			}
			return explainSale(o.Act(cmd, "the folder of the account that pays", func(ctx context.Context,
				cl *client.Client) error {
				b, in, unlock, err := buyer(ctx, cl, o.Home, args[0], budget, private)
				if err != nil {
					return err
				}
				defer func() { _ = unlock() }()
				if shut {
					closed, err := b.Purse.Close(ctx)
					if err == nil {
						err = c.PrintLines([]string{terminal.Counted(closed, "channel") + " closed"})
					}
					return err
				}
				m, err := b.Manifest(ctx)
				if err != nil {
					return err
				}
				list, err := numbers(which, m.Pages())
				if err != nil {
					return usage.Error(cmd, err)
				}
				counts, err := b.Fetch(ctx, m, list, to, func(done, of int) { c.Say(fmt.Sprintf("page %d of %d", done, of)) })
				if err != nil {
					return err
				}
				r := Fetched{counts, m.Pages(), in.Name(), in.Amount(counts.Spent)}
				if c.Form.Machine() {
					return c.Form.Print(os.Stdout, terminal.One(r, r.Amount))
				}
				_, err = fmt.Printf("%s: %d pages for %s, and %d were there\n", to, r.Pages, in.Text(r.Spent), r.Present)
				return err
			}))
		},
	}
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&budget, "budget", "", "the most to lock and spend in all, such as 1 or 1usdc: its coin is that of the "+
		"price")
	f.StringVar(&to, "to", "", "folder for the files")
	f.StringVar(&which, "pages", "", "pages, such as 0-9,12 (default: all)")
	f.BoolVar(&private, "private", false, "also ask providers at private addresses, as those of a network on this "+
		"machine have")
	f.BoolVar(&shut, "close", false, "close all channels, and end")
	return cmd
}

// buyer opens the purse of an account for a data set.
func buyer(ctx context.Context, cl *client.Client, home, name, budget string,
	private bool) (b *pages.Buyer, in coins.Amount, unlock func() error, err error) {
	m, err := listing.Find(ctx, cl.Hosting, name)
	if err != nil {
		return nil, in, nil, err
	}
	head, err := cl.Ledger.Head(ctx)
	if err != nil {
		return nil, in, nil, err
	}
	if in, err = coins.Parse(ctx, cl.Market, budget); err != nil {
		return nil, in, nil, err
	}
	all, err := cl.Hosting.Places(ctx, m.ID)
	if err != nil {
		return nil, in, nil, err
	}
	b = &pages.Buyer{Chain: head.ChainID, Model: m, Client: x402.NewClient(private)}
	for _, p := range all {
		if p.Open() && p.Prices.Denom == in.Denom {
			b.Places = append(b.Places, p)
		}
	}
	dir := filepath.Join(home, "pages", strconv.FormatUint(m.ID, 10), strings.ToLower(in.Name()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, in, nil, err
	}
	if unlock, err = folder.Lock(dir); err != nil {
		return nil, in, nil, err
	}
	if b.Purse, err = purse.Open(ctx, purse.Config{Dir: dir, Chain: head.ChainID, Account: cl.Address(),
		Network: cl.Hosting, Budget: in.Grains}); err != nil {
		return nil, in, nil, errors.Join(err, unlock())
	}
	return b, in, unlock, nil
}

// numbers reads a list of pages, such as 0-9,12; "": all.
func numbers(text string, of int) (list []int, err error) {
	if text == "" {
		text = fmt.Sprintf("0-%d", of-1)
	}
	for _, part := range strings.Split(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		a, err := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || a < 0 || a > b || b >= of {
			return nil, fmt.Errorf("--pages %q: write pages of 0 to %d, such as 0-9,12", part, of-1)
		}
		for page := a; page <= b; page++ {
			list = append(list, page)
		}
	}
	return list, nil
}

// explainSale explains the errors of sales by pages.
func explainSale(err error) error {
	for _, known := range []struct {
		is        error
		code, fix string
		exit      int
	}{
		{purse.ErrBudget, "BUDGET_SPENT", "give a larger --budget", terminal.ExitFunds},
		{pages.ErrNone, "NO_PROVIDER", "starling model hosted lists providers, with the coins of their prices; of one at a " +
			"private address, --private", terminal.ExitNoCapacity},
		{pages.ErrFolder, "NO_DATA", "name a folder with files, and --page within these limits", terminal.ExitNotFound},
		{listing.ErrModel, "NO_DATA_SET", "give the number of one: starling model hosted lists them", terminal.ExitNotFound},
		{query.ErrNotFound, "NO_DATA_SET", "give the number of one: starling model hosted lists them", terminal.ExitNotFound},
		{listing.ErrMany, "AMBIGUOUS_DATA_SET", "give the number of the data set", terminal.ExitUsage},
		{listing.ErrOther, "OTHER_DATA_SET", "sell the files of the data set in pages of its size, or register yours " +
			"without --model", terminal.ExitConflict},
	} {
		if err != nil && !terminal.Explained(err) && errors.Is(err, known.is) {
			return terminal.WithExit(&terminal.Problem{Code: known.code, What: err.Error(), Fix: known.fix}, known.exit)
		}
	}
	return err
}
