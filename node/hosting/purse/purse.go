// Package purse is the payer's side of hosting: the channels through which an account pays providers, within a budget,
// and the vouchers that it signs. It sends no requests: node/hosting/gateway does for answers of models, and
// node/hosting/pages for pages of data.
package purse

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// Network is the part of a network that a payer needs.
type Network interface {
	Places(ctx context.Context, model uint64) ([]hosting.Place, error)
	// Channels lists the open channels of an account, as provider or as payer.
	Channels(ctx context.Context, account string, provider bool) ([]hosting.Channel, error)
	// Open opens a channel. The network takes a key of an account once.
	Open(ctx context.Context, p hosting.Place, key []byte, amount uint64) (uint64, error)
	Fund(ctx context.Context, channel, amount uint64) error
	Close(ctx context.Context, channel uint64) error
}

// Errors of payments.
var (
	ErrBudget   = errors.New("the budget is spent, or locked in channels of other providers")
	ErrOverbill = errors.New("the provider asks for more than was agreed")
)

const (
	fileChannels = "channels.json"
	deposits     = 10 // a new channel holds this part of the budget for a model, or a few requests
	requests     = 4  // that a new channel holds at least
	unread       = 16 // requests that a provider may charge for and that broke off, with those whose reader left
)

// channel is a channel of the purse.
type channel struct {
	Provider string             `json:"provider"`
	Model    uint64             `json:"model"` // number
	Key      ed25519.PrivateKey `json:"key"`
	ID       uint64             `json:"channel"` // 0: the network may have it, or not
	Locked   uint64             `json:"locked"`  // grains
	Signed   uint64             `json:"signed"`  // grains of the largest voucher
	Spent    uint64             `json:"spent"`   // grains that answers cost
	Over     bool               `json:"over,omitempty"`

	pending uint64
	unknown uint64 // grains that answers may have cost whose end the gateway did not wait for
}

// Purse pays providers through channels, within a budget. Its file has the keys of the channels.
type Purse struct {
	path    string
	chain   string
	account string
	network Network
	budget  uint64
	deposit uint64 // grains of a new channel, or those of a few requests

	open sync.Mutex // held while a channel is opened or funded
	mu   sync.Mutex
	list []*channel
}

// Config is whose purse it is, and what it may spend.
type Config struct {
	Dir     string // of the channels, which one process uses at a time
	Chain   string
	Account string
	Network Network
	Budget  uint64 // grains that channels may hold together, with those that are spent
	Models  int    // that are paid from the purse; 0: one
}

// Open reads the channels of a folder, and finds those that are open.
func Open(ctx context.Context, c Config) (*Purse, error) {
	p := &Purse{path: In(c.Dir), chain: c.Chain, account: c.Account, network: c.Network, budget: c.Budget,
		deposit: c.Budget / deposits / uint64(max(1, c.Models))}
	err := folder.ReadJSON(p.path, &p.list)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	return p, p.look(ctx)
}

// look compares the channels with those of the network: one that is gone has cost what was spent at most.
func (p *Purse) look(ctx context.Context) error {
	have, err := p.network.Channels(ctx, p.account, false)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.list {
		if len(c.Key) != ed25519.PrivateKeySize {
			return fmt.Errorf("%s: a key of %d bytes", p.path, len(c.Key))
		}
		i := slices.IndexFunc(have, func(h hosting.Channel) bool { return string(h.Key) == string(c.public()) })
		switch {
		case i >= 0:
			c.ID, c.Locked, c.Over = have[i].ID, have[i].Locked, have[i].Until > 0
			c.Model = have[i].Model
			c.Spent = max(c.Spent, have[i].Redeemed)
			c.Signed = max(c.Signed, c.Spent)
			c.unknown = max(c.unknown, c.Signed-c.Spent) // of a process before this one
		default:
			c.Over, c.Locked = true, min(c.Locked, c.Signed) // it was redeemed up to this at most
		}
	}
	return p.write()
}

func (c *channel) public() ed25519.PublicKey { return c.Key.Public().(ed25519.PublicKey) }

// write needs the lock.
func (p *Purse) write() error { return folder.WriteSecretJSON(p.path, p.list) }

// Probe is a voucher for nothing, which tells the provider of a place the channel of a request that is not paid yet;
// "": there is no channel.
func (p *Purse) Probe(place hosting.Place) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.of(place); c != nil && c.ID > 0 {
		return p.sign(c, 0)
	}
	return ""
}

func (p *Purse) sign(c *channel, amount uint64) string {
	return x402.Pay(hosting.Voucher{Chain: p.chain, Channel: c.ID, Amount: amount}.Sign(c.Key))
}

