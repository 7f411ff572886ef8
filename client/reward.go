package client

import (
	"context"
	"slices"

	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
)

// ReportPeer says what the account fetched from another member of a run since its last report, and how far away it is.
func (c *Client) ReportPeer(ctx context.Context, job, peer string, l registry.Link) error {
	return c.send(ctx, &rewardpb.MsgReport{Sender: c.Address(), Job: job, Peer: peer, Bytes: l.Bytes, Millis: l.Millis,
		Rtt: l.RTT})
}

// Links are what the members of a run reported of each other in the epoch that goes on; of everybody if job is "". At
// most a thousand are told.
func (c *Client) Links(ctx context.Context, job string) ([]registry.Measured, error) {
	r, err := rewardpb.NewQueryClient(c.conn).Links(ctx, &rewardpb.QueryLinksRequest{Job: job})
	return list[registry.Measured](r.GetLinks(), err)
}

// PayRevenue pays revenue of the model of a job, in uzen, to who holds its shares.
func (c *Client) PayRevenue(ctx context.Context, job string, amount uint64) error {
	return c.send(ctx, &rewardpb.MsgPayRevenue{Sender: c.Address(), Job: job, Amount: amount})
}

// ClaimRevenue takes what the account's shares of the model of a job have earned.
func (c *Client) ClaimRevenue(ctx context.Context, job string) error {
	return c.send(ctx, &rewardpb.MsgClaimRevenue{Sender: c.Address(), Job: job})
}

// Held is a model whose shares are held, and what one holder has of it.
type Held struct {
	reward.Model
	Shares uint64
	Due    uint64 // uzen that it may claim
}

// Model is the model of a job, and what an account holds of it; ErrNotFound if its order granted no shares or its run
// goes on.
func (c *Client) Model(ctx context.Context, job, holder string) (Held, error) {
	r, err := rewardpb.NewQueryClient(c.conn).Model(ctx, &rewardpb.QueryModelRequest{Job: job, Holder: holder})
	m, err := one[reward.Model](r.GetModel(), err)
	return Held{m, r.GetShares(), r.GetDue()}, err
}

// Schedule is that of the emission.
func (c *Client) Schedule(ctx context.Context) (reward.Schedule, error) {
	r, err := rewardpb.NewQueryClient(c.conn).Params(ctx, &rewardpb.QueryParamsRequest{})
	return one[reward.Schedule](r.GetParams(), err)
}

// Penalty is what a verdict costs and pays.
func (c *Client) Penalty(ctx context.Context) (reward.Penalty, error) {
	r, err := trainingpb.NewQueryClient(c.conn).Params(ctx, &trainingpb.QueryParamsRequest{})
	return one[reward.Penalty](r.GetParams(), err)
}

// Book are the receipts of an epoch (epoch/NUMBER) or of the revenue of a model (model/JOB), in order: most of them
// from a number on, or with 0 all.
func (c *Client) Book(ctx context.Context, book string, from uint64, most int) (all []reward.Receipt, err error) {
	for most == 0 || len(all) < most {
		r, err := rewardpb.NewQueryClient(c.conn).Book(ctx,
			&rewardpb.QueryBookRequest{Book: book, From: from + uint64(len(all)), Limit: uint32(most)})
		page, err := list[reward.Receipt](r.GetReceipts(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// Rewarded are the receipts of an account of epochs and of the revenue of models, the latest first; the latest
// thousand.
func (c *Client) Rewarded(ctx context.Context, account string) ([]reward.Receipt, error) {
	r, err := rewardpb.NewQueryClient(c.conn).Receipts(ctx, &rewardpb.QueryReceiptsRequest{Account: account})
	return list[reward.Receipt](r.GetReceipts(), err)
}

// Earnings are the receipts of an account: those that are Rewarded, then those of every job, in order of job.
func (c *Client) Earnings(ctx context.Context, account string) ([]reward.Receipt, error) {
	all, err := c.Rewarded(ctx, account)
	if err != nil {
		return nil, err
	}
	jobs, err := c.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		receipts, err := c.Receipts(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(receipts, func(r reward.Receipt) bool { return r.Who != account })...)
	}
	return all, nil
}
