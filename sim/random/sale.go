package random

import (
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/sim/random/abroad"
	"github.com/starling-network/starling/sim/random/ask"
	"github.com/starling-network/starling/sim/random/backers"
	"github.com/starling-network/starling/sim/random/contests"
	"github.com/starling-network/starling/sim/random/groups"
	"github.com/starling-network/starling/sim/random/hosts"
	"github.com/starling-network/starling/sim/random/lies"
	"github.com/starling-network/starling/sim/random/listings"
	"github.com/starling-network/starling/sim/random/wares"
)

var ofSale = []saying{{weight: 160, of: &salepb.MsgOrder{}, say: func(x *msgFactory) error {
	c, price := purse(x)
	return submitAs(x)(wares.Next(x.ctx, x.Source, struct {
		module.Sale
		module.Catalog
	}{x.Sale, x.Catalog}, x.Address(), c, price))
}}}

var ofCatalog = []saying{{weight: 200, of: &catalogpb.MsgList{}, say: func(x *msgFactory) error {
	c, amount := purse(x)
	return submitAs(x)(listings.Next(x.ctx, x.Source, x.Client, c, amount))
}}}

var ofArena = []saying{{weight: 200, of: &arenapb.MsgEnter{}, say: func(x *msgFactory) error {
	c, amount := purse(x)
	return submitAs(x)(contests.Next(x.ctx, x.Source, x.Client, c, amount))
}}, {weight: 80, of: &arenapb.MsgJoin{}, say: func(x *msgFactory) error {
	c, amount := purse(x)
	return submitAs(x)(groups.Next(x.ctx, x.Source, x.Client, c, amount))
}}}

var ofDelegation = []saying{{weight: 80, of: &delegationpb.MsgDelegate{}, say: func(x *msgFactory) error {
	return submitAs(x)(backers.Next(x.ctx, x.Source, x.Client, x.spend()))
}}}

// submitAs submits a message of an account that was drawn with it; "": there is none.
func submitAs(x *msgFactory) func(sender string, m sdk.Msg, err error) error {
	return func(sender string, m sdk.Msg, err error) error {
		if err == nil && sender != "" && x.as(sender) {
			_, err = x.Submit(x.ctx, m)
		}
		return err
	}
}

var ofPayout = []saying{{weight: 30, of: &payoutpb.MsgWithdraw{}, say: func(x *msgFactory) error {
	return abroad.Say(x.ctx, x.Client, x.Source, chainID, x.spend())
}}}

var ofHosting = []saying{{weight: 160, of: &hostingpb.MsgRedeem{}, say: func(x *msgFactory) error {
	jobs, err := x.Training.Runs(x.ctx, false)
	if err != nil {
		return err
	}
	c, amount := purse(x)
	if x.Often(25) {
		return submitAs(x)(lies.Next(x.ctx, x.Source, x.Hosting, chainID, x.Address(), ask.Keys(x.data)))
	}
	return submitAs(x)(hosts.Next(x.ctx, x.Source, x.Hosting, chainID, x.Address(), jobs, c, amount))
}}}
