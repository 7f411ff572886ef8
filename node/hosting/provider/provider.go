// Package provider keeps the model of a folder, and adapters of it, on a network as one provider: it registers them,
// offers their places, answers paid requests, redeems their vouchers, and makes the moves of the provider when an
// answer is accused.
//
// The guard of the requests is package hosting, and the rules are those of protocol/hosting. It reads no flags.
package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/accused"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/layered/part"
	"github.com/starling-network/starling/node/pretrained"
	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// farewell is how long a provider takes to redeem what is left when it ends.
const farewell = 20 * time.Second

// Errors of this package.
var (
	ErrModel    = errors.New("the folder is of no model that can be hosted")
	ErrTwoCoins = errors.New("the prices are in two coins")
)

// Options are those of a provider. Prices, Bond and Redeem are amounts as people write them.
type Options struct {
	Folder  string // of the model
	Model   uint64 // its number on the network; 0: it is registered
	Name    string // "": that of the folder
	Job     string // whose share holders have PartPPM of the revenue; "": the owner of the model has it
	Licence string
	PartPPM uint32
	Input   string // of a million tokens of prompts, in a coin
	Output  string // of a million tokens of answers, in the same coin
	Bond    string // in ZEN
	Redeem  string // for which a voucher is redeemed while its channel is open, in the coin of the prices
	Listen  string // host:port
	URL     string // where clients reach it; "": http:// and the address of the listener
	Serve   serve.Options
	// Adapters of the model, each of which is a model of the network with the prices and the bond of this one.
	Adapters []Adapter
}

// Provider is one that has loaded its model.
type Provider struct {
	Options
	Home string        // the vouchers are in hosting/
	Key  wallet.Signer // of the account
	Log  *slog.Logger
	// Wrap is given the model that answers, and returns what answers in its place; nil: the model does
	Wrap func(hosting.Model) hosting.Model

	base     seat
	adapters []*seat
	inStages bool // base has no tensors of layers
	coin     coin.Registered
	least    uint64 // grains of a redemption
	height   atomic.Int64
}

// Load reads the model, whose digests are those on the network. The error wraps ErrModel if the folder is of none.
func (p *Provider) Load(ctx context.Context) error {
	path, err := filepath.Abs(p.Folder)
	if err != nil {
		return err
	}
	p.base = seat{folder: path, number: p.Model, wanted: rules.Model{Name: cmp.Or(p.Name, filepath.Base(path)), Job: p.Job,
		Licence: p.Licence, PartPPM: p.PartPPM}}
	if part.Is(path) {
		err = p.loadFront(path)
	} else {
		err = p.loadWhole(ctx, path)
	}
	if err != nil {
		return err
	}
	p.base.wanted.Weights = p.base.checked.Weights
	return p.loadAdapters(ctx)
}

