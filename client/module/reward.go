package module

import (
	"cmp"
	"context"
	"slices"

	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/x/catalog"
	chainreward "github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
)

// Reward sends the messages and the queries of x/reward: the payments of epochs and models, and their receivers.
type Reward struct {
	account  Account
	training Training
}

// ReportPeer reports the bytes that the account fetched from another member of a run since its last report, and the
// round-trip time.
func (w Reward) ReportPeer(ctx context.Context, job, peer string, l registry.Link) error {
	return send(ctx, w.account, &rewardpb.MsgReport{Sender: w.account.Address(), Job: job, Peer: peer, Bytes: l.Bytes,
		Millis: l.Millis, Rtt: l.RTT})
}

// Links are the reports of members of a run about each other in the current epoch; of all participants if job is "".
// At most a thousand are returned.
func (w Reward) Links(ctx context.Context, job string) ([]registry.Measured, error) {
	r, err := rewardpb.NewQueryClient(w.account).Links(ctx, &rewardpb.QueryLinksRequest{Job: job})
	return query.List[registry.Measured](r.GetLinks(), err)
}

// PayRevenue pays revenue of the model of a job, or of listing/NUMBER, in grains of a coin, to the holders of its
// shares and of those of the works that it was made from.
func (w Reward) PayRevenue(ctx context.Context, job, denom string, amount uint64) error {
	return send(ctx, w.account,
		&rewardpb.MsgPayRevenue{Sender: w.account.Address(), Job: job, Amount: amount, Denom: denom})
}

// ClaimRevenue claims the revenue of the account's shares of the model of a job, in all coins.
func (w Reward) ClaimRevenue(ctx context.Context, job string) error {
	return send(ctx, w.account, &rewardpb.MsgClaimRevenue{Sender: w.account.Address(), Job: job})
}

// Held is a model whose shares are held, with the shares of one holder.
type Held struct {
	reward.Model
	Shares uint64
	Due    uint64     // uzen that it may claim
	Coins  []CoinHeld // its revenue in other coins
}

// CoinHeld is the revenue of a model in another coin than the network's own.
type CoinHeld struct {
	reward.Model
	Due uint64 // grains that the holder may claim
}

// Model is the model of a job, and an account's shares of it; ErrNotFound if its order granted no shares or its run is
// not over.
func (w Reward) Model(ctx context.Context, job, holder string) (Held, error) {
	r, err := rewardpb.NewQueryClient(w.account).Model(ctx, &rewardpb.QueryModelRequest{Job: job, Holder: holder})
	m, err := query.One[reward.Model](r.GetModel(), err)
	h := Held{m, r.GetShares(), r.GetDue(), nil}
	for _, c := range r.GetCoins() {
		m, err := query.One[reward.Model](c.Model, nil)
		if err != nil {
			return h, err
		}
		h.Coins = append(h.Coins, CoinHeld{m, c.Due})
	}
	return h, err
}

// Schedule is that of the emission.
func (w Reward) Schedule(ctx context.Context) (reward.Schedule, error) {
	r, err := rewardpb.NewQueryClient(w.account).Params(ctx, &rewardpb.QueryParamsRequest{})
	return query.One[reward.Schedule](r.GetParams(), err)
}

// Book are the receipts of an epoch (epoch/NUMBER) or of the revenue of a model (model/JOB), in order: most of them
// from a number on, or with 0 all.
func (w Reward) Book(ctx context.Context, book string, from uint64, most int) (all []reward.Receipt, err error) {
	for most == 0 || len(all) < most {
		r, err := rewardpb.NewQueryClient(w.account).Book(ctx,
			&rewardpb.QueryBookRequest{Book: book, From: from + uint64(len(all)), Limit: uint32(most)})
		page, err := query.List[reward.Receipt](r.GetReceipts(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
	return all, nil
}

// Rewarded are the receipts of an account of epochs and of the revenue of models, the latest first; the latest
// thousand.
func (w Reward) Rewarded(ctx context.Context, account string) ([]reward.Receipt, error) {
	r, err := rewardpb.NewQueryClient(w.account).Receipts(ctx, &rewardpb.QueryReceiptsRequest{Account: account})
	return query.List[reward.Receipt](r.GetReceipts(), err)
}

// Earnings are the receipts of an account: those that are Rewarded, then those of every job, in order of job.
func (w Reward) Earnings(ctx context.Context, account string) ([]reward.Receipt, error) {
	all, err := w.Rewarded(ctx, account)
	if err != nil {
		return nil, err
	}
	jobs, err := w.training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		receipts, err := w.training.Receipts(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(receipts, func(r reward.Receipt) bool { return r.Who != account })...)
	}
	return all, nil
}

// Holders are the owners of shares of the model of a job, the most first, then in order of account. Shares that are
// offered are their sellers'.
func (w Reward) Holders(ctx context.Context, job string) (all []reward.ShareBalance, err error) {
	offers, err := Catalog{Account: w.account}.ShareOffers(ctx, false)
	if err != nil {
		return nil, err
	}
	shares := map[string]uint64{}
	for _, o := range offers {
		if o.Pool == job {
			shares[o.Seller] += o.Left
		}
	}
	var next []byte
	for {
		r, err := banktypes.NewQueryClient(w.account).DenomOwners(ctx,
			&banktypes.QueryDenomOwnersRequest{Denom: chainreward.Denom(job),
				Pagination: &sdkquery.PageRequest{Key: next, Limit: 1000}})
		if err != nil {
			return nil, query.Known(err)
		}
		for _, o := range r.DenomOwners {
			shares[o.Address] += o.Balance.Amount.Uint64()
		}
		if next = r.Pagination.GetNextKey(); len(next) == 0 {
			break
		}
	}
	delete(shares, wallet.ModuleAddress(catalog.Name))
	for who, n := range shares { // sorted below
		all = append(all, reward.ShareBalance{Who: who, Shares: n})
	}
	slices.SortFunc(all, func(a, b reward.ShareBalance) int {
		return cmp.Or(cmp.Compare(b.Shares, a.Shares), cmp.Compare(a.Who, b.Who))
	})
	return all, nil
}

// SendShares moves shares of the model of a job to another account.
func (w Reward) SendShares(ctx context.Context, job, to string, shares uint64) (transaction.Result, error) {
	coins := sdk.NewCoins(sdk.NewCoin(chainreward.Denom(job), sdkmath.NewIntFromUint64(shares)))
	return w.account.Submit(ctx, &banktypes.MsgSend{FromAddress: w.account.Address(), ToAddress: to, Amount: coins})
}
