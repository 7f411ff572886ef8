package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// TransactAs lets the account of a folder do something on a network: that of a party, or the operator of a validator.
// Without a network it is that of the folder.
func TransactAs(ctx context.Context, dir, network string, do func(context.Context, *client.Client) error) error {
	secret, err := identity.ReadSecret(dir)
	if errors.Is(err, identity.ErrNoSecret) {
		f, err := keystore.ReadParty(dir)
		if err != nil {
			return err
		}
		h, err := home.Read(dir)
		if err != nil {
			return err
		}
		return session.TransactAs(ctx, h.Account(), cmp.Or(network, f.Network), do)
	}
	if err != nil {
		return err
	}
	if network == "" {
		f, err := keystore.ReadValidator(dir)
		if err != nil {
			return err
		}
		network = "http://" + f.RPC
	}
	return session.TransactAs(ctx, wallet.NewKey(identity.KeysOf(secret).Operator.Key), network, do)
}

// Query asks a network something.
func Query[T any](ctx context.Context, network string,
	what func(context.Context, *client.Client) (T, error)) (answer T, err error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return answer, err
	}
	defer c.Close()
	return what(ctx, c)
}

// OfferSpec is what an account offers with Offer.
type OfferSpec struct {
	Class  crew.Role // of the work
	Price  uint64    // uzen per 10^15 operations; or
	Hourly uint64    // uzen for an hour of the machine
	Slots  uint32    // runs at a time; 0: the offer is withdrawn
	Pool   bool      // for every worker that named the account
	Prices coins.Prices
}

// Offer makes an offer of an account, and returns what can be matched of it. One that speaks for a pool and takes part
// in nothing is registered without a role.
func Offer(ctx context.Context, c *client.Client, o OfferSpec) ([]MarketOffer, error) {
	if err := offer(ctx, c, o); err != nil {
		return nil, err
	}
	of := map[string]bool{c.Address(): !o.Pool}
	if o.Pool {
		all, err := c.Registry.Participants(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			of[p.ID] = p.Pool == c.Address()
		}
	}
	lots, err := offersOf(ctx, c)
	return slices.DeleteFunc(lots, func(l MarketOffer) bool { return !of[l.ID] || l.Role != o.Class }), err
}

func offer(ctx context.Context, c *client.Client, o OfferSpec) error {
	switch {
	case o.Pool:
		_, err := c.Registry.Participant(ctx, c.Address())
		if errors.Is(err, client.ErrNotFound) {
			err = c.Registry.Register(ctx, registry.Participant{PeerID: "pool"})
		}
		if err != nil {
			return err
		}
	}
	asks, err := o.Prices.Asks(ctx, c.Market)
	if err != nil {
		return err
	}
	return c.Market.OfferIn(ctx, marketpb.MsgOffer{Role: registrypb.Role(o.Class), Price: o.Price, Hourly: o.Hourly,
		Slots: o.Slots, Pool: o.Pool, Asks: asks, Foreign: o.Prices.Foreign})
}
