package random

import (
	"github.com/starling-network/starling/chain/x/sale/salepb"
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
