// Package hosting hosts models for coins: the rules of protocol/hosting on the chain. Its account holds the bonds of
// providers and the coins of channels. It generates no text, and sees no request.
package hosting

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/hosting"
)

// Name of the module, its store, its account and its codespace.
const Name = "hosting"

// Errors of the module, in addition to those of protocol/hosting.
var (
	ErrNone = errors.New("hosting: no such model, provider or channel")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: hosting.ErrModel, Fix: "Correct the description of the model."},
	{Code: 3, Rule: hosting.ErrPlace, Fix: "Correct the URL or the prices."},
	{Code: 4, Rule: hosting.ErrBond, Fix: "Give a larger bond."},
	{Code: 5, Rule: hosting.ErrClosed, Fix: "Choose another provider: starling model hosted."},
	{Code: 6, Rule: hosting.ErrMany, Fix: "Choose another provider, or wait until channels are closed."},
	{Code: 7, Rule: hosting.ErrParty, Fix: "Sign with the account of the payer or the provider, as the message needs."},
	{Code: 8, Rule: hosting.ErrChannel, Fix: "Look at the channel, and correct the amount or the key."},
	{Code: 9, Rule: hosting.ErrChain, Fix: "Ask for a voucher of this network."},
	{Code: 10, Rule: hosting.ErrForged, Fix: "Redeem only vouchers that the key of the channel signed."},
	{Code: 11, Rule: hosting.ErrSpent, Fix: "Redeem the latest voucher of the channel, once."},
	{Code: 12, Rule: hosting.ErrBeyond, Fix: "Ask the payer to fund the channel before it is answered."},
	{Code: 13, Rule: hosting.ErrParams, Fix: "Correct the parameters of the proposal."},
	{Code: 14, Rule: hosting.ErrTwice, Fix: "Look at models and channels of the account: an earlier message was taken."},
	{Code: 15, Rule: ErrNone, Fix: "Check the number: starling model hosted. A channel that is closed is gone."},
	{Code: 16, Rule: custody.ErrFunds, Fix: "Fund the account."},
	{Code: 17, Rule: coin.ErrCoin, Fix: "Name a coin of the network: starling market coins."},
	{Code: 18, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 19, Rule: answer.ErrReceipt, Fix: "Show a receipt as its provider signed it."},
	{Code: 20, Rule: answer.ErrForged, Fix: "Show a receipt that its provider signed."},
	{Code: 21, Rule: answer.ErrWindow, Fix: "Name a token of the answer, from 0."},
	{Code: 22, Rule: answer.ErrAccusation, Fix: "Accuse answers of this network in time, by another account."},
	{Code: 23, Rule: answer.ErrOpen, Fix: "Wait until the accusation is decided."},
	{Code: 24, Rule: answered.ErrCase, Fix: "Show the program that the receipt names: starling model accuse makes it."},
	{Code: 25, Rule: dispute.ErrOver, Fix: "Look at the accusation: it has its verdict."},
	{Code: 26, Rule: dispute.ErrNotYours, Fix: "Wait for the move of the other party."},
	{Code: 27, Rule: dispute.ErrLate, Fix: "Move within the blocks of a move."},
	{Code: 28, Rule: dispute.ErrMove, Fix: "Look at the accusation, and make the move that it waits for."},
	{Code: 29, Rule: dispute.ErrEncoding, Fix: "Send moves as this version of the program encodes them."},
}}

// Gas of messages, in addition to that of the SDK: for a record that stays, and for a signature.
const (
	recordGas    = 100_000
	signatureGas = 10_000
)

// settled is how many channels, and how many bonds, a block settles at most. The others follow in the next block.
const settled = 200

// Revenue pays the holders of shares of the model of a job.
type Revenue interface {
	// Takes reports whether there are holders of shares of the model of a job.
	Takes(ctx context.Context, job string) (bool, error)
	// Receive divides grains that the account of a module holds among them.
	Receive(ctx context.Context, module, job string, c coin.Coin, grains uint64) error
}

// Keys of the collections.
type (
	placeKey   = collections.Pair[uint64, string]          // model, provider
	accountKey = collections.Pair[string, uint64]          // account, channel
	bondKey    = collections.Triple[int64, uint64, string] // last block, model, provider
)

// Keeper reads and writes models, places and channels.
type Keeper struct {
	Schema collections.Schema

	custody   custody.Custody
	authority string
	revenue   Revenue

	params    collections.Item[hosting.Params]
	models    collections.Map[uint64, hosting.Model]
	places    collections.Map[placeKey, hosting.Place]
	channels  collections.Map[uint64, hosting.Channel]             // that are not settled
	next      collections.Sequence                                 // number of the next model or channel
	payers    collections.KeySet[accountKey]                       // channels of a payer
	providers collections.KeySet[accountKey]                       // channels of a provider
	until     collections.KeySet[collections.Pair[int64, uint64]]  // last block of a channel that closes, channel
	bonds     collections.KeySet[bondKey]                          // of providers that left, without channels
	once      collections.KeySet[collections.Pair[string, []byte]] // models of an owner by files, keys of a payer

	accusations accusations
}

