package provider

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/node/checked/signer"
	"github.com/starling-network/starling/node/hosting"
	"github.com/starling-network/starling/node/hosting/listing"
	"github.com/starling-network/starling/node/serve"
	rules "github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// Adapter is an adapter of the model that is hosted with it, over the same weights in memory.
type Adapter struct {
	Folder  string // as PEFT writes it
	Model   uint64 // its number on the network; 0: it is registered
	Name    string
	Job     string // whose share holders have PartPPM of the revenue; "": the owner has it
	PartPPM uint32
}

// seat is a model or an adapter that a provider hosts: a model of the network, with a place of its own.
type seat struct {
	folder  string
	number  uint64         // on the network; 0: it is registered
	checked *checked.Model // of an adapter the form that signs
	state   string         // of an adapter, before checked was made
	wanted  rules.Model
	place   rules.Place
	redeems *hosting.Redeemer
}

// loadAdapters reads the adapters. Their tensors are not kept: the engine reads them when they are asked for.
func (p *Provider) loadAdapters(ctx context.Context) error {
	for _, a := range p.Adapters {
		if p.inStages {
			return fmt.Errorf("%w: a model in stages has no adapters", ErrModel)
		}
		path, err := filepath.Abs(a.Folder)
		if err != nil {
			return err
		}
		state := serve.StateOf(path) // the engine reads the folder again: answers of another adapter would be signed
		m, err := p.base.checked.Adapted(path)
		if err != nil {
			return fmt.Errorf("%w: the adapter %s: %w", ErrModel, a.Folder, err)
		}
		s := &seat{folder: path, number: a.Model, checked: m.Signs(), state: state,
			wanted: rules.Model{Name: cmp.Or(a.Name, filepath.Base(path)), Job: a.Job, Licence: p.Licence, PartPPM: a.PartPPM,
				Weights: m.Weights}}
		if s.wanted.Files, err = listing.Files(ctx, path); err != nil {
			return err
		}
		p.adapters = append(p.adapters, s)
	}
	return nil
}

// seats are the model and its adapters.
func (p *Provider) seats() []*seat { return append([]*seat{&p.base}, p.adapters...) }

// adapted is the model with one of the adapters, for an accusation.
func (p *Provider) adapted(weights canon.Digest) (*checked.Model, error) {
	for _, s := range p.adapters {
		if s.checked.Weights != weights {
			continue
		}
		m, err := p.base.checked.Adapted(s.folder)
		if err == nil && m.Weights != weights {
			err = fmt.Errorf("%w: %s has changed", checked.ErrOther, s.folder)
		}
		return m, err
	}
	return nil, fmt.Errorf("%w: of weights with root %s", checked.ErrOther, weights.Short())
}

// open opens the engine, with the names that the models have on the network.
func (p *Provider) open() (*serve.Engine, error) {
	o := p.Serve
	o.Name, o.Checked = p.base.wanted.Name, true
	for _, s := range p.adapters {
		o.Adapters = append(o.Adapters, serve.Adapter{Name: s.wanted.Name, Dir: s.folder, State: s.state})
	}
	return serve.Open(p.Folder, o)
}

// guards let paid requests through to a model: those of each model through the channels of its place.
func (p *Provider) guards(m hosting.Model, chain string) hosting.Several {
	first, byName := (*hosting.Provider)(nil), map[string]*hosting.Provider{}
	for _, s := range p.seats() {
		g := hosting.New(m, hosting.Terms{Chain: chain, Place: s.place, Coin: p.coin.Coin, Receipt: p.receipt(s, chain)},
			s.redeems.Vouchers, s.redeems.Look)
		if byName[s.wanted.Name] = g; first == nil {
			first = g
		}
	}
	return hosting.Join(first, byName)
}

// receipt signs answers of a model.
func (p *Provider) receipt(s *seat, chain string) func(openai.Result) ([]byte, error) {
	by := signer.Signer{Model: s.checked, Chain: chain, Number: s.wanted.ID, Key: p.Key}
	return func(made openai.Result) ([]byte, error) {
		signed, err := by.Sign(made.Drawn, p.height.Load())
		if err != nil {
			return nil, err
		}
		return signed.Encode(), nil
	}
}

// redeem redeems the vouchers of a model until the context ends.
func (p *Provider) redeem(ctx context.Context, c *client.Client, s *seat) error {
	next, err := client.Heights(ctx, c)
	if err != nil {
		return err
	}
	return s.redeems.Run(ctx, func(ctx context.Context) (int64, error) {
		height, err := next(ctx)
		if s == &p.base {
			p.height.Store(max(height, p.height.Load()))
		}
		return height, err
	})
}
