package reward

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// revenues store the revenue of models, and the earnings of the holders of their shares, in each coin.
type revenues struct {
	models  collections.Map[string, reward.Model]
	holders collections.Map[collections.Pair[string, string], reward.Holder] // job, account
	// the same in other coins than the network's own: job, denomination, and account
	coinModels  collections.Map[collections.Pair[string, string], reward.Model]
	coinHolders collections.Map[collections.Triple[string, string, string], reward.Holder]
}

func newRevenues(b *collections.SchemaBuilder) revenues {
	id := collections.StringKey
	pair := collections.PairKeyCodec(id, id)
	return revenues{
		models:  collections.NewMap(b, collections.NewPrefix(6), "models", id, adapter.Record[reward.Model]()),
		holders: collections.NewMap(b, collections.NewPrefix(7), "holders", pair, adapter.Record[reward.Holder]()),
		coinModels: collections.NewMap(b, collections.NewPrefix(9), "coin_models", pair,
			adapter.Record[reward.Model]()),
		coinHolders: collections.NewMap(b, collections.NewPrefix(10), "coin_holders",
			collections.TripleKeyCodec(id, id, id), adapter.Record[reward.Holder]()),
	}
}

func (k revenues) model(ctx context.Context, job string) (reward.Model, error) {
	m, err := k.models.Get(ctx, job)
	if errors.Is(err, collections.ErrNotFound) {
		return m, fmt.Errorf("%w: %s", ErrNoModel, job)
	}
	return m, err
}

// modelIn is a model with its revenue in one coin.
func (k revenues) modelIn(ctx context.Context, job string, c coin.Coin) (reward.Model, error) {
	own, err := k.model(ctx, job)
	if err != nil || c.Own() {
		return own, err
	}
	m, err := k.coinModels.Get(ctx, collections.Join(job, c.Denom))
	if errors.Is(err, collections.ErrNotFound) {
		return reward.Model{Job: job, Coin: c}, nil
	}
	return m, err
}

// inCoins is a model with its revenue in each coin that it has revenue in: the network's own, then the others, of which
// there are at most as many as governance registers.
func (k revenues) inCoins(ctx context.Context, job string) ([]reward.Model, error) {
	own, err := k.model(ctx, job)
	if err != nil {
		return nil, err
	}
	all := []reward.Model{own}
	err = k.coinModels.Walk(ctx, collections.NewPrefixedPairRange[string, string](job),
		func(_ collections.Pair[string, string], m reward.Model) (bool, error) {
			all = append(all, m)
			return false, nil
		})
	return all, err
}

func (k revenues) setModel(ctx context.Context, m reward.Model) error {
	if m.Coin.Own() {
		return k.models.Set(ctx, m.Job, m)
	}
	return k.coinModels.Set(ctx, collections.Join(m.Job, m.Coin.Denom), m)
}

// holder returns the last stored earnings of an account in the coin of a model.
func (k revenues) holder(ctx context.Context, m reward.Model, account sdk.AccAddress) (h reward.Holder, err error) {
	if m.Coin.Own() {
		h, err = k.holders.Get(ctx, collections.Join(m.Job, account.String()))
	} else {
		h, err = k.coinHolders.Get(ctx, collections.Join3(m.Job, m.Coin.Denom, account.String()))
	}
	if errors.Is(err, collections.ErrNotFound) {
		err = nil
	}
	return h, err
}

func (k revenues) setHolder(ctx context.Context, m reward.Model, account sdk.AccAddress, h reward.Holder) error {
	if m.Coin.Own() {
		return k.holders.Set(ctx, collections.Join(m.Job, account.String()), h)
	}
	return k.coinHolders.Set(ctx, collections.Join3(m.Job, m.Coin.Denom, account.String()), h)
}
