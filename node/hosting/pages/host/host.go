// Package host keeps the data set of a folder on a network as one seller: it registers the data set, offers the place,
// sells pages, and redeems their vouchers. It reads no flags.
package host

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/hosting/pages"
	"github.com/starling-network/starling/node/hosting/provider"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/hosting"
)

const (
	farewell = 20 * time.Second // in which a seller redeems what is left when it ends
	pageUnit = 1_000_000        // pages for which the network has the price
	slow     = time.Minute      // for a request, and for an answer of a page
)

// Options are those of a seller. Price, Bond and Redeem are amounts as people write them.
type Options struct {
	Folder  string
	Page    int    // bytes
	Model   uint64 // number of the data set on the network; 0: it is registered
	Name    string
	Job     string // whose share holders have PartPPM of the revenue, such as listing/8; "": the owner has it
	Licence string
	PartPPM uint32
	Price   string // of a page
	Bond    string // in ZEN
	Redeem  string // for which a voucher is redeemed while its channel is open, in the coin of the price
	URL     string // where readers reach it; "": http:// and the address of the listener
	Home    string // the vouchers are in hosting/
	Log     *slog.Logger
}

// Sold is what a seller offered, and what it earned.
type Sold struct {
	Set    rules.Model
	Place  rules.Place
	Coin   coin.Coin
	Earned rules.Split
}

// Run registers the data set and sells its pages to readers that reach the listener until the context ends, and then
// redeems what was earned. hosted is called once the place is offered.
func Run(ctx context.Context, o Options, c *client.Client, l net.Listener,
	hosted func(rules.Model, rules.Place, pages.Manifest)) (sold Sold, err error) {
	defer l.Close() // if it was not served
	m, err := pages.Describe(ctx, o.Folder, o.Page)
	if err != nil {
		return sold, err
	}
	least, err := o.list(ctx, c, m, l, &sold)
	if err != nil {
		return sold, err
	}
	root, err := os.OpenRoot(o.Folder)
	if err != nil {
		return sold, err
	}
	defer root.Close()
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return sold, err
	}
	r, err := provider.Redeemer(c, o.Home, head.ChainID, sold.Set.ID, least, o.Log)
	if err != nil {
		return sold, err
	}
	defer func() { err = errors.Join(err, r.Vouchers.Close()) }()
	if err := listing.Offer(ctx, c.Hosting, sold.Place); err != nil {
		return sold, err
	}
	hosted(sold.Set, sold.Place, m)
	seller := pages.NewSeller(m, root, pages.Terms{Chain: head.ChainID, Place: sold.Place, Coin: sold.Coin}, r.Vouchers,
		r.Look)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- serve(inner, l, seller.Handler())
		cancel()
	}()
	next, err := client.Heights(inner, c)
	if err == nil {
		err = r.Run(inner, next)
	}
	cancel()
	err = errors.Join(err, <-served)
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	r.Finish(last)
	sold.Earned = r.Earned()
	return sold, err
}

// list brings the data set onto the network, and returns the grains of a redemption.
func (o Options) list(ctx context.Context, c *client.Client, m pages.Manifest, l net.Listener,
	sold *Sold) (least uint64, err error) {
	price, err := coins.Parse(ctx, c.Market, o.Price)
	if err != nil {
		return 0, err
	}
	bond, err := coin.Coin{}.Parse(o.Bond)
	if err != nil {
		return 0, err
	}
	if least, err = price.Parse(o.Redeem); err != nil {
		return 0, err
	}
	if price.Grains >= rules.MaxAmount/pageUnit {
		return 0, errors.Join(coins.ErrText, errors.New("a page costs less than "+price.Text(rules.MaxAmount/pageUnit)))
	}
	wanted := rules.Model{Name: o.Name, Job: o.Job, Licence: o.Licence, PartPPM: o.PartPPM}
	wanted.Files, wanted.Weights = m.Names()
	if sold.Set, err = listing.Ensure(ctx, c.Hosting, o.Model, wanted); err != nil {
		return 0, err
	}
	if o.URL == "" {
		o.URL = "http://" + l.Addr().String() // the port may have been 0
	}
	sold.Coin = price.Coin
	sold.Place = rules.Place{Model: sold.Set.ID, Provider: c.Address(), URL: o.URL, Bond: bond,
		Prices: rules.Prices{Denom: price.Denom, Output: price.Grains * pageUnit}}
	return least, nil
}

// serve answers requests until the context ends, and then those that are under way.
func serve(ctx context.Context, l net.Listener, handler http.Handler) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: slow, WriteTimeout: slow,
		IdleTimeout: slow, MaxHeaderBytes: 64 << 10}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := s.Shutdown(last); err != nil {
		return errors.Join(s.Close(), err)
	}
	return nil
}