// of is the open channel of a place, or nil.
func (p *Purse) of(place hosting.Place) *channel {
	i := slices.IndexFunc(p.list, func(c *channel) bool {
		return c.Provider == place.Provider && c.Model == place.Model && !c.Over
	})
	if i < 0 {
		return nil
	}
	return p.list[i]
}

// locked is the part of the budget that is in channels.
func (p *Purse) locked() (sum uint64) {
	for _, c := range p.list {
		sum += c.Locked
	}
	return sum
}

// Spent are the grains that answers cost.
func (p *Purse) Spent() (sum uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.list {
		sum += c.Spent
	}
	return sum
}

// Hold is the part of a channel that a request under way can cost.
type Hold struct {
	purse *Purse
	c     *channel
	most  uint64
}

// Most is the most that the request can cost, in grains.
func (h *Hold) Most() uint64 { return h.most }

// Pay signs a voucher for a request at a place by its terms, and opens or funds the channel if need be.
func (p *Purse) Pay(ctx context.Context, place hosting.Place, t x402.Terms) (*Hold, string, error) {
	p.open.Lock()
	defer p.open.Unlock()
	c, total, short, err := p.need(place, t)
	if err != nil {
		return nil, "", err
	}
	if short > 0 {
		if c, err = p.provide(ctx, place, c, short); err != nil {
			return nil, "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Signed = max(c.Signed, total)
	if err := p.write(); err != nil {
		return nil, "", err
	}
	c.pending += t.Extra.Most
	return &Hold{purse: p, c: c, most: t.Extra.Most}, p.sign(c, c.Signed), nil
}

// need is the channel of a place, the total that its next voucher is for, and the grains that it lacks.
func (p *Purse) need(place hosting.Place, t x402.Terms) (c *channel, total, short uint64, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c = p.of(place); c == nil {
		return nil, t.Extra.Most, t.Extra.Most, nil
	}
	total = c.Spent + c.pending + t.Extra.Most
	if t.Extra.Channel == c.ID && t.Extra.Total > total {
		// It has charged a request whose answer did not arrive: by vouchers that were signed, or not at all.
		if t.Extra.Total > c.Signed+t.Extra.Most {
			return c, 0, 0, fmt.Errorf("%w: a voucher for %d grains, and %d were signed", ErrOverbill, t.Extra.Total, c.Signed)
		}
		if lost := t.Extra.Total - total; lost > c.unknown+unread*t.Extra.Most {
			return c, 0, 0, fmt.Errorf("%w: %d grains for answers that did not arrive", ErrOverbill, lost)
		}
		total = t.Extra.Total
	}
	return c, total, total - min(total, c.Locked), nil
}

// provide opens the channel of a place, or funds it, with at least some grains.
func (p *Purse) provide(ctx context.Context, place hosting.Place, c *channel, short uint64) (*channel, error) {
	p.mu.Lock()
	left := p.budget - min(p.budget, p.locked())
	p.mu.Unlock()
	amount := min(max(p.deposit, requests*short), left)
	if amount < short {
		return nil, fmt.Errorf("%w: %d grains are left of %d, and %d are needed", ErrBudget, left, p.budget, short)
	}
	if c != nil && c.ID > 0 {
		if err := p.network.Fund(ctx, c.ID, amount); err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		c.Locked += amount
		return c, p.write()
	}
	if c == nil {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		c = &channel{Provider: place.Provider, Model: place.Model, Key: key}
	}
	c.Locked = amount
	p.mu.Lock()
	if p.of(place) == nil {
		p.list = append(p.list, c)
	}
	err := p.write() // before the network has it
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	id, err := p.network.Open(ctx, place, c.public(), amount)
	if err != nil {
		return nil, errors.Join(err, p.look(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.ID = id
	return c, p.write()
}

// Settle ends a hold with the cost of its request.
func (h *Hold) Settle(cost uint64) error {
	h.purse.mu.Lock()
	defer h.purse.mu.Unlock()
	h.c.pending -= h.most
	h.c.Spent += min(cost, h.most) // more was not signed
	return h.purse.write()
}

// Left is called before Settle for a request whose reader has left: the provider may charge the tokens so far.
func (h *Hold) Left() {
	h.purse.mu.Lock()
	defer h.purse.mu.Unlock()
	h.c.unknown += h.most
}

// Close asks to close all channels.
func (p *Purse) Close(ctx context.Context) (closed int, _ error) {
	if err := p.look(ctx); err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.list {
		if c.Over || c.ID == 0 {
			continue
		}
		if err := p.network.Close(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		c.Over = true
		closed++
	}
	return closed, errors.Join(append(errs, p.write())...)
}

// In is the file of the channels of a folder.
func In(dir string) string { return filepath.Join(dir, fileChannels) }
