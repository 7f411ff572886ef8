// Package payout pays coins out on Ethereum-style chains: the rules of protocol/payout on the chain. Its account holds
// the ZEN that stand for tokens there; coins that stand for tokens of other chains are made when a deposit is credited,
// and burned when they are withdrawn. Votes carry the signatures of validators and what they report of deposits. The
// package sends nothing to another chain.
package payout

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdkmath "cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/payout"
)

// Name of the module, its store, its account and its codespace.
const Name = "payout"

// Errors of the module, in addition to those of protocol/payout.
var (
	ErrOff    = errors.New("payout: this network pays nothing out")
	ErrPayee  = errors.New("payout: the account has no address for payouts")
	ErrAmount = errors.New("payout: not an amount of a withdrawal")
	ErrFunds  = errors.New("payout: the account cannot pay")
	ErrTurn   = errors.New("payout: nothing is signed in this turn")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: payout.ErrAddress, Fix: "Give an address of that chain: 0x and 40 digits, or a key in base 58."},
	{Code: 3, Rule: payout.ErrSignature, Fix: "Sign the text of starling payout set with the wallet of the address."},
	{Code: 4, Rule: payout.ErrBridge, Fix: "Look at the bridges of the network: starling payout show."},
	{Code: 5, Rule: ErrOff, Fix: "Wait until governance has set the blocks of an epoch of payouts."},
	{Code: 6, Rule: ErrPayee, Fix: "Name an address first: starling payout set."},
	{Code: 7, Rule: ErrAmount, Fix: "Withdraw at least the minimum of the bridge: starling payout show."},
	{Code: 8, Rule: ErrFunds, Fix: "Fund the account."},
	{Code: 9, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 10, Rule: ErrTurn, Fix: "Sign again: another turn is under way, or none."},
}}

// Gas of messages, in addition to that of the SDK: for a record that stays, and for a signature.
const (
	recordGas    = 50_000
	signatureGas = 20_000
	signingGas   = 300_000 // a signature of a set, whose check takes a millisecond
)

// Bank moves coins.
type Bank interface {
	SpendableCoin(ctx context.Context, account sdk.AccAddress, denom string) sdk.Coin
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
	MintCoins(ctx context.Context, module string, amount sdk.Coins) error
	BurnCoins(ctx context.Context, module string, amount sdk.Coins) error
}

// most is of how many accounts an epoch withdraws coins. The others follow in the next epochs.
const most = 1000

// entryKey is the chain of an entry, and its account and token.
type entryKey = collections.Pair[uint64, []byte]

// Keeper reads and writes what is paid out.
type Keeper struct {
	Schema collections.Schema

	authority string
	bank      Bank
	watcher   Watcher

	params     collections.Item[payout.Params]
	payees     collections.Map[string, payout.Payee]
	automatic  collections.KeySet[string] // accounts whose coins are withdrawn at the end of an epoch
	entries    collections.Map[entryKey, payout.Entry]
	changed    collections.KeySet[entryKey] // entries whose totals are not in a root yet
	states     collections.Map[uint64, payout.State]
	keys       collections.Map[[]byte, []byte] // of validators
	set        collections.Item[payout.Set]
	turn       collections.Item[payout.Turn]
	turns      collections.Sequence
	signatures collections.Map[collections.Pair[uint64, uint64], []byte] // of a turn, by message and member
	handovers  collections.Map[uint64, payout.Handover]
	swept      collections.Item[string] // the last account whose coins were withdrawn by themselves

	cached trees
}

