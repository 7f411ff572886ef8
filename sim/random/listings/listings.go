// Package listings draws messages of the catalog: listings of works that are made from others and that orders name, and
// the trade with shares of their revenue.
package listings

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/sim/random/draw"
	"github.com/starling-network/starling/sim/random/wares"
)

// Work is the digest of the work of a job: one of a few, so that some orders name the digests of listings.
func Work(job string) canon.Digest { return work(job[len(job)-1:]) }

func work(digit string) canon.Digest { return canon.Sum("random/listings", []byte(digit)) }

// Next is any message of the catalog, or about the revenue of a listed work, and its sender; "": there is none. me
// lists, buys and pays, in a coin of which it can spend an amount.
func Next(ctx context.Context, d draw.Source, c *client.Client, in coin.Coin, amount uint64) (sender string, m sdk.Msg,
	_ error) {
	me := c.Address()
	switch n := d.Intn(22); {
	case n < 4:
		return list(ctx, d, c)
	case n < 8:
		return offer(ctx, d, c, in)
	case n < 13:
		return trade(ctx, d, c)
	case n < 15:
		return prove(ctx, d, c)
	}
	pool, err := pool(ctx, d, c)
	if err != nil || pool == "" {
		return "", nil, err
	}
	if d.Often(60) {
		return me, &rewardpb.MsgPayRevenue{Sender: me, Job: pool, Amount: amount, Denom: in.Denom}, nil
	}
	h, err := holder(ctx, d, c, pool)
	return h.Who, &rewardpb.MsgClaimRevenue{Sender: h.Who, Job: pool}, err
}

// pool is a listed work, or a job whose model is owned, most of the time.
func pool(ctx context.Context, d draw.Source, c *client.Client) (string, error) {
	listed, err := c.Catalog.Listings(ctx, 0)
	if err != nil {
		return "", err
	}
	if len(listed) > 0 && d.Often(70) {
		return draw.Pick(d, listed).Pool(), nil
	}
	job, _, err := owned(ctx, d, c)
	return job, err
}

// owned is a job whose model is owned, and its consumer; "": there is none.
func owned(ctx context.Context, d draw.Source, c *client.Client) (job, consumer string, err error) {
	jobs, err := c.Training.Runs(ctx, false)
	for _, job := range draw.Mixed(d, jobs) {
		if _, err := c.Reward.Model(ctx, job, ""); errors.Is(err, client.ErrNotFound) {
			continue
		} else if err != nil {
			return "", "", err
		}
		o, err := c.Market.PlacedOrder(ctx, job)
		return job, o.Consumer, err
	}
	return "", "", err
}

func holder(ctx context.Context, d draw.Source, c *client.Client, pool string) (reward.ShareBalance, error) {
	all, err := c.Reward.Holders(ctx, pool)
	if err != nil || len(all) == 0 {
		return reward.ShareBalance{}, err
	}
	return draw.Pick(d, all), nil
}

// list lists a work with some parents, now and then with a digest of another account, or a job of another.
func list(ctx context.Context, d draw.Source, c *client.Client) (string, sdk.Msg, error) {
	m := &catalogpb.MsgList{Sender: c.Address(), Kind: string(catalog.Model), Title: fmt.Sprintf("%x", d.Uint64()),
		Licence: "Apache-2.0", Files: wares.Index[:], Royalty: uint32(d.Below(catalog.MaxRoyalty + 1000))}
	if d.Often(50) {
		var err error
		if m.Job, m.Sender, err = owned(ctx, d, c); err != nil || m.Job == "" {
			return "", nil, err
		}
	}
	if d.Often(10) {
		m.Sender = c.Address()
	}
	all, err := c.Catalog.Listings(ctx, 0)
	for _, l := range all {
		if len(m.Parents) < catalog.MaxParents && d.Often(30) {
			m.Parents = append(m.Parents, l.ID)
		}
	}
	if d.Often(40) {
		digest := work(fmt.Sprintf("%x", d.Intn(16)))
		m.Digests = [][]byte{digest[:]}
	}
	return m.Sender, m, err
}

// offer offers shares of a holder, now and then more than it has.
func offer(ctx context.Context, d draw.Source, c *client.Client, in coin.Coin) (string, sdk.Msg, error) {
	pool, err := pool(ctx, d, c)
	if err != nil || pool == "" {
		return "", nil, err
	}
	h, err := holder(ctx, d, c, pool)
	return h.Who, &catalogpb.MsgOfferShares{Sender: h.Who, Job: pool, Shares: 1 + d.Below(h.Shares+2)>>d.Intn(8),
		Price: 1 + d.Below(100), Denom: in.Denom}, err
}

// trade buys some or all shares of an offer, or withdraws it.
func trade(ctx context.Context, d draw.Source, c *client.Client) (string, sdk.Msg, error) {
	offers, err := c.Catalog.ShareOffers(ctx, d.Often(10))
	if err != nil || len(offers) == 0 {
		return "", nil, err
	}
	o := draw.Pick(d, offers)
	if d.Often(25) {
		return o.Seller, &catalogpb.MsgWithdrawShares{Sender: o.Seller, Offer: o.ID}, nil
	}
	shares := o.Left
	if d.Often(60) {
		shares = 1 + d.Below(o.Left+1)
	}
	return c.Address(), &catalogpb.MsgBuyShares{Sender: c.Address(), Offer: o.ID, Shares: shares}, nil
}
