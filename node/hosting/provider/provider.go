// Package provider keeps the model of a folder on a network as one provider: it registers the model, offers the place,
// answers paid requests, redeems their vouchers, and makes the moves of the provider when an answer is accused.
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

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/accused"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
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
}

// Provider is one that has loaded its model.
type Provider struct {
	Options
	Home string        // the vouchers are in hosting/
	Key  wallet.Signer // of the account
	Log  *slog.Logger
	// Wrap is given the model that answers, and returns what answers in its place; nil: the model does
	Wrap func(hosting.Model) hosting.Model

	checked  *checked.Model
	inStages bool // checked has no tensors of layers
	wanted   rules.Model
	place    rules.Place
	coin     coin.Registered
	least    uint64 // grains of a redemption
	height   atomic.Int64
	redeems  *hosting.Redeemer
}

// Load reads the model, whose digests are those on the network. The error wraps ErrModel if the folder is of none.
func (p *Provider) Load(ctx context.Context) error {
	path, err := filepath.Abs(p.Folder)
	if err != nil {
		return err
	}
	p.wanted = rules.Model{Name: cmp.Or(p.Name, filepath.Base(path)), Job: p.Job, Licence: p.Licence, PartPPM: p.PartPPM}
	if part.Is(path) {
		return p.loadFront(path)
	}
	if p.wanted.Files, err = listing.Files(ctx, path); err != nil {
		return err
	}
	m, err := pretrained.Load(path)
	if err == nil {
		p.checked, err = checked.New(m)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	p.wanted.Weights = p.checked.Weights
	return nil
}

// loadFront reads the front of a model in stages, whose digests are those of the whole model.
func (p *Provider) loadFront(path string) error {
	m, read, err := part.ReadFront(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrModel, err)
	}
	p.checked, p.inStages = checked.NewFront(read, m.Weights, m.Roots), true
	p.wanted.Files, p.wanted.Weights = m.Files, m.Weights
	return nil
}

// Bytes of the weights of the model that Load read.
func (p *Provider) Bytes() (n int64) {
	for _, t := range p.checked.Tensors {
		n += int64(t.Shape.Bytes())
	}
	return n
}

// Place is the place, once Run has offered it.
func (p *Provider) Place() (rules.Place, coin.Registered) { return p.place, p.coin }

// Earned are the grains that were redeemed, as they were divided.
func (p *Provider) Earned() rules.Split {
	if p.redeems == nil {
		return rules.Split{}
	}
	return p.redeems.Earned()
}

// list brings the model onto the network.
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
	if p.wanted, err = listing.Ensure(ctx, c.Hosting, p.Model, p.wanted); err != nil {
		return err
	}
	p.coin = in
	p.place = rules.Place{Model: p.wanted.ID, Provider: c.Address(), URL: p.URL, Bond: bond,
		Prices: rules.Prices{Denom: in.Denom, Input: input, Output: output}}
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

// Run registers the model and answers requests that reach the listener until the context ends, and then redeems what
// was earned. hosted is called once the place is offered. It closes the listener. The error wraps serve.ErrFolder if
// the engine cannot serve the model.
func (p *Provider) Run(ctx context.Context, c *client.Client, l net.Listener, hosted func(rules.Model,
	rules.Place)) (err error) {
	defer l.Close() // if it was not served
	if err := p.list(ctx, c); err != nil {
		return err
	}
	p.Serve.Name, p.Serve.Checked = p.wanted.Name, true
	engine, err := serve.Open(p.Folder, p.Serve)
	if err != nil {
		return err
	}
	defer engine.Close()
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	p.height.Store(head.Height)
	r, err := Redeemer(c, p.Home, head.ChainID, p.place.Model, p.least, p.Log)
	if err != nil {
		return err
	}
	p.redeems = r
	defer func() { err = errors.Join(err, r.Vouchers.Close()) }()
	if p.place.URL == "" {
		p.place.URL = "http://" + l.Addr().String() // the port may have been 0
	}
	if err := listing.Offer(ctx, c.Hosting, p.place); err != nil {
		return err
	}
	hosted(p.wanted, p.place)
	err = p.answer(ctx, c, l, engine, head.ChainID)
	last, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	r.Finish(last)
	return err
}

// answer answers requests, redeems vouchers and answers accusations until the context ends.
func (p *Provider) answer(ctx context.Context, c *client.Client, l net.Listener, engine *serve.Engine,
	chain string) error {
	var model hosting.Model = engine
	if p.Wrap != nil {
		model = p.Wrap(model)
	}
	guard := hosting.New(model, hosting.Terms{Chain: chain, Place: p.place, Coin: p.coin.Coin, Receipt: p.receipt(chain)},
		p.redeems.Vouchers, p.redeems.Look)
	handler := guard.Handler(openai.New(guard, openai.Config{Public: true, Watch: true, Health: engine.Health}))
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
	next, err := client.Heights(inner, c)
	if err == nil {
		err = p.redeems.Run(inner, func(ctx context.Context) (int64, error) {
			height, err := next(ctx)
			p.height.Store(max(height, p.height.Load()))
			return height, err
		})
	}
	cancel()
	err = errors.Join(err, <-served)
	<-defended
	return err
}

// defend answers the accusations of the account until the context ends.
func (p *Provider) defend(ctx context.Context, c *client.Client) error {
	of := &accused.Party{Account: c.Address(), Model: p.checked, Threads: p.Serve.Threads, Network: c.Hosting}
	next, err := client.Heights(ctx, c)
	if err != nil {
		return err
	}
	return of.Defend(ctx, next, func(id uint64, err error) {
		p.Log.Error("an accusation is not answered", "accusation", id, "error", err)
	})
}

// receipt signs answers.
func (p *Provider) receipt(chain string) func(openai.Result) ([]byte, error) {
	s := signer.Signer{Model: p.checked, Chain: chain, Number: p.wanted.ID, Key: p.Key}
	return func(made openai.Result) ([]byte, error) {
		signed, err := s.Sign(made.Drawn, p.height.Load())
		if err != nil {
			return nil, err
		}
		return signed.Encode(), nil
	}
}

// Redeemer opens the vouchers for a model in the folder of a provider, and redeems them. The caller closes them.
func Redeemer(c *client.Client, home, chain string, model, least uint64, log *slog.Logger) (*hosting.Redeemer, error) {
	v, err := hosting.OpenVouchers(filepath.Join(home, "hosting", fmt.Sprint(model)), chain)
	return &hosting.Redeemer{Network: c.Hosting, Provider: c.Address(), Model: model, Vouchers: v, Least: least,
		Log: log}, err
}
