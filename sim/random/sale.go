package random

import (
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/sim/random/abroad"
	"github.com/starling-network/starling/sim/random/wares"
)

var ofSale = []saying{{weight: 160, of: &salepb.MsgOrder{}, say: func(x *msgFactory) error {
	c, price := purse(x)
	sender, m, err := wares.Next(x.ctx, x.Source, x.Sale, x.Address(), c, price)
	if err == nil && sender != "" && x.as(sender) {
		_, err = x.Submit(x.ctx, m)
	}
	return err
}}}

var ofPayout = []saying{{weight: 30, of: &payoutpb.MsgWithdraw{}, say: func(x *msgFactory) error {
	return abroad.Say(x.ctx, x.Client, x.Source, chainID, x.spend())
}}}
