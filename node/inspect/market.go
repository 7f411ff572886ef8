package inspect

import (
	"context"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
)

// MarketOffer is an offer as it is matched, and the coin of its price and cover.
type MarketOffer struct {
	market.Listing
	Coin coin.Coin
}

// MarketOffers are the offers of a network as they are matched: one for each coin that an offer takes.
func MarketOffers(ctx context.Context, network string) ([]MarketOffer, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return offersOf(ctx, c)
}

func offersOf(ctx context.Context, c *client.Client) ([]MarketOffer, error) {
	lots, err := c.Market.Lots(ctx)
	if err != nil {
		return nil, err
	}
	known, err := c.Market.Coins(ctx)
	offers := make([]MarketOffer, len(lots))
	for i, l := range lots {
		offers[i].Listing = l
		for _, r := range known {
			if r.Denom == l.Denom {
				offers[i].Coin = r.Coin
			}
		}
	}
	return offers, err
}

// MarketCoins are the coins in which a network takes orders, its own first.
func MarketCoins(ctx context.Context, network string) ([]coin.Registered, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all, err := c.Market.Coins(ctx)
	return append([]coin.Registered{coin.Zen()}, all...), err
}

// MarketOrders are the open orders of a network.
func MarketOrders(ctx context.Context, network string) ([]module.OrderStatus, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Market.Orders(ctx)
}
