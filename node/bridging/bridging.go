// Package bridging connects to the two networks of a bridge, each with the account of a folder.
package bridging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/bridge"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
)

// Sides are the two networks, and the folders of the accounts that act on them.
type Sides struct {
	Home, Network    string // folder of an account, and HTTP interface of a validator
	OtherHome, Other string // of the other network; no folder: the same account there
	Channel          string // of the bridge on the first network; "" before it is open
	Say              func(string)
	Pause            time.Duration // between two looks for packets
}

// with connects to both networks.
func (s Sides) with(ctx context.Context, do func(ctx context.Context, here, there *bridge.Shore) error) error {
	other := s.OtherHome
	if other == "" {
		other = s.Home
	}
	return s.shore(ctx, s.Home, s.Network, func(here *bridge.Shore) error {
		return s.shore(ctx, other, s.Other, func(there *bridge.Shore) error {
			if s.Channel != "" {
				if err := bridge.Find(ctx, here, there, s.Channel); err != nil {
					return err
				}
			}
			return do(ctx, here, there)
		})
	})
}

func (s Sides) shore(ctx context.Context, home, network string, do func(*bridge.Shore) error) error {
	rpc, err := endpoint.Dial(network)
	if err != nil {
		return err
	}
	defer func() { _ = rpc.Stop() }() // fails only for one that does not run
	return session.TransactHome(ctx, home, network, func(_ context.Context, c *client.Client) error {
		return do(&bridge.Shore{Account: c, RPC: rpc})
	})
}

// Bridge is the two ends of a bridge, and the coins that cross it.
type Bridge struct {
	Here  bridge.End `json:"here"`
	There bridge.End `json:"there"`
	Coins []Voucher  `json:"coins"` // of the other network, as this one has them
}

// Voucher is a coin of the other network on this one.
type Voucher struct {
	Coin  coin.Coin `json:"coin"`
	Denom string    `json:"denom"` // on this network
}

// Symbol is a symbol with which the coin may be registered; "" leaves it open.
func (v Voucher) Symbol() string {
	if v.Coin.Denom == adapter.Denom {
		return ""
	}
	return v.Coin.Symbol
}

func found(ctx context.Context, here, there *bridge.Shore) (b Bridge, err error) {
	b = Bridge{Here: here.End, There: there.End, Coins: []Voucher{}}
	all, err := there.Account.Market.Coins(ctx)
	own := coin.Coin{Denom: adapter.Denom, Symbol: "zen", Exponent: uint32(coin.Coin{}.Digits())}
	for _, c := range append([]coin.Registered{{Coin: own}}, all...) {
		b.Coins = append(b.Coins, Voucher{c.Coin, here.End.Voucher(c.Denom)})
	}
	return b, err
}

// Open opens a bridge.
func (s Sides) Open(ctx context.Context) (b Bridge, err error) {
	err = s.with(ctx, func(ctx context.Context, here, there *bridge.Shore) error {
		if err := bridge.Open(ctx, here, there); err != nil {
			return err
		}
		b, err = found(ctx, here, there)
		return err
	})
	return b, err
}

// Show finds the ends of a bridge and its coins.
func (s Sides) Show(ctx context.Context) (b Bridge, err error) {
	err = s.with(ctx, func(ctx context.Context, here, there *bridge.Shore) error {
		b, err = found(ctx, here, there)
		return err
	})
	return b, err
}

// Send sends an amount from the account of this network to an account of the other one. It comes back if it is not
// relayed within a time.
func (s Sides) Send(ctx context.Context, to, text string, within time.Duration) (a coins.Amount, r transaction.Result,
	err error) {
	err = s.shore(ctx, s.Home, s.Network, func(here *bridge.Shore) error {
		if a, err = coins.Parse(ctx, here.Account.Market, text); err != nil {
			return err
		}
		here.End.Channel = s.Channel
		r, err = here.Send(ctx, to, adapter.CoinsOf(a.Coin, a.Grains)[0], within)
		return err
	})
	return a, r, err
}

// Relay relays packets in both directions until the context ends. A step that fails is tried again.
func (s Sides) Relay(ctx context.Context) error {
	return s.with(ctx, func(ctx context.Context, here, there *bridge.Shore) error {
		for {
			forth, err := bridge.Relay(ctx, here, there)
			back, failed := bridge.Relay(ctx, there, here)
			if ctx.Err() != nil {
				return nil
			}
			if err := errors.Join(err, failed); err != nil {
				s.Say(fmt.Sprintf("tries again: %v", err))
			}
			if forth+back > 0 {
				s.Say(fmt.Sprintf("%d steps of packets to %s, %d to %s", forth, there.End.ChainID, back, here.End.ChainID))
				continue
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(s.Pause):
			}
		}
	})
}
