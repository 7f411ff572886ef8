// Package delegation stores the stake that accounts delegate to participants, and the pay that they earn: the rules of
// protocol/delegation on the chain. Its account holds both. It stands around x/registry, which does not know of it.
package delegation

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
)

// Name of the module, its store, its account and its codespace.
const Name = "delegation"

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: delegation.ErrNoPool, Fix: "Choose a participant with a pool: starling account delegate pools."},
	{Code: 3, Rule: delegation.ErrClosed, Fix: "Choose another pool: starling account delegate pools."},
	{Code: 4, Rule: delegation.ErrRoom, Fix: "Delegate no more than the room of the pool: starling account delegate " +
		"pools."},
	{Code: 5, Rule: delegation.ErrMany, Fix: "Choose another pool: starling account delegate pools."},
	{Code: 6, Rule: delegation.ErrDust, Fix: "Delegate 1 ZEN or more, and leave nothing or as much."},
	{Code: 7, Rule: delegation.ErrNone, Fix: "See what the account delegates: starling account delegate list."},
	{Code: 8, Rule: delegation.ErrTerms, Fix: "Give a commission of 0 to 100 percent."},
	{Code: 9, Rule: delegation.ErrParty, Fix: "Name a worker or verifier with a stake of its own, which is barred by " +
		"no conviction and is no machine of a fleet; add to your own stake by starling account stake add."},
	{Code: 10, Rule: custody.ErrFunds, Fix: "Fund the account."},
}}

// Limits of a block, and the gas of a record that stays, in addition to that of the SDK.
const (
	maxDue    = 100 // delegations that join or leave in a block
	postponed = 60  // blocks until one is tried again that failed
	recordGas = 100_000
)

// Registry has the participants.
type Registry interface {
	Get(ctx context.Context, id string) (registry.Participant, error)
	Params(ctx context.Context) (registry.Params, error)
}

// Bank moves coins between the accounts of modules.
type Bank interface {
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, amount sdk.Coins) error
}

// Receipts stores receipts.
type Receipts interface {
	Issue(ctx context.Context, r reward.Receipt) error
}

type (
	partKey = collections.Pair[string, string]           // participant, delegator
	coinKey = collections.Pair[string, string]           // participant, denomination
	dueKey  = collections.Triple[int64, string, string]  // height, participant, delegator
	earnKey = collections.Triple[string, string, string] // participant, delegator, denomination
)

// Keeper reads and writes pools and delegations.
type Keeper struct {
	Schema collections.Schema

	registry Registry
	bank     Bank
	custody  custody.Custody
	receipts Receipts

	pools  collections.Map[string, delegation.Pool]
	parts  collections.Map[partKey, delegation.Delegation]
	of     collections.KeySet[partKey] // delegator, participant
	joins  collections.KeySet[dueKey]
	leaves collections.KeySet[dueKey]
	purses collections.Map[coinKey, delegation.Purse]
	earned collections.Map[earnKey, delegation.Earned]
}

// NewKeeper returns a keeper over its own store. Connect completes it.
func NewKeeper(s store.KVStoreService, participants Registry, bank Bank) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	id := collections.StringKey
	pair, due := collections.PairKeyCodec(id, id), collections.TripleKeyCodec(collections.Int64Key, id, id)
	k := &Keeper{registry: participants, bank: bank,
		pools:  collections.NewMap(b, collections.NewPrefix(0), "pools", id, adapter.Record[delegation.Pool]()),
		parts:  collections.NewMap(b, collections.NewPrefix(1), "parts", pair, adapter.Record[delegation.Delegation]()),
		of:     collections.NewKeySet(b, collections.NewPrefix(2), "of", pair),
		joins:  collections.NewKeySet(b, collections.NewPrefix(3), "joins", due),
		leaves: collections.NewKeySet(b, collections.NewPrefix(4), "leaves", due),
		purses: collections.NewMap(b, collections.NewPrefix(5), "purses", pair, adapter.Record[delegation.Purse]()),
		earned: collections.NewMap(b, collections.NewPrefix(6), "earned", collections.TripleKeyCodec(id, id, id),
			adapter.Record[delegation.Earned]()),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Connect sets what holds the coins, and what stores the receipts: their modules need the keeper.
func (k *Keeper) Connect(held custody.Custody, receipts Receipts) {
	k.custody, k.receipts = held, receipts
}

// pool returns the pool of a participant, at the height of the block.
func (k *Keeper) pool(ctx context.Context, id string) (delegation.Pool, error) {
	p, err := k.pools.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return p, fmt.Errorf("%w: %s", delegation.ErrNoPool, id)
	}
	return p.At(height(ctx)), err
}

