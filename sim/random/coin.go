package random

import (
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/genesis"
)

// purse draws a coin, and an amount of it that the account has, most of the time.
func purse(x *msgFactory) (coin.Coin, uint64) {
	if x.Often(40) {
		return coin.Coin{}, x.spend()
	}
	c := draw.Pick(x.Source, genesis.Foreign).Coin
	return c, spendIn(x, c)
}

// spendIn is spend in grains of another coin.
func spendIn(x *msgFactory, c coin.Coin) uint64 {
	has, _ := c.Grains(x.me.LiquidBalance().AmountOf(c.Denom).BigInt())
	if has == 0 {
		return 0
	}
	n := 1 + x.Below(has)>>x.Intn(12)
	x.me.LiquidBalance().BlockAmount(adapter.CoinsOf(c, n)[0])
	return n
}

// topUp adds to a budget, in its coin, and now and then tries to add another coin.
func topUp(x *msgFactory, o module.OrderStatus) error {
	c := o.Coin
	if x.Often(10) {
		c, _ = purse(x)
	}
	if c.Own() {
		return x.Market.TopUpJob(x.ctx, o.ID, c, x.spend())
	}
	return x.Market.TopUpJob(x.ctx, o.ID, c, spendIn(x, c))
}

// offerIn offers work in several coins.
func offerIn(x *msgFactory, class crew.Role, slots uint32) error {
	m := marketpb.MsgOffer{Role: registrypb.Role(class), Price: x.Below(1000), Slots: slots, Foreign: x.Often(20)}
	for _, c := range genesis.Foreign {
		if x.Often(80) {
			m.Asks = append(m.Asks, marketpb.Ask{Denom: c.Denom, Price: x.Below(1000)})
		}
	}
	return x.Market.OfferIn(x.ctx, m)
}

// stakeCoin stakes another coin.
func stakeCoin(x *msgFactory) error {
	c := draw.Pick(x.Source, genesis.Foreign).Coin
	return x.Stakes.Add(x.ctx, "", c, spendIn(x, c))
}
