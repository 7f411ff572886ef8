// Package catalog lists models and data sets, divides their revenue among the works that they were made from, and sells
// shares of it: the rules of protocol/catalog on the chain. Its account holds the shares that are offered. Revenue
// itself is in x/reward.
package catalog

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
)

// Name of the module, its store, its account and its codespace.
const Name = "catalog"

// Errors of the module, in addition to those of protocol/catalog.
var (
	ErrNone   = errors.New("catalog: no such listing or offer")
	ErrJob    = errors.New("catalog: the job cannot be listed")
	ErrShares = errors.New("catalog: the account does not have the shares")
	ErrFunds  = errors.New("catalog: the account cannot pay")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: catalog.ErrListing, Fix: "Correct the listing."},
	{Code: 3, Rule: catalog.ErrParents, Fix: "Name at most 8 listed works, which ask for the whole revenue at most; " +
		"of a job with shares of other accounts, or offered, works that its order names or that ask for nothing."},
	{Code: 4, Rule: catalog.ErrClaimed, Fix: "Name digests that no other account ordered work with, or listed."},
	{Code: 5, Rule: catalog.ErrOffer, Fix: "Correct the number of shares and the price of a share."},
	{Code: 6, Rule: catalog.ErrClosed, Fix: "Choose another offer: starling model catalog offers."},
	{Code: 7, Rule: catalog.ErrParty, Fix: "Sign with the account of the seller, or with another one to buy."},
	{Code: 8, Rule: ErrNone, Fix: "Check the number."},
	{Code: 9, Rule: ErrJob, Fix: "List, with the account that ordered it, a job whose run is over, whose order grants " +
		"shares and which is not listed; list other models without a job."},
	{Code: 10, Rule: ErrShares, Fix: "Offer shares that the account has: starling model shares."},
	{Code: 11, Rule: ErrFunds, Fix: "Fund the account."},
	{Code: 12, Rule: coin.ErrCoin, Fix: "Name a coin of the network: starling market coins."},
	{Code: 13, Rule: reward.ErrNoModel, Fix: "Name a job whose order grants shares and whose run is over, or " +
		"listing/NUMBER."},
	{Code: 14, Rule: proof.ErrShape, Fix: "Prove layers of the sizes that docs/proofs.md gives."},
	{Code: 15, Rule: proof.ErrKey, Fix: "Register the verifying.key of a setup: starling model proof setup."},
	{Code: 16, Rule: proof.ErrStatement, Fix: "Make the proof again: starling model proof make."},
	{Code: 17, Rule: proof.ErrProof, Fix: "Make the proof again: starling model proof make."},
	{Code: 18, Rule: proof.ErrInvalid, Fix: "Check the proof with the same key: starling model proof check."},
	{Code: 19, Rule: catalog.ErrProven, Fix: "List the files that the proof is about, with the base model as a parent, " +
		"by the account for which it was made."},
	{Code: 20, Rule: ErrKey, Fix: "Register the verifying key: starling model proof register."},
	{Code: 21, Rule: ErrOwner, Fix: "Sign with the account that owns the listing."},
	{Code: 22, Rule: ErrAgain, Fix: "Nothing is left to do: it is stored."},
}}

// recordGas is the gas of a record that stays, in addition to that of the SDK.
const recordGas = 100_000