// part returns the delegation of an account; it may be empty.
func (k *Keeper) part(ctx context.Context, pool, delegator string) (delegation.Delegation, error) {
	d, err := k.parts.Get(ctx, collections.Join(pool, delegator))
	if errors.Is(err, collections.ErrNotFound) {
		return delegation.Delegation{Pool: pool, Delegator: delegator}, nil
	}
	return d, err
}

// open reports whether stake may be delegated to a participant.
func open(p registry.Participant) bool {
	return len(p.Roles) > 0 && !p.Jailed && !p.Earning && p.Machine.Owner == ""
}

// pursesOf are the purses of a pool, one for each coin in which its participant was paid: at most as many as governance
// registers.
func (k *Keeper) pursesOf(ctx context.Context, pool string) (all []delegation.Purse, err error) {
	err = k.purses.Walk(ctx, collections.NewPrefixedPairRange[string, string](pool),
		func(_ coinKey, u delegation.Purse) (bool, error) {
			all = append(all, u)
			return false, nil
		})
	return all, err
}

// earning is what a delegator has earned in the coin of a purse, up to the last change of its shares.
func (k *Keeper) earning(ctx context.Context, d delegation.Delegation, u delegation.Purse) (delegation.Earned, error) {
	e, err := k.earned.Get(ctx, collections.Join3(d.Pool, d.Delegator, u.Coin.Denom))
	if errors.Is(err, collections.ErrNotFound) {
		return delegation.Earned{}, nil
	}
	return e, err
}

// accrue credits a delegator in all coins. It comes before each change of the number of its shares that are paid.
func (k *Keeper) accrue(ctx context.Context, d delegation.Delegation) error {
	purses, err := k.pursesOf(ctx, d.Pool)
	if err != nil {
		return err
	}
	for _, u := range purses {
		e, err := k.earning(ctx, d, u)
		if err != nil {
			return err
		}
		at := collections.Join3(d.Pool, d.Delegator, u.Coin.Denom)
		if err := k.earned.Set(ctx, at, e.Accrue(u, d.Shares-d.Leaving)); err != nil {
			return err
		}
	}
	return nil
}

// save stores a pool and a delegation in place of the old one, with the heights at which it joins and leaves. One of
// which nothing is left is paid what it earned, and forgotten.
func (k *Keeper) save(ctx context.Context, p delegation.Pool, old, d delegation.Delegation) error {
	var err error
	if d.Empty() {
		if p, err = k.claim(ctx, p, d); err != nil {
			return err
		}
	}
	at := collections.Join(d.Pool, d.Delegator)
	if err := errors.Join(k.pools.Set(ctx, p.ID, p), k.plan(ctx, k.joins, d, old.JoinsAt, d.JoinsAt),
		k.plan(ctx, k.leaves, d, old.LeavesAt, d.LeavesAt)); err != nil {
		return err
	}
	if !d.Empty() {
		return errors.Join(k.parts.Set(ctx, at, d), k.of.Set(ctx, collections.Join(d.Delegator, d.Pool)))
	}
	purses, err := k.pursesOf(ctx, d.Pool)
	for _, u := range purses {
		err = errors.Join(err, k.earned.Remove(ctx, collections.Join3(d.Pool, d.Delegator, u.Coin.Denom)))
	}
	return errors.Join(err, k.parts.Remove(ctx, at), k.of.Remove(ctx, collections.Join(d.Delegator, d.Pool)))
}

