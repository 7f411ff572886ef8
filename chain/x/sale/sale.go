// Package sale sells files for coins: the rules of protocol/sale on the chain. Its account holds the prices of open
// orders and the bonds of sellers. It transfers no files, and does not know what they contain.
package sale

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/sale"
)

// Name of the module, its store, its account and its codespace.
const Name = "sale"

// Errors of the module, in addition to those of protocol/sale.
var (
	ErrNone  = errors.New("sale: no such offer or order")
	ErrFiles = errors.New("sale: the files are not those of the listing")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: sale.ErrTerms, Fix: "Correct the offer."},
	{Code: 3, Rule: sale.ErrClosed, Fix: "Choose another offer: starling model sales."},
	{Code: 4, Rule: sale.ErrParty, Fix: "Sign with the account of the seller or of the buyer, as the message needs."},
	{Code: 5, Rule: sale.ErrPhase, Fix: "Look at the order: its phase and the last block of it."},
	{Code: 6, Rule: sale.ErrOrder, Fix: "Order again with this version of the program."},
	{Code: 7, Rule: sale.ErrEvidence, Fix: "Complain only about a leaf that does not decrypt to its digest."},
	{Code: 8, Rule: sale.ErrMany, Fix: "Wait until orders of the offer are settled."},
	{Code: 9, Rule: ErrNone, Fix: "Check the number."},
	{Code: 10, Rule: custody.ErrFunds, Fix: "Fund the account."},
	{Code: 11, Rule: coin.ErrCoin, Fix: "Name a coin of the network: starling market coins."},
	{Code: 12, Rule: sale.ErrTwice, Fix: "Look at the offers and orders of the account: an earlier message was taken."},
	{Code: 13, Rule: ErrFiles, Fix: "Name a listing of the account that has these files: starling model catalog list."},
}}

// Gas of messages, in addition to that of the SDK: for a record that stays, and for a leaf that is decrypted.
const (
	recordGas   = 100_000
	evidenceGas = 50_000
)

// settled is how many orders a block settles at most, where one of a listing, whose price up to catalog.MaxPayments
// works share, counts as shared. The others follow in the next block.
const (
	settled = 200
	shared  = 10
)

// Catalog has the listings whose files are sold.
type Catalog interface {
	Listing(ctx context.Context, id uint64) (catalog.Listing, error)
}

// Revenues divide the price of files of a listing among the holders of shares, except for a part of it, which stays
// with the payer and is returned.
type Revenues interface {
	Divide(ctx context.Context, from sdk.AccAddress, job string, c coin.Coin, amount uint64, keep uint32) (uint64, error)
}

