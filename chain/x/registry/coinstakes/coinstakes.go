// Package coinstakes stores the stakes of participants in coins other than the network's own, and pays out what leaves
// them. The rules are in protocol/registry/coinstake; the account of the module holds the coins.
package coinstakes

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/coinstake"
	"github.com/starling-network/starling/protocol/reward"
)

// Participants are the participants of the network, and their parts in runs.
type Participants interface {
	Find(ctx context.Context, id string) (p registry.Participant, known bool, err error)
	Params(ctx context.Context) (registry.Params, error)
	Part(ctx context.Context, id string) (bool, error)
}

// Coins are the coins of orders.
type Coins interface {
	Find(ctx context.Context, denom string) (coin.Registered, error)
}

// Payees knows which account is paid in place of another.
type Payees interface {
	Payee(ctx context.Context, id string) (sdk.AccAddress, error)
}

// Account is the account of the module, which holds the stakes.
type Account struct {
	Module  string
	Address sdk.AccAddress
	Bank    interface {
		SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
		SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
	}
	Pool interface {
		FundCommunityPool(ctx context.Context, amount sdk.Coins, from sdk.AccAddress) error
	}
}

// give pays an account, or reward.CommunityPool.
func (l Book) give(ctx context.Context, to string, amount sdk.Coins) error {
	if to == reward.CommunityPool {
		return l.account.Pool.FundCommunityPool(ctx, amount, l.account.Address)
	}
	account, err := l.payees.Payee(ctx, to)
	if err != nil {
		return err
	}
	return l.account.Bank.SendCoinsFromModuleToAccount(ctx, l.account.Module, account, amount)
}

type (
	key    = collections.Pair[string, string]          // participant, denomination
	leaver = collections.Triple[int64, string, string] // height, participant, denomination
)

// Book is the list of these stakes.
type Book struct {
	around  Participants
	coins   Coins
	payees  Payees
	account Account
	stakes  collections.Map[key, coinstake.Stake]
	leaving collections.KeySet[leaver]
}

// New returns a list inside the store of the module.
func New(b *collections.SchemaBuilder, around Participants, payees Payees, account Account) Book {
	id := collections.StringKey
	return Book{
		around: around, payees: payees, account: account,
		stakes: collections.NewMap(b, collections.NewPrefix(32), "coin_stakes", collections.PairKeyCodec(id, id),
			adapter.Record[coinstake.Stake]()),
		leaving: collections.NewKeySet(b, collections.NewPrefix(33), "coins_leaving",
			collections.TripleKeyCodec(collections.Int64Key, id, id)),
	}
}

// Connect sets the coins, whose module needs that of the list.
func (l *Book) Connect(coins Coins) { l.coins = coins }

// Get returns the stake of a participant in a coin; it may be zero.
func (l Book) Get(ctx context.Context, id string, c coin.Coin) (coinstake.Stake, error) {
	s, err := l.stakes.Get(ctx, collections.Join(id, c.Denom))
	if errors.Is(err, collections.ErrNotFound) {
		return coinstake.Stake{ID: id, Coin: c}, nil
	}
	return s, err
}

// list returns at most a number of stakes, in order of participant and denomination, from the one that follows the
// stake of after in denom. If id names a participant, it returns stakes of that participant alone.
func (l Book) list(ctx context.Context, id, after, denom string, most int) (all []coinstake.Stake, err error) {
	within := new(collections.Range[key]).StartExclusive(collections.Join(after, denom))
	if id != "" && after < id {
		within = new(collections.Range[key]).StartInclusive(collections.Join(id, ""))
	}
	err = l.stakes.Walk(ctx, within, func(at key, s coinstake.Stake) (bool, error) {
		if id != "" && at.K1() != id {
			return true, nil
		}
		all = append(all, s)
		return len(all) == most, nil
	})
	return all, err
}

// Take slashes an amount of a stake, and gives it to an account or to reward.CommunityPool.
func (l Book) Take(ctx context.Context, id string, c coin.Coin, to string, amount uint64) error {
	s, err := l.Get(ctx, id, c)
	if err != nil {
		return err
	}
	if s, err = s.Take(amount); err != nil {
		return err
	}
	return errors.Join(l.stakes.Set(ctx, collections.Join(id, c.Denom), s),
		l.give(ctx, to, adapter.CoinsOf(c, amount)))
}