// NewKeeper returns a keeper over its own store.
func NewKeeper(s store.KVStoreService, held custody.Custody, authority string, revenue Revenue) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	number, name := collections.Uint64Key, collections.StringKey
	k := &Keeper{custody: held, authority: authority, revenue: revenue,
		params: collections.NewItem(b, collections.NewPrefix(0), "params", adapter.Record[hosting.Params]()),
		models: collections.NewMap(b, collections.NewPrefix(1), "models", number, adapter.Record[hosting.Model]()),
		places: collections.NewMap(b, collections.NewPrefix(2), "places", collections.PairKeyCodec(number, name),
			adapter.Record[hosting.Place]()),
		channels: collections.NewMap(b, collections.NewPrefix(3), "channels", number, adapter.Record[hosting.Channel]()),
		next:     collections.NewSequence(b, collections.NewPrefix(4), "next"),
		payers:   collections.NewKeySet(b, collections.NewPrefix(5), "payers", collections.PairKeyCodec(name, number)),
		providers: collections.NewKeySet(b, collections.NewPrefix(6), "providers",
			collections.PairKeyCodec(name, number)),
		until: collections.NewKeySet(b, collections.NewPrefix(7), "until",
			collections.PairKeyCodec(collections.Int64Key, number)),
		bonds: collections.NewKeySet(b, collections.NewPrefix(8), "bonds",
			collections.TripleKeyCodec(collections.Int64Key, number, name)),
		once: collections.NewKeySet(b, collections.NewPrefix(9), "once",
			collections.PairKeyCodec(name, collections.BytesKey)),
		accusations: newAccusations(b),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (hosting.Params, error) {
	p, err := k.params.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return hosting.DefaultParams(), nil
	}
	return p, err
}

// number is that of a new model or channel, from 1 on. An account has one with a key.
func (k *Keeper) number(ctx context.Context, account, what string, key []byte) (uint64, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "record of hosting")
	at := collections.Join(account, append([]byte(what), key...))
	had, err := k.once.Has(ctx, at)
	if err != nil {
		return 0, err
	}
	if had {
		return 0, fmt.Errorf("%w: a %s of %s", hosting.ErrTwice, what, account)
	}
	n, err := k.next.Next(ctx)
	return n + 1, errors.Join(err, k.once.Set(ctx, at))
}

// found reads a record that must be there.
func found[T any](v T, err error) (T, error) {
	if errors.Is(err, collections.ErrNotFound) {
		return v, ErrNone
	}
	return v, err
}

// channel returns a channel with the place of its provider.
func (k *Keeper) channel(ctx context.Context, id uint64) (hosting.Channel, hosting.Place, error) {
	c, err := found(k.channels.Get(ctx, id))
	if err != nil {
		return c, hosting.Place{}, fmt.Errorf("%w: channel %d", err, id)
	}
	p, err := k.Place(ctx, c.Model, c.Provider)
	return c, p, err
}

// Place returns the place of a provider of a model.
func (k *Keeper) Place(ctx context.Context, model uint64, provider string) (hosting.Place, error) {
	p, err := found(k.places.Get(ctx, collections.Join(model, provider)))
	if err != nil {
		err = fmt.Errorf("%w: %s does not host model %d", err, provider, model)
	}
	return p, err
}

// Model returns a model.
func (k *Keeper) Model(ctx context.Context, id uint64) (hosting.Model, error) {
	m, err := found(k.models.Get(ctx, id))
	if err != nil {
		err = fmt.Errorf("%w: model %d", err, id)
	}
	return m, err
}

// place stores a place in its new state, in place of the old one.
func (k *Keeper) place(ctx context.Context, old, p hosting.Place) error {
	key := func(p hosting.Place) bondKey { return collections.Join3(p.Until, p.Model, p.Provider) }
	if old.Until > 0 {
		if err := k.bonds.Remove(ctx, key(old)); err != nil {
			return err
		}
	}
	if p.Until > 0 {
		if err := k.bonds.Set(ctx, key(p)); err != nil {
			return err
		}
	}
	return k.places.Set(ctx, collections.Join(p.Model, p.Provider), p)
}

// Convict takes the bond of the provider of a model that was shown to have lied: half of it for the accuser, and half
// for the community pool. The provider takes no new channels. It returns the amount that the accuser got, in uzen.
func (k *Keeper) Convict(ctx context.Context, model uint64, provider, accuser string) (uint64, error) {
	old, err := k.Place(ctx, model, provider)
	if err != nil {
		return 0, ErrorTable.Wrap(err)
	}
	p, payments, err := old.Convict(accuser)
	if err != nil {
		return 0, ErrorTable.Wrap(err)
	}
	return payments[0].Amount, errors.Join(k.place(ctx, old, p), k.pay(ctx, "", payments))
}

// settle ends a channel. The rest is the payer's.
func (k *Keeper) settle(ctx context.Context, c hosting.Channel, old hosting.Place) error {
	rules, err := k.Params(ctx)
	if err != nil {
		return err
	}
	p, payments := old.Settle(rules, c, height(ctx))
	return errors.Join(k.place(ctx, old, p), k.channels.Remove(ctx, c.ID),
		k.payers.Remove(ctx, collections.Join(c.Payer, c.ID)), k.providers.Remove(ctx, collections.Join(c.Provider, c.ID)),
		k.until.Remove(ctx, collections.Join(c.Until, c.ID)), k.pay(ctx, c.Denom, payments))
}

func (k *Keeper) pay(ctx context.Context, denom string, payments []hosting.Payment) error {
	for _, p := range payments {
		if err := k.custody.Pay(ctx, denom, p.To, p.Amount); err != nil {
			return err
		}
	}
	return nil
}

// share pays the part of a model: to the holders of its shares, or to its owner if there are none.
func (k *Keeper) share(ctx context.Context, m hosting.Model, denom string, part uint64) error {
	if part == 0 {
		return nil
	}
	c, err := k.custody.Coins.Find(ctx, denom)
	if err != nil {
		return err
	}
	if m.Job != "" {
		takes, err := k.revenue.Takes(ctx, m.Job)
		if err != nil {
			return err
		}
		if takes {
			return k.revenue.Receive(ctx, Name, m.Job, c.Coin, part)
		}
	}
	return k.custody.Pay(ctx, denom, m.Owner, part)
}

func height(ctx context.Context) int64 { return sdk.UnwrapSDKContext(ctx).BlockHeight() }