// Beacon is the beacon of a block; zero: it has none.
type Beacon interface {
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// Keeper reads and writes offers and orders.
type Keeper struct {
	Schema collections.Schema

	custody  custody.Custody
	catalog  Catalog
	revenues Revenues
	beacon   Beacon

	offers collections.Map[uint64, sale.Offer]
	orders collections.Map[uint64, sale.Order]
	next   collections.Sequence                                 // number of the next offer or order
	of     collections.KeySet[collections.Pair[uint64, uint64]] // offer, order
	until  collections.KeySet[collections.Pair[int64, uint64]]  // last block of the phase of an open order, order
	open   collections.KeySet[uint64]                           // offers that take orders
	once   collections.KeySet[[]byte]                           // of the offers of a seller and the orders of a buyer
	draws  collections.KeySet[collections.Pair[int64, uint64]]  // block, offer: whose leaves a later block draws
}

// NewKeeper returns a keeper over its own store.
func NewKeeper(s store.KVStoreService, held custody.Custody, works Catalog, revenues Revenues,
	beacon Beacon) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	k := &Keeper{custody: held, catalog: works, revenues: revenues, beacon: beacon,
		offers: collections.NewMap(b, collections.NewPrefix(0), "offers", collections.Uint64Key,
			adapter.Record[sale.Offer]()),
		orders: collections.NewMap(b, collections.NewPrefix(1), "orders", collections.Uint64Key,
			adapter.Record[sale.Order]()),
		next: collections.NewSequence(b, collections.NewPrefix(2), "next"),
		of: collections.NewKeySet(b, collections.NewPrefix(3), "of",
			collections.PairKeyCodec(collections.Uint64Key, collections.Uint64Key)),
		until: collections.NewKeySet(b, collections.NewPrefix(4), "until",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
		open: collections.NewKeySet(b, collections.NewPrefix(5), "open", collections.Uint64Key),
		once: collections.NewKeySet(b, collections.NewPrefix(6), "once", collections.BytesKey),
		draws: collections.NewKeySet(b, collections.NewPrefix(7), "draws",
			collections.PairKeyCodec(collections.Int64Key, collections.Uint64Key)),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// number is that of a new offer or order, from 1 on.
func (k *Keeper) number(ctx context.Context) (uint64, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(recordGas, "record of a sale")
	n, err := k.next.Next(ctx)
	return n + 1, err
}

// first refuses what the network has already, such as a message that a restarted program sends again.
func (k *Keeper) first(ctx context.Context, domain, sender string, offer uint64, digest canon.Digest) error {
	key := canon.Sum(domain, []byte(sender), canon.MustMarshal(offer), digest[:])
	had, err := k.once.Has(ctx, key[:])
	if err != nil {
		return err
	}
	if had {
		return fmt.Errorf("%w: the %s of %s", sale.ErrTwice, domain, sender)
	}
	return k.once.Set(ctx, key[:])
}

// save stores an offer.
func (k *Keeper) save(ctx context.Context, o sale.Offer) error {
	if o.Closed() {
		return errors.Join(k.offers.Set(ctx, o.ID, o), k.open.Remove(ctx, o.ID))
	}
	return errors.Join(k.offers.Set(ctx, o.ID, o), k.open.Set(ctx, o.ID))
}

func (k *Keeper) offer(ctx context.Context, id uint64) (sale.Offer, error) {
	o, err := k.offers.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return o, fmt.Errorf("%w: offer %d", ErrNone, id)
	}
	return o, err
}

// order returns an order with its offer.
func (k *Keeper) order(ctx context.Context, id uint64) (sale.Offer, sale.Order, error) {
	r, err := k.orders.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return sale.Offer{}, r, fmt.Errorf("%w: order %d", ErrNone, id)
	}
	if err != nil {
		return sale.Offer{}, r, err
	}
	o, err := k.offer(ctx, r.Offer)
	return o, r, err
}

// turn stores an order in its new state, in place of the old one, and the payments of the turn.
func (k *Keeper) turn(ctx context.Context, o sale.Offer, old, r sale.Order, payments []sale.Payment) error {
	if old.Open() {
		if err := k.until.Remove(ctx, collections.Join(old.Until, old.ID)); err != nil {
			return err
		}
	}
	if r.Open() {
		if err := k.until.Set(ctx, collections.Join(r.Until, r.ID)); err != nil {
			return err
		}
	}
	return errors.Join(k.save(ctx, o), k.orders.Set(ctx, r.ID, r), k.pay(ctx, o, payments))
}

func (k *Keeper) pay(ctx context.Context, o sale.Offer, payments []sale.Payment) error {
	for _, p := range payments {
		if p.To == sale.Holders {
			var err error
			if p, err = k.share(ctx, o, p.Amount); err != nil {
				return err
			}
		}
		if err := k.custody.Pay(ctx, o.Terms.Denom, p.To, p.Amount); err != nil {
			return err
		}
	}
	return nil
}

// share pays the price of files of a listing to the holders of shares, and returns what is left for the seller. The
// seller has all of it if they cannot take it, as when they hold more than 64 bits count.
func (k *Keeper) share(ctx context.Context, o sale.Offer, price uint64) (sale.Payment, error) {
	c, err := k.custody.Coins.Find(ctx, o.Terms.Denom)
	if err != nil {
		return sale.Payment{}, err
	}
	left := price
	if err := adapter.Isolate(ctx, func(ctx context.Context) error {
		l, err := k.catalog.Listing(ctx, o.Terms.Listing)
		if err != nil {
			return err
		}
		kept, err := k.revenues.Divide(ctx, k.custody.Account, l.Pool(), c.Coin, price, o.Terms.SellerPart)
		if err == nil {
			left = kept
		}
		return err
	}); err != nil {
		sdk.UnwrapSDKContext(ctx).Logger().Error("sale: a price cannot be shared", "offer", o.ID, "error", err)
	}
	return sale.Payment{To: o.Seller, Amount: left}, nil
}

// due lists the first keys of a set whose block is past, at most as many as a block settles.
func due(ctx context.Context, set collections.KeySet[collections.Pair[int64, uint64]]) (
	keys []collections.Pair[int64, uint64], err error) {
	past := new(collections.Range[collections.Pair[int64, uint64]]).
		EndExclusive(collections.PairPrefix[int64, uint64](height(ctx)))
	err = set.Walk(ctx, past, func(key collections.Pair[int64, uint64]) (bool, error) {
		keys = append(keys, key)
		return len(keys) == settled, nil
	})
	return keys, err
}

// draw draws leaves of the offers of earlier blocks by the beacon of this one, which their sellers did not know.
func (k *Keeper) draw(ctx context.Context) error {
	offers, err := due(ctx, k.draws)
	if err != nil || len(offers) == 0 {
		return err
	}
	beacon, err := k.beacon.At(ctx, height(ctx))
	if err != nil || beacon.IsZero() { // a later block has one
		return err
	}
	for _, key := range offers {
		o, err := k.offers.Get(ctx, key.K2())
		if err != nil {
			return err
		}
		d := o.Draw(beacon)
		o.Drawing = d[:]
		if err := errors.Join(k.offers.Set(ctx, o.ID, o), k.draws.Remove(ctx, key)); err != nil {
			return err
		}
	}
	return nil
}

// EndBlock draws leaves, and settles the orders whose phase is over.
func (k *Keeper) EndBlock(ctx context.Context) error {
	if err := k.draw(ctx); err != nil {
		return err
	}
	orders, err := due(ctx, k.until)
	if err != nil {
		return err
	}
	work := 0
	for _, key := range orders {
		if work >= settled {
			break
		}
		err := adapter.Isolate(ctx, func(ctx context.Context) error {
			o, old, err := k.order(ctx, key.K2())
			if err != nil {
				return err
			}
			if work++; o.Terms.Listing > 0 {
				work += shared - 1
			}
			o, r, payments := o.Expire(old, height(ctx))
			return k.turn(ctx, o, old, r, payments)
		})
		if err != nil { // no order stops the blocks, or is tried again in each
			sdk.UnwrapSDKContext(ctx).Logger().Error("sale: an order cannot be settled", "order", key.K2(), "error", err)
			if err := k.until.Remove(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}
