package reward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cosmossdk.io/collections"
	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
)

// denomPrefix starts the name of a token that is a share of a model. The name of the job follows.
const denomPrefix = "model/"

// Denom is the token of the shares of a job's model.
func Denom(job string) string { return denomPrefix + job }

// Ended grants the shares of the model of a job whose run is over, if its order grants any.
func (k *Keeper) Ended(ctx context.Context, job string) error {
	o, err := k.orders.Ordered(ctx, job)
	if err != nil || o.SharesPPM == 0 {
		return err
	}
	var work []reward.ShareBalance
	within := collections.NewPrefixedPairRange[string, string](job)
	err = k.earned.Walk(ctx, within, func(key collections.Pair[string, string], flops uint64) (bool, error) {
		work = append(work, reward.ShareBalance{Who: key.K2(), Shares: flops})
		return false, nil
	})
	if err != nil {
		return err
	}
	if err := k.earned.Clear(ctx, within); err != nil {
		return err
	}
	return k.grant(ctx, job, reward.Grant(o.Consumer, o.SharesPPM, work))
}

// Create grants all shares of a work that no job trained to an account.
func (k *Keeper) Create(ctx context.Context, work, owner string) error {
	return k.grant(ctx, work, []reward.ShareBalance{{Who: owner, Shares: reward.Shares}})
}

// grant mints the shares of a model, and divides them.
func (k *Keeper) grant(ctx context.Context, job string, granted []reward.ShareBalance) error {
	if err := errors.Join(k.models.Set(ctx, job, reward.Model{Job: job}),
		k.bank.MintCoins(ctx, Name, tokens(job, reward.Shares))); err != nil {
		return err
	}
	for _, h := range granted {
		to, err := k.holderOf(ctx, h.Who)
		if err != nil {
			return err
		}
		if err := k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, tokens(job, h.Shares)); err != nil {
			return err
		}
	}
	return nil
}

// holderOf is the account that gets the shares which an account earned: the owner of a machine, or itself.
func (k *Keeper) holderOf(ctx context.Context, id string) (sdk.AccAddress, error) {
	owner, err := k.registry.Owner(ctx, id)
	if err != nil {
		return nil, err
	}
	return sdk.AccAddressFromBech32(owner)
}

func tokens(job string, n uint64) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(Denom(job), sdkmath.NewIntFromUint64(n)))
}

// BeforeSend credits the sender and the receiver of shares with the revenue that they have earned so far. It is a send
// restriction of the bank module, and restricts the coins of fees and of the community pool.
func (k *Keeper) BeforeSend(ctx context.Context, from, to sdk.AccAddress, amount sdk.Coins) (sdk.AccAddress, error) {
	if err := k.divisible(ctx, from, to, amount); err != nil {
		return to, ErrorTable.Wrap(err)
	}
	for _, coin := range amount {
		job, ok := strings.CutPrefix(coin.Denom, denomPrefix)
		if !ok {
			continue
		}
		if err := k.Accrue(ctx, job, from, to); err != nil {
			return to, err
		}
	}
	return to, nil
}

// feeAccount has the fees until the next block, and poolAccount those that are divided, and the community pool.
var feeAccount, poolAccount = authtypes.NewModuleAddress(authtypes.FeeCollectorName),
	authtypes.NewModuleAddress(distrtypes.ModuleName)

// divisible refuses coins that are not the network's own, and not registered, as fees and in the community pool. Each
// block divides fees of all denominations, and the record of each validator has all that it ever got. Any account makes
// as many denominations as it likes, by listings or on another chain.
func (k *Keeper) divisible(ctx context.Context, from, to sdk.AccAddress, amount sdk.Coins) error {
	if from.Equals(feeAccount) || !to.Equals(feeAccount) && !to.Equals(poolAccount) {
		return nil
	}
	for _, coin := range amount {
		if coin.Denom == adapter.Denom {
			continue
		}
		if _, err := k.coins.Find(ctx, coin.Denom); err != nil {
			return err
		}
	}
	return nil
}