// NewKeeper returns a keeper over its own store. The watcher, which may be nil, sees deposits on other chains.
func NewKeeper(s store.KVStoreService, authority string, bank Bank, watcher Watcher) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	pair := collections.PairKeyCodec(collections.Uint64Key, collections.BytesKey)
	k := &Keeper{authority: authority, bank: bank, watcher: watcher,
		params: collections.NewItem(b, collections.NewPrefix(0), "params", adapter.Record[payout.Params]()),
		payees: collections.NewMap(b, collections.NewPrefix(1), "payees", collections.StringKey,
			adapter.Record[payout.Payee]()),
		automatic: collections.NewKeySet(b, collections.NewPrefix(2), "automatic", collections.StringKey),
		entries:   collections.NewMap(b, collections.NewPrefix(3), "entries", pair, adapter.Record[payout.Entry]()),
		changed:   collections.NewKeySet(b, collections.NewPrefix(4), "changed", pair),
		states: collections.NewMap(b, collections.NewPrefix(5), "states", collections.Uint64Key,
			adapter.Record[payout.State]()),
		keys:  collections.NewMap(b, collections.NewPrefix(6), "keys", collections.BytesKey, collections.BytesValue),
		set:   collections.NewItem(b, collections.NewPrefix(7), "set", adapter.Record[payout.Set]()),
		turn:  collections.NewItem(b, collections.NewPrefix(8), "turn", adapter.Record[payout.Turn]()),
		turns: collections.NewSequence(b, collections.NewPrefix(9), "turns"),
		signatures: collections.NewMap(b, collections.NewPrefix(10), "signatures",
			collections.PairKeyCodec(collections.Uint64Key, collections.Uint64Key), collections.BytesValue),
		handovers: collections.NewMap(b, collections.NewPrefix(11), "handovers", collections.Uint64Key,
			adapter.Record[payout.Handover]()),
		swept: collections.NewItem(b, collections.NewPrefix(12), "swept", collections.StringValue),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// get reads an item that may be missing.
func get[T any](v T, err error) (T, bool, error) {
	if errors.Is(err, collections.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// Params are the parameters.
func (k *Keeper) Params(ctx context.Context) (payout.Params, error) {
	p, _, err := get(k.params.Get(ctx))
	return p, err
}

func coinsOf(denom string, amount *big.Int) sdk.Coins {
	return sdk.NewCoins(sdk.NewCoin(denom, sdkmath.NewIntFromBigInt(amount)))
}

// enter moves coins of an account to the total of an address.
func (k *Keeper) enter(ctx context.Context, from sdk.AccAddress, b payout.Bridge, to payout.Address, denom string,
	amount *big.Int) error {
	token, least, err := b.Find(denom)
	if err != nil {
		return err
	}
	if amount.Sign() <= 0 || amount.Cmp(least) < 0 {
		return fmt.Errorf("%w: the minimum is %s %s", ErrAmount, least, denom)
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, coinsOf(denom, amount)); err != nil {
		return fmt.Errorf("%w: %w", ErrFunds, err)
	}
	if denom != payout.Own {
		if err := k.bank.BurnCoins(ctx, Name, coinsOf(denom, amount)); err != nil {
			return err
		}
		return k.add(ctx, b.EVM, to, token, amount)
	}
	s, _, err := get(k.states.Get(ctx, b.EVM))
	if err != nil {
		return err
	}
	s.Locked += amount.Uint64() // a balance of ZEN
	return errors.Join(k.states.Set(ctx, b.EVM, s), k.add(ctx, b.EVM, to, token, amount))
}

// add adds to the total of an address.
func (k *Keeper) add(ctx context.Context, evm uint64, to, token payout.Address, amount *big.Int) error {
	e := payout.Entry{Account: to, Token: token}
	key := collections.Join(evm, e.Key())
	had, ok, err := get(k.entries.Get(ctx, key))
	if err != nil {
		return err
	}
	if ok {
		e = had
	}
	if e, err = e.Add(amount); err != nil {
		return err
	}
	return errors.Join(k.entries.Set(ctx, key, e), k.changed.Set(ctx, key))
}

// trees remembers the tree over the claims of the latest signed epoch of each chain. It affects only speed.
type trees struct {
	mu sync.Mutex
	of map[uint64]rooted
}

type rooted struct {
	epoch  uint64
	root   payout.Digest
	claims payout.Claims
	tree   payout.Tree
}

// claims are those of an epoch, the last that was closed or the one before.
func (k *Keeper) claims(ctx context.Context, evm, epoch uint64) (list payout.Claims, err error) {
	err = k.entries.Walk(ctx, collections.NewPrefixedPairRange[uint64, []byte](evm),
		func(_ entryKey, e payout.Entry) (bool, error) {
			if c, ok := e.At(epoch); ok {
				list = append(list, c)
			}
			return false, nil
		})
	list.Sort()
	return list, err
}

// signed is the tree of the latest signed root of a chain.
func (k *Keeper) signed(ctx context.Context, evm uint64, s payout.State) (rooted, error) {
	k.cached.mu.Lock()
	defer k.cached.mu.Unlock()
	if r, ok := k.cached.of[evm]; ok && r.epoch == s.Signed && r.root == s.Root {
		return r, nil
	}
	list, err := k.claims(ctx, evm, s.Signed)
	if err != nil || len(list) == 0 {
		return rooted{}, err
	}
	r := rooted{epoch: s.Signed, claims: list, tree: list.Tree()}
	if r.root = r.tree.Root(); k.cached.of == nil {
		k.cached.of = map[uint64]rooted{}
	}
	k.cached.of[evm] = r
	return r, nil
}
