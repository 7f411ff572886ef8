package random

import (
	"errors"

	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"

	"github.com/starling-network/starling/chain/adapter"
	xmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/genesis"
	"github.com/starling-network/starling/sim/random/orders"
)

func marketParams(d draw.Source) market.Params {
	return market.Params{FeePPM: uint32(d.Intn(200_000)), PauseBlocks: d.UpTo(1, 40), GasPrice: d.Below(1_000_000)}
}

func marketGenesis(d draw.Source) map[string][]entry {
	g := map[string][]entry{"params": {{"item", marketParams(d)}}}
	for _, c := range genesis.Foreign {
		g["coins"], g["symbols"] = append(g["coins"], entry{c.Denom, c}), append(g["symbols"], entry{c.Symbol, c.Denom})
	}
	return g
}

var marketProposals = []simsx.SimMsgFactoryX{
	governed(func(d draw.Source, authority string) *marketpb.MsgUpdateParams {
		p := marketParams(d)
		return &marketpb.MsgUpdateParams{Authority: authority,
			Params: marketpb.FromParams(p)}
	}),
	governed(func(d draw.Source, authority string) *marketpb.MsgRegisterCoin {
		c := draw.Pick(d, genesis.Foreign)
		return &marketpb.MsgRegisterCoin{Authority: authority, Denom: c.Denom, Symbol: c.Symbol, Decimals: c.Exponent,
			Waiting: 1 + d.Below(1_000_000), Closed: d.Often(20)}
	}),
	governed(func(d draw.Source, authority string) *distrtypes.MsgCommunityPoolSpend {
		return &distrtypes.MsgCommunityPoolSpend{Authority: authority, Recipient: authority,
			Amount: adapter.Coins(1 + d.Below(1_000_000))}
	}),
}

var ofMarket = []saying{
	{weight: 80, of: &marketpb.MsgOffer{}, say: participant((*msgFactory).offer)},
	{weight: 50, of: &marketpb.MsgOrder{}, say: (*msgFactory).order},
	{weight: 4, of: &marketpb.MsgCancelOrder{},
		say: consumer(func(x *msgFactory, o module.OrderStatus) error { return x.Market.CancelOrder(x.ctx, o.ID) })},
	{weight: 15, of: &marketpb.MsgPauseJob{}, say: consumer(func(x *msgFactory, o module.OrderStatus) error {
		if o.Status != string(xmarket.Running) {
			return nil
		}
		return x.Market.PauseJob(x.ctx, o.ID)
	})},
	{weight: 30, of: &marketpb.MsgResumeJob{}, say: consumer(func(x *msgFactory, o module.OrderStatus) error {
		if o.Status != string(xmarket.Paused) {
			return nil
		}
		return x.Market.ResumeJob(x.ctx, o.ID)
	})},
	{weight: 15, of: &marketpb.MsgTopUpJob{},
		say: consumer(topUp)},
}

// offer offers the work of a participant, of a machine by the hour, or of a pool.
func (x *msgFactory) offer() error {
	p, err := x.Registry.Participant(x.ctx, x.Address())
	if err != nil {
		return err
	}
	slots := uint32(x.Intn(5))
	if x.Often(60) {
		return offerIn(x, draw.Pick(x.Source, p.Roles), slots)
	}
	switch x.Intn(5) {
	case 0:
		return x.Market.OfferPool(x.ctx, x.Below(1500), slots)
	case 1:
		return x.Market.OfferHourly(x.ctx, draw.Pick(x.Source, p.Roles), x.Below(1_000_000), slots)
	}
	return x.Market.Offer(x.ctx, draw.Pick(x.Source, p.Roles), x.Below(1000), slots)
}

// order orders a small run.
func (x *msgFactory) order() error {
	c, budget := purse(x)
	return x.Market.Order(x.ctx, orders.Next(x.Source, c, budget, x.ctx.BlockHeight()), nil)
}

// consumer makes a message of the consumer of an active job about that job.
func consumer(say func(*msgFactory, module.OrderStatus) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		jobs, err := x.Training.Runs(x.ctx, true)
		if err != nil {
			return err
		}
		orders, err := x.Market.Orders(x.ctx)
		for _, o := range orders {
			jobs = append(jobs, o.ID)
		}
		if err != nil || len(jobs) == 0 {
			return err
		}
		o, err := x.Market.PlacedOrder(x.ctx, draw.Pick(x.Source, jobs))
		if err == nil && x.as(o.Consumer) {
			err = say(x, o)
		}
		return err
	}
}

func rewardGenesis(d draw.Source) map[string][]entry {
	return map[string][]entry{"params": {{"item", genesis.Schedule(d)}}}
}

var rewardProposals = []simsx.SimMsgFactoryX{governed(func(d draw.Source, authority string) *rewardpb.MsgUpdateParams {
	s := genesis.Schedule(d)
	return &rewardpb.MsgUpdateParams{Authority: authority, Params: rewardpb.Params{
		PerEpoch: s.PerEpoch, Halving: s.Halving, BasePpm: s.BasePPM, WorkPpm: s.WorkPPM, BandwidthPpm: s.BandwidthPPM,
	}}
})}

var ofReward = []saying{
	{weight: 60, of: &rewardpb.MsgReport{}, say: func(x *msgFactory) error {
		s, err := x.run()
		if err != nil || len(s.Members) < 2 || !x.as(draw.Pick(x.Source, s.Members).ID) {
			return err
		}
		peer := draw.Pick(x.Source, s.Members).ID
		return x.Reward.ReportPeer(x.ctx, s.Terms.Job, peer,
			registry.Link{Bytes: x.Below(1 << 32), Millis: x.Below(100_000), RTT: uint32(x.Intn(200))})
	}},
	{weight: 15, of: &rewardpb.MsgPayRevenue{},
		say: model(func(x *msgFactory, job string) error { return x.Reward.PayRevenue(x.ctx, job, "", x.spend()) })},
	{weight: 20, of: &rewardpb.MsgClaimRevenue{}, say: model(func(x *msgFactory, job string) error {
		if all, err := x.Reward.Holders(x.ctx, job); err != nil || len(all) > 0 && !x.as(draw.Pick(x.Source, all).Who) {
			return err
		}
		return x.Reward.ClaimRevenue(x.ctx, job)
	})},
}

// model lets the account speak about the model of a job, of those whose models are owned most of the time.
func model(say func(*msgFactory, string) error) func(*msgFactory) error {
	return func(x *msgFactory) error {
		jobs, err := x.Training.Runs(x.ctx, false)
		for _, job := range draw.Mixed(x.Source, jobs) {
			if _, err := x.Reward.Model(x.ctx, job, ""); err == nil || x.Often(2) {
				return say(x, job)
			} else if !errors.Is(err, client.ErrNotFound) {
				return err
			}
		}
		return err
	}
}