// plan replaces the height at which a delegation is due.
func (k *Keeper) plan(ctx context.Context, set collections.KeySet[dueKey], d delegation.Delegation,
	before, now int64) error {
	if before == now {
		return nil
	}
	if before > 0 {
		if err := set.Remove(ctx, collections.Join3(before, d.Pool, d.Delegator)); err != nil {
			return err
		}
	}
	if now == 0 {
		return nil
	}
	return set.Set(ctx, collections.Join3(now, d.Pool, d.Delegator))
}

// claim pays a delegator what it earned, in all coins, and returns the pool after the receipts.
func (k *Keeper) claim(ctx context.Context, p delegation.Pool, d delegation.Delegation) (delegation.Pool, error) {
	purses, err := k.pursesOf(ctx, d.Pool)
	if err != nil {
		return p, err
	}
	for _, u := range purses {
		e, err := k.earning(ctx, d, u)
		if err != nil {
			return p, err
		}
		u, e, due := u.Claim(e, d.Shares-d.Leaving)
		if err := errors.Join(k.purses.Set(ctx, collections.Join(d.Pool, u.Coin.Denom), u),
			k.earned.Set(ctx, collections.Join3(d.Pool, d.Delegator, u.Coin.Denom), e)); err != nil {
			return p, err
		}
		if due == 0 {
			continue
		}
		var r reward.Receipt
		p, r = p.Claimed(d.Delegator, u.Coin, due, height(ctx))
		if err := errors.Join(k.custody.Pay(ctx, u.Coin.Denom, d.Delegator, due), k.receipts.Issue(ctx, r)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// share gives the delegators of a participant their part of a payment for its work, from the account of a module, and
// returns the rest.
func (k *Keeper) share(ctx context.Context, module, id string, c coin.Coin, grains uint64) (rest uint64, err error) {
	p, err := k.pool(ctx, id)
	if errors.Is(err, delegation.ErrNoPool) {
		return grains, nil
	}
	if err != nil || p.Earning() == 0 {
		return grains, err
	}
	member, err := k.registry.Get(ctx, id)
	if err != nil || member.Machine.Owner != "" {
		return grains, err
	}
	s := p.Divide(grains, member.Stake)
	at := collections.Join(id, c.Denom)
	u, err := k.purses.Get(ctx, at)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return grains, err
	}
	u.Pool, u.Coin = id, c
	u, fits := u.Pay(s.Delegators, p.Earning())
	if s.Delegators == 0 || !fits {
		return grains, nil
	}
	p, r := p.Shared(c, grains, member.Stake, s, height(ctx))
	return grains - s.Delegators, errors.Join(k.purses.Set(ctx, at, u), k.pools.Set(ctx, id, p),
		k.receipts.Issue(ctx, r),
		k.bank.SendCoinsFromModuleToModule(ctx, module, Name, adapter.CoinsOf(c, s.Delegators)))
}

// slash takes the part of the delegated stake that a slash takes of a participant's own, for the community pool: no
// accuser gets any of it.
func (k *Keeper) slash(ctx context.Context, id string, part, whole uint64) error {
	p, err := k.pool(ctx, id)
	if errors.Is(err, delegation.ErrNoPool) {
		return nil
	}
	if err != nil {
		return err
	}
	p, amount := p.Slash(part, whole)
	return errors.Join(k.pools.Set(ctx, id, p), k.custody.Pay(ctx, coin.Coin{}.Denom, "", amount))
}

func height(ctx context.Context) int64 { return sdk.UnwrapSDKContext(ctx).BlockHeight() }