func (p *Provider) loadWhole(ctx context.Context, path string) (err error) {
	if p.base.wanted.Files, err = listing.Files(ctx, path); err != nil {
		return err
	}
	m, err := pretrained.Load(path)
	if err == nil {
		p.base.checked, err = checked.New(m)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	return nil
}

// loadFront reads the front of a model in stages, whose digests are those of the whole model.
func (p *Provider) loadFront(path string) error {
	m, read, err := part.ReadFront(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	p.base.checked, p.inStages = checked.NewFront(read, m.Weights, m.Roots), true
	p.base.wanted.Files = m.Files
	return nil
}

// Bytes of the weights of the model that Load read.
func (p *Provider) Bytes() (n int64) {
	for _, t := range p.base.checked.Tensors {
		n += int64(t.Shape.Bytes())
	}
	return n
}

// Place is the place of the model, once Run has offered it.
func (p *Provider) Place() (rules.Place, coin.Registered) { return p.base.place, p.coin }

// Earned are the grains that were redeemed for the model and its adapters, as they were divided.
func (p *Provider) Earned() (sum rules.Split) {
	for _, s := range p.seats() {
		if s.redeems != nil {
			x := s.redeems.Earned()
			sum.Fee, sum.Part, sum.Provider = sum.Fee+x.Fee, sum.Part+x.Part, sum.Provider+x.Provider
		}
	}
	return sum
}

// list brings the model and its adapters onto the network.
func (p *Provider) list(ctx context.Context, c *client.Client) error {
	in, input, err := price(ctx, c.Market, p.Input)
	if err != nil {
		return err
	}
	out, output, err := price(ctx, c.Market, p.Output)
	if err == nil && out.Denom != in.Denom {
		err = fmt.Errorf("%w: %s and %s", ErrTwoCoins, in.Name(), out.Name())
	}
	if err != nil {
		return err
	}
	bond, err := coin.Coin{}.Parse(p.Bond)
	if err != nil {
		return err
	}
	if p.least, err = in.Parse(p.Redeem); err != nil {
		return err
	}
	p.coin = in
	for _, s := range p.seats() {
		if s != &p.base {
			s.wanted.Base = p.base.wanted.ID
		}
		if s.wanted, err = listing.Ensure(ctx, c.Hosting, s.number, s.wanted); err != nil {
			return err
		}
		s.place = rules.Place{Model: s.wanted.ID, Provider: c.Address(), URL: p.URL, Bond: bond,
			Prices: rules.Prices{Denom: in.Denom, Input: input, Output: output}}
	}
	return nil
}

// price reads a price, which may be 0.
func price(ctx context.Context, m module.Market, text string) (coin.Registered, uint64, error) {
	number, symbol, ok := coin.Split(text)
	if !ok {
		return coin.Registered{}, 0, fmt.Errorf("%w: %q: write a decimal number of ZEN, or one with the symbol of a coin, "+
			"such as 0.5usdc", coins.ErrText, text)
	}
	in, err := m.Coin(ctx, symbol)
	if err != nil {
		return in, 0, err
	}
	grains, err := in.Parse(number)
	return in, grains, err
}

// Run registers the model and its adapters and answers requests that reach the listener until the context ends, and
// then redeems what was earned. hosted is called with each of them once its place is offered. It closes the listener.
// The error wraps serve.ErrFolder if the engine cannot serve the model.
func (p *Provider) Run(ctx context.Context, c *client.Client, l net.Listener, hosted func(rules.Model,
	rules.Place)) (err error) {
	defer l.Close() // if it was not served
	if err := p.list(ctx, c); err != nil {
		return err
	}
	engine, err := p.open()
	if err != nil {
		return err
	}
	defer engine.Close()
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	p.height.Store(head.Height)
	for _, s := range p.seats() {
		if s.redeems, err = Redeemer(c, p.Home, head.ChainID, s.place.Model, p.least, p.Log); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.redeems.Vouchers.Close()) }()
		if s.place.URL == "" {
			s.place.URL = "http://" + l.Addr().String() // the port may have been 0
		}
		if err := listing.Offer(ctx, c.Hosting, s.place); err != nil {
			return err
		}
		hosted(s.wanted, s.place)
	}
	err = p.answer(ctx, c, l, engine, head.ChainID)
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	for _, s := range p.seats() {
		s.redeems.Finish(last)
	}
	return err
}

// answer answers requests, redeems vouchers and answers accusations until the context ends.
func (p *Provider) answer(ctx context.Context, c *client.Client, l net.Listener, engine *serve.Engine,
	chain string) error {
	var model hosting.Model = engine
	if p.Wrap != nil {
		model = p.Wrap(model)
	}
	guards := p.guards(model, chain)
	handler := guards.Handler(openai.New(guards, openai.Config{Public: true, Watch: true, Health: engine.Health}))
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- openai.Serve(inner, l, handler)
		cancel()
	}()
	defended := make(chan struct{})
	go func() {
		defer close(defended)
		if p.inStages {
			p.Log.Warn("accusations of answers are not answered here, as no layer is: starling model defend does so with " +
				"the whole model")
			return
		}
		if err := p.defend(inner, c); inner.Err() == nil {
			p.Log.Error("no accusations are answered any more: the model is hosted no more", "error", err)
			cancel() // silence costs the bond
		}
	}()
	group, turns := errgroup.WithContext(inner)
	for _, s := range p.seats() {
		group.Go(func() error { return p.redeem(turns, c, s) })
	}
	err := group.Wait()
	cancel()
	err = errors.Join(err, <-served)
	<-defended
	return err
}

// defend answers the accusations of the account until the context ends.
func (p *Provider) defend(ctx context.Context, c *client.Client) error {
	of := &accused.Party{Account: c.Address(), Model: p.base.checked, Adapted: p.adapted,
		Threads: p.Serve.Threads, Network: c.Hosting}
	next, err := client.Heights(ctx, c)
	if err != nil {
		return err
	}
	return of.Defend(ctx, next, func(id uint64, err error) {
		p.Log.Error("an accusation is not answered", "accusation", id, "error", err)
	})
}

// Redeemer opens the vouchers for a model in the folder of a provider, and redeems them. The caller closes them.
func Redeemer(c *client.Client, home, chain string, model, least uint64, log *slog.Logger) (*hosting.Redeemer, error) {
	v, err := hosting.OpenVouchers(filepath.Join(home, "hosting", fmt.Sprint(model)), chain)
	return &hosting.Redeemer{Network: c.Hosting, Provider: c.Address(), Model: model, Vouchers: v, Least: least,
		Log: log}, err
}