// Bank moves coins and shares.
type Bank interface {
	SendCoins(ctx context.Context, from, to sdk.AccAddress, amount sdk.Coins) error
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
	GetBalance(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
}

// Coins are the coins of the network.
type Coins interface {
	Find(ctx context.Context, denom string) (coin.Registered, error)
	Open(ctx context.Context, denom string) (coin.Registered, error)
}

// Orders stores the orders of jobs.
type Orders interface {
	Ordered(ctx context.Context, job string) (market.Order, error)
}

// Revenues keeps the revenue of models for the holders of their shares.
type Revenues interface {
	Create(ctx context.Context, work, owner string) error
	Accrue(ctx context.Context, job string, accounts ...sdk.AccAddress) error
}

// parents are those of a job, as its order names them.
type parents struct {
	List []catalog.Parent `cbor:"1,keyasint"`
}

// Keeper reads and writes listings, and offers of shares.
type Keeper struct {
	Schema collections.Schema

	account  sdk.AccAddress
	bank     Bank
	coins    Coins
	orders   Orders
	revenues Revenues

	listings collections.Map[uint64, catalog.Listing]
	last     collections.Sequence            // number of the last listing
	jobs     collections.Map[string, uint64] // listing of a job
	children collections.KeySet[collections.Pair[uint64, uint64]]
	known    collections.Map[string, parents] // of a job whose order names digests of listed works
	claims   collections.Map[[]byte, catalog.Claim]

	offers   collections.Map[uint64, catalog.ShareOffer]
	lastSale collections.Sequence       // number of the last offer
	open     collections.KeySet[uint64] // offers with shares that are left
	// shares in the offers of an account: job, account
	offered collections.Map[collections.Pair[string, string], uint64]

	keys   collections.Map[[]byte, catalog.ProofKey] // by their digests
	proofs collections.Map[uint64, uint64]           // number of proofs about a listing
	shown  collections.Map[collections.Pair[uint64, []byte], catalog.Proven]
}

// NewKeeper returns a keeper over its own store.
func NewKeeper(s store.KVStoreService, account sdk.AccAddress, bank Bank, coins Coins, orders Orders,
	revenues Revenues) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	u64, id := collections.Uint64Key, collections.StringKey
	k := &Keeper{account: account, bank: bank, coins: coins, orders: orders, revenues: revenues,
		listings: collections.NewMap(b, collections.NewPrefix(0), "listings", u64, adapter.Record[catalog.Listing]()),
		last:     collections.NewSequence(b, collections.NewPrefix(1), "last"),
		jobs:     collections.NewMap(b, collections.NewPrefix(2), "jobs", id, collections.Uint64Value),
		children: collections.NewKeySet(b, collections.NewPrefix(3), "children", collections.PairKeyCodec(u64, u64)),
		known:    collections.NewMap(b, collections.NewPrefix(4), "known", id, adapter.Record[parents]()),
		claims: collections.NewMap(b, collections.NewPrefix(5), "claims", collections.BytesKey,
			adapter.Record[catalog.Claim]()),
		offers:   collections.NewMap(b, collections.NewPrefix(6), "offers", u64, adapter.Record[catalog.ShareOffer]()),
		lastSale: collections.NewSequence(b, collections.NewPrefix(7), "last_sale"),
		open:     collections.NewKeySet(b, collections.NewPrefix(8), "open", u64),
		offered: collections.NewMap(b, collections.NewPrefix(9), "offered", collections.PairKeyCodec(id, id),
			collections.Uint64Value),
		keys: collections.NewMap(b, collections.NewPrefix(10), "keys", collections.BytesKey,
			adapter.Record[catalog.ProofKey]()),
		proofs: collections.NewMap(b, collections.NewPrefix(11), "proofs", u64, collections.Uint64Value),
		shown: collections.NewMap(b, collections.NewPrefix(12), "shown",
			collections.PairKeyCodec(u64, collections.BytesKey), adapter.Record[catalog.Proven]()),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Listing returns a listing.
func (k *Keeper) Listing(ctx context.Context, id uint64) (catalog.Listing, error) {
	l, err := k.listings.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return l, fmt.Errorf("%w: listing %d", ErrNone, id)
	}
	return l, err
}

// parentsOf are the parents of the model of a job that is not listed.
func (k *Keeper) parentsOf(ctx context.Context, job string) ([]catalog.Parent, error) {
	p, err := k.known.Get(ctx, job)
	if errors.Is(err, collections.ErrNotFound) {
		return nil, nil
	}
	return p.List, err
}

// Split divides revenue of a model among the works that it was made from, by the rule of protocol/catalog: its own part
// is the first.
func (k *Keeper) Split(ctx context.Context, job string, amount uint64) ([]catalog.Payment, error) {
	w := catalog.Work{Pool: job}
	id, err := k.find(ctx, job)
	switch {
	case err != nil:
		return nil, err
	case id == 0:
		w.Parents, err = k.parentsOf(ctx, job)
	default:
		w, err = k.work(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return catalog.Split(amount, w, func(id uint64) (catalog.Work, error) { return k.work(ctx, id) })
}

func (k *Keeper) work(ctx context.Context, id uint64) (catalog.Work, error) {
	l, err := k.Listing(ctx, id)
	return catalog.Work{Pool: l.Pool(), Parents: l.Parents}, err
}

// find is the listing of a job, or of the name of a work that no job trained; 0: the job is not listed.
func (k *Keeper) find(ctx context.Context, job string) (uint64, error) {
	if id, ok := catalog.Number(job); ok {
		l, err := k.Listing(ctx, id)
		if err != nil || l.Pool() != job {
			err = errors.Join(fmt.Errorf("%w: %s", reward.ErrNoModel, job), err)
		}
		return id, err
	}
	id, err := k.jobs.Get(ctx, job)
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return id, err
}

// Opened records the listed works that an order of a consumer names by digests of its opening, and that the digests
// were used: the first use of a digest on the network decides whose it is.
func (k *Keeper) Opened(ctx context.Context, job, consumer string, digests []canon.Digest) error {
	var listed []catalog.Listing
	for _, d := range digests {
		if d.IsZero() {
			continue
		}
		c, err := k.claim(ctx, d)
		if err != nil {
			return err
		}
		if now := c.Ordered(consumer); now != c {
			if err := k.claims.Set(ctx, d[:], now); err != nil {
				return err
			}
		}
		if c.Listing > 0 {
			l, err := k.Listing(ctx, c.Listing)
			if err != nil {
				return err
			}
			if l.Binds(consumer, sdk.UnwrapSDKContext(ctx).BlockHeight()) {
				listed = append(listed, l)
			}
		}
	}
	if len(listed) == 0 {
		return nil
	}
	return k.known.Set(ctx, job, parents{catalog.Recognise(listed)})
}

func (k *Keeper) claim(ctx context.Context, d canon.Digest) (catalog.Claim, error) {
	c, err := k.claims.Get(ctx, d[:])
	if errors.Is(err, collections.ErrNotFound) {
		return c, nil
	}
	return c, err
}

// Shares are the shares of a model that an account owns: the balance of its tokens, and those that it offers. The
// account of the module owns none of those that it holds.
func (k *Keeper) Shares(ctx context.Context, job string, account sdk.AccAddress, balance uint64) (uint64, error) {
	if account.Equals(k.account) {
		return 0, nil
	}
	n, err := k.offered.Get(ctx, collections.Join(job, account.String()))
	if errors.Is(err, collections.ErrNotFound) {
		return balance, nil
	}
	return balance + n, err
}
