package inspect

import (
	"context"

	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/market"
)

// MarketOffers are the offers of a network as they are matched.
func MarketOffers(ctx context.Context, network string) ([]market.Listing, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Market.Lots(ctx)
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
