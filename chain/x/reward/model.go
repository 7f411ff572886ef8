package reward

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cosmossdk.io/collections"
	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
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
	if err := errors.Join(k.earned.Clear(ctx, within), k.models.Set(ctx, job, reward.Model{Job: job}),
		k.bank.MintCoins(ctx, Name, tokens(job, reward.Shares))); err != nil {
		return err
	}
	for _, h := range reward.Grant(o.Consumer, o.SharesPPM, work) {
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
// restriction of the bank module that restricts nothing.
func (k *Keeper) BeforeSend(ctx context.Context, from, to sdk.AccAddress, amount sdk.Coins) (sdk.AccAddress, error) {
	for _, coin := range amount {
		job, ok := strings.CutPrefix(coin.Denom, denomPrefix)
		if !ok {
			continue
		}
		m, err := k.model(ctx, job)
		if err != nil {
			return to, err
		}
		for _, account := range []sdk.AccAddress{from, to} {
			if _, err := k.accrue(ctx, m, account); err != nil {
				return to, err
			}
		}
	}
	return to, nil
}

func (k *Keeper) model(ctx context.Context, job string) (reward.Model, error) {
	m, err := k.models.Get(ctx, job)
	if errors.Is(err, collections.ErrNotFound) {
		return m, fmt.Errorf("%w: %s", ErrNoModel, job)
	}
	return m, err
}

// accrue credits an account with the revenue that its shares have earned.
func (k *Keeper) accrue(ctx context.Context, m reward.Model, account sdk.AccAddress) (reward.Holder, error) {
	h, err := k.holder(ctx, m, account)
	if err != nil {
		return h, err
	}
	h = h.Accrue(m, k.shares(ctx, m, account))
	return h, k.holders.Set(ctx, collections.Join(m.Job, account.String()), h)
}

// shares returns the shares of a model that an account holds.
func (k *Keeper) shares(ctx context.Context, m reward.Model, account sdk.AccAddress) uint64 {
	return k.bank.GetBalance(ctx, account, Denom(m.Job)).Amount.Uint64()
}

// holder returns the last stored earnings of an account.
func (k *Keeper) holder(ctx context.Context, m reward.Model, account sdk.AccAddress) (reward.Holder, error) {
	h, err := k.holders.Get(ctx, collections.Join(m.Job, account.String()))
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return h, err
	}
	return h, nil
}

// maxRevenue is the limit of one payment, in uzen.
const maxRevenue = 1 << 53

// PayRevenue implements rewardpb.MsgServer.
func (k *Keeper) PayRevenue(ctx context.Context, msg *rewardpb.MsgPayRevenue) (*rewardpb.MsgPayRevenueResponse, error) {
	m, err := k.model(ctx, msg.Job)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if msg.Amount == 0 || msg.Amount >= maxRevenue {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d uzen", ErrAmount, msg.Amount))
	}
	from, err := sdk.AccAddressFromBech32(msg.Sender)
	if err != nil {
		return nil, err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, adapter.Coins(msg.Amount)); err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	return &rewardpb.MsgPayRevenueResponse{}, errors.Join(
		k.models.Set(ctx, msg.Job, m.Pay(msg.Amount)),
		sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&rewardpb.EventRevenue{Job: msg.Job, Amount: msg.Amount}),
	)
}

// ClaimRevenue implements rewardpb.MsgServer.
func (k *Keeper) ClaimRevenue(ctx context.Context,
	msg *rewardpb.MsgClaimRevenue) (*rewardpb.MsgClaimRevenueResponse, error) {
	m, err := k.model(ctx, msg.Job)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	to, err := sdk.AccAddressFromBech32(msg.Sender)
	if err != nil {
		return nil, err
	}
	h, err := k.holder(ctx, m, to)
	if err != nil {
		return nil, err
	}
	m, h, r := m.Claim(msg.Sender, h, k.shares(ctx, m, to), sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err := errors.Join(k.models.Set(ctx, msg.Job, m),
		k.holders.Set(ctx, collections.Join(msg.Job, msg.Sender), h)); err != nil {
		return nil, err
	}
	if r.Amount == 0 {
		return &rewardpb.MsgClaimRevenueResponse{}, nil
	}
	return &rewardpb.MsgClaimRevenueResponse{Amount: r.Amount}, errors.Join(
		k.issue(ctx, r), k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, adapter.Coins(r.Amount)),
	)
}