// add answers a MsgStakeCoin.
func (l Book) add(ctx context.Context, m *registrypb.MsgStakeCoin) error {
	id := m.Participant
	if id == "" {
		id = m.Sender
	}
	switch _, known, err := l.around.Find(ctx, id); {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("%w: %s is not a participant", coinstake.ErrStake, id)
	}
	c, err := l.coins.Find(ctx, m.Denom)
	if err != nil {
		return err
	}
	from, err := sdk.AccAddressFromBech32(m.Sender)
	if err != nil {
		return err
	}
	if c.Own() {
		return fmt.Errorf("%w: this message is for coins other than the network's own", coinstake.ErrStake)
	}
	s, err := l.Get(ctx, id, c.Coin)
	if err != nil {
		return err
	}
	if s, err = s.Add(m.Amount); err != nil {
		return err
	}
	err = l.account.Bank.SendCoinsFromAccountToModule(ctx, from, l.account.Module, adapter.CoinsOf(c.Coin, m.Amount))
	if err != nil {
		return fmt.Errorf("%w: %w", coinstake.ErrStake, err)
	}
	return l.stakes.Set(ctx, collections.Join(id, m.Denom), s)
}

// leave answers a MsgUnstakeCoin with the height at which the stake is paid out at the earliest. It comes from the
// participant, or from the owner of a machine.
func (l Book) leave(ctx context.Context, m *registrypb.MsgUnstakeCoin) (int64, error) {
	id := m.Participant
	if id == "" {
		id = m.Sender
	}
	p, known, err := l.around.Find(ctx, id)
	switch {
	case err != nil:
		return 0, err
	case !known || p.OwnerID() != m.Sender:
		return 0, fmt.Errorf("%w: the stake of %s is not %s's", coinstake.ErrStake, id, m.Sender)
	}
	params, err := l.around.Params(ctx)
	if err != nil {
		return 0, err
	}
	at := collections.Join(id, m.Denom)
	old, err := l.stakes.Get(ctx, at)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, fmt.Errorf("%w: %s has no stake in %q", coinstake.ErrStake, id, m.Denom)
	}
	if err != nil {
		return 0, err
	}
	s, err := old.Leave(m.Amount, params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return 0, err
	}
	return s.LeavesAt, errors.Join(l.plan(ctx, old, s), l.stakes.Set(ctx, at, s))
}

// plan records the height at which a leaving stake is next checked, instead of the previous height.
func (l Book) plan(ctx context.Context, old, s coinstake.Stake) error {
	if old.LeavesAt > 0 {
		if err := l.leaving.Remove(ctx, collections.Join3(old.LeavesAt, s.ID, s.Coin.Denom)); err != nil {
			return err
		}
	}
	if s.LeavesAt > 0 {
		return l.leaving.Set(ctx, collections.Join3(s.LeavesAt, s.ID, s.Coin.Denom))
	}
	return nil
}

// Limits of how a block handles stakes that leave: those in the network's own coin, and those in others.
const (
	MaxReleased = 100 // stakes checked in a block
	Postponed   = 60  // blocks until the next check if the owner has a part in a run
)

// Release pays out the stakes that are due, except those of accounts that have a part in a run: they are checked again
// later.
func (l Book) Release(ctx context.Context) error {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	var due []leaver
	err := l.leaving.Walk(ctx, nil, func(at leaver) (bool, error) {
		if at.K1() <= height {
			due = append(due, at)
		}
		return at.K1() > height || len(due) == MaxReleased, nil
	})
	if err != nil {
		return err
	}
	for _, at := range due {
		if err := l.payOut(ctx, collections.Join(at.K2(), at.K3()), height); err != nil {
			return err
		}
	}
	return nil
}

func (l Book) payOut(ctx context.Context, at key, height int64) error {
	old, err := l.stakes.Get(ctx, at)
	if err != nil {
		return err
	}
	part, err := l.around.Part(ctx, old.ID)
	if err != nil {
		return err
	}
	s, amount := old, uint64(0)
	if part {
		s.LeavesAt = height + Postponed
	} else {
		s, amount = old.Release()
	}
	if err := errors.Join(l.plan(ctx, old, s), l.stakes.Set(ctx, at, s)); err != nil || amount == 0 {
		return err
	}
	return l.give(ctx, old.ID, adapter.CoinsOf(s.Coin, amount))
}