// Accrue credits accounts with the revenue that their shares of a model have earned so far, in all coins. It must be
// called before their shares change.
func (k *Keeper) Accrue(ctx context.Context, job string, accounts ...sdk.AccAddress) error {
	models, err := k.inCoins(ctx, job)
	if err != nil {
		return err
	}
	for _, account := range accounts {
		shares, err := k.shares(ctx, job, account)
		if err != nil {
			return err
		}
		for _, m := range models {
			h, err := k.holder(ctx, m, account)
			if err != nil {
				return err
			}
			if now := h.Accrue(m, shares); now != h || m.Coin.Own() {
				if err := k.setHolder(ctx, m, account, now); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// shares returns the shares of a model that an account owns.
func (k *Keeper) shares(ctx context.Context, job string, account sdk.AccAddress) (uint64, error) {
	return k.catalog.Shares(ctx, job, account, k.bank.GetBalance(ctx, account, Denom(job)).Amount.Uint64())
}

// maxRevenue is the limit of one payment, in grains.
const maxRevenue = 1 << 53

// PayRevenue implements rewardpb.MsgServer.
func (k *Keeper) PayRevenue(ctx context.Context, msg *rewardpb.MsgPayRevenue) (*rewardpb.MsgPayRevenueResponse, error) {
	c, err := k.coins.Find(ctx, msg.Denom)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	from, err := sdk.AccAddressFromBech32(msg.Sender)
	if err != nil {
		return nil, err
	}
	_, err = k.Divide(ctx, from, msg.Job, c.Coin, msg.Amount, 0)
	return &rewardpb.MsgPayRevenueResponse{}, ErrorTable.Wrap(err)
}

// Divide pays revenue of a model in grains of a coin: the royalties of the works that it was made from to the holders
// of their shares, and the rest to its own holders, except for a part of the rest, in millionths, which stays with the
// payer and is returned. A parent that can take no more gets nothing.
func (k *Keeper) Divide(ctx context.Context, from sdk.AccAddress, job string, c coin.Coin, amount uint64,
	keep uint32) (kept uint64, err error) {
	if amount == 0 || amount >= maxRevenue {
		return 0, fmt.Errorf("%w: %d", ErrAmount, amount)
	}
	payments, err := k.catalog.Split(ctx, job, amount)
	if err != nil {
		return 0, err
	}
	var paid []reward.Model
	for i, p := range slices.Backward(payments) { // the own part is the last
		if i == 0 {
			kept = market.Share(p.Amount, keep)
			p.Amount -= kept
		}
		m, err := k.modelIn(ctx, p.Pool, c)
		if err != nil {
			return 0, err
		}
		switch {
		case m.Takes(p.Amount):
			payments[i].Amount = p.Amount
			paid = append(paid, m.Pay(p.Amount))
		case i == 0:
			return 0, fmt.Errorf("%w: %s holds as much as it can", ErrAmount, job)
		default:
			payments[0].Amount += p.Amount
			payments[i].Amount = 0
		}
	}
	if amount > kept {
		coins := adapter.CoinsOf(c, amount-kept)
		if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, coins); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrFunds, err)
		}
	}
	for _, m := range paid {
		if err := k.setModel(ctx, m); err != nil {
			return 0, err
		}
	}
	return kept, k.announce(ctx, job, c, payments)
}

// announce emits an event for each work that a payment is revenue of.
func (k *Keeper) announce(ctx context.Context, job string, c coin.Coin, payments []catalog.Payment) error {
	for i, p := range payments {
		e := &rewardpb.EventRevenue{Job: p.Pool, Amount: p.Amount, Denom: c.Denom}
		if i > 0 {
			e.From = job
		}
		if p.Amount == 0 {
			continue
		}
		if err := sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// ClaimRevenue implements rewardpb.MsgServer.
func (k *Keeper) ClaimRevenue(ctx context.Context,
	msg *rewardpb.MsgClaimRevenue) (*rewardpb.MsgClaimRevenueResponse, error) {
	models, err := k.inCoins(ctx, msg.Job)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	to, err := sdk.AccAddressFromBech32(msg.Sender)
	if err != nil {
		return nil, err
	}
	shares, err := k.shares(ctx, msg.Job, to)
	if err != nil {
		return nil, err
	}
	r := &rewardpb.MsgClaimRevenueResponse{}
	for _, m := range models {
		amount, err := k.claim(ctx, m, to, shares)
		switch {
		case err != nil:
			return nil, err
		case m.Coin.Own():
			r.Amount = amount
		case amount > 0:
			r.Claimed = append(r.Claimed, rewardpb.Claimed{Denom: m.Coin.Denom, Amount: amount})
		}
	}
	return r, nil
}

// claim pays an account with some shares the amount that it is due in the coin of a model.
func (k *Keeper) claim(ctx context.Context, m reward.Model, to sdk.AccAddress, shares uint64) (uint64, error) {
	h, err := k.holder(ctx, m, to)
	if err != nil {
		return 0, err
	}
	m, h, r := m.Claim(to.String(), h, shares, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err := errors.Join(k.setModel(ctx, m), k.setHolder(ctx, m, to, h)); err != nil || r.Amount == 0 {
		return 0, err
	}
	return r.Amount, errors.Join(
		k.Issue(ctx, r), k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, adapter.CoinsOf(m.Coin, r.Amount)),
	)
}
