package payout

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"slices"

	"cosmossdk.io/collections"
	sdkmath "cosmossdk.io/math"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/payout"
)

// close ends an epoch: coins are withdrawn by themselves, and the set hands over to the validators as they are now, or,
// if they are the same, signs the roots. An epoch does not end while a turn is under way.
func (k *Keeper) close(ctx context.Context, p payout.Params, powers []abci.Validator) error {
	if _, ok, err := get(k.turn.Get(ctx)); err != nil || ok {
		return err
	}
	if err := k.sweep(ctx, p); err != nil {
		return err
	}
	next, err := k.present(ctx, powers)
	if err != nil {
		return err
	}
	set, ok, err := get(k.set.Get(ctx))
	switch {
	case err != nil:
		return err
	case !next.Enough(next.Power()) || len(next.Members) == 0: // too few have keys to sign anything
		if !ok {
			return nil
		}
	case !ok:
		next.Number = 1
		return k.set.Set(ctx, next)
	case !set.Same(next):
		next.Number = set.Number + 1
		digest, err := next.Digest()
		if err != nil {
			return err
		}
		network := payout.Network(sdk.UnwrapSDKContext(ctx).ChainID())
		return k.begin(ctx, payout.Turn{Next: &next,
			Messages: []payout.Digest{payout.HandoverMessage(network, next.Number, digest)}})
	}
	return k.open(ctx, p, set)
}

// present is the set of the validators that have keys, in the order of their addresses.
func (k *Keeper) present(ctx context.Context, powers []abci.Validator) (payout.Set, error) {
	var s payout.Set
	for _, v := range powers {
		s.Total += uint64(v.Power)
		key, ok, err := get(k.keys.Get(ctx, v.Address))
		if err != nil {
			return s, err
		}
		if ok && v.Power > 0 {
			s.Members = append(s.Members, payout.Member{Validator: v.Address, Key: key, Power: uint64(v.Power)})
		}
	}
	slices.SortFunc(s.Members, func(a, b payout.Member) int { return bytes.Compare(a.Validator, b.Validator) })
	return s, nil
}

func (k *Keeper) begin(ctx context.Context, t payout.Turn) error {
	n, err := k.turns.Next(ctx)
	t.Number = n + 1
	return errors.Join(err, k.turn.Set(ctx, t))
}

// open begins to sign the roots of the chains whose totals have changed, or whose root another set has signed.
func (k *Keeper) open(ctx context.Context, p payout.Params, set payout.Set) error {
	var t payout.Turn
	network := payout.Network(sdk.UnwrapSDKContext(ctx).ChainID())
	for _, b := range p.Bridges {
		s, _, err := get(k.states.Get(ctx, b.EVM))
		if err != nil {
			return err
		}
		changed, err := k.changes(ctx, b.EVM)
		if err != nil {
			return err
		}
		if len(changed) == 0 && (s.Signed == 0 || s.Set == set.Number) {
			continue
		}
		s.Epoch++
		for _, key := range changed {
			e, err := k.entries.Get(ctx, key)
			if err != nil {
				return err
			}
			if err := errors.Join(k.entries.Set(ctx, key, e.Close(s.Epoch)), k.changed.Remove(ctx, key)); err != nil {
				return err
			}
		}
		claims, err := k.claims(ctx, b.EVM, s.Epoch)
		if err != nil {
			return err
		}
		if err := k.states.Set(ctx, b.EVM, s); err != nil {
			return err
		}
		o := payout.Open{EVM: b.EVM, Epoch: s.Epoch, Root: claims.Tree().Root()}
		t.Roots = append(t.Roots, o)
		t.Messages = append(t.Messages, payout.RootMessage(network, o.EVM, b.Contract, o.Epoch, o.Root))
	}
	if len(t.Roots) == 0 {
		return nil
	}
	return k.begin(ctx, t)
}

func (k *Keeper) changes(ctx context.Context, evm uint64) (list []entryKey, err error) {
	err = k.changed.Walk(ctx, collections.NewPrefixedPairRange[uint64, []byte](evm), func(key entryKey) (bool, error) {
		list = append(list, key)
		return false, nil
	})
	return list, err
}

// end stores the certificates of the messages of a turn. After a handover the next set signs the roots.
func (k *Keeper) end(ctx context.Context, set payout.Set, t payout.Turn) error {
	certificates := make([]payout.Certificate, len(t.Messages))
	for i := range t.Messages {
		signatures := make([][]byte, len(set.Members))
		for at := range set.Members {
			s, _, err := get(k.signatures.Get(ctx, collections.Join(uint64(i), uint64(at))))
			if err != nil {
				return err
			}
			signatures[at] = s
		}
		var err error
		if certificates[i], err = set.Certify(signatures); err != nil {
			return err
		}
	}
	if err := errors.Join(k.turn.Remove(ctx), k.signatures.Clear(ctx, nil)); err != nil {
		return err
	}
	for i, o := range t.Roots {
		s, err := k.states.Get(ctx, o.EVM)
		if err != nil {
			return err
		}
		s.Signed, s.Root, s.Set, s.Certificate = o.Epoch, o.Root, set.Number, certificates[i]
		if err := k.states.Set(ctx, o.EVM, s); err != nil {
			return err
		}
	}
	if t.Next == nil {
		return nil
	}
	digest, err := t.Next.Digest()
	if err != nil {
		return err
	}
	h := payout.Handover{Number: t.Next.Number, Set: digest, Certificate: certificates[0]}
	if err := errors.Join(k.handovers.Set(ctx, h.Number, h), k.set.Set(ctx, *t.Next)); err != nil {
		return err
	}
	p, err := k.Params(ctx)
	if err != nil {
		return err
	}
	return k.open(ctx, p, *t.Next)
}

// sweep withdraws the coins of accounts that want it, where they are at least the minimum. Less stays in the account
// and accumulates.
func (k *Keeper) sweep(ctx context.Context, p payout.Params) error {
	last, _, err := get(k.swept.Get(ctx))
	if err != nil {
		return err
	}
	var accounts []string
	next := func(account string) (bool, error) {
		accounts = append(accounts, account)
		return len(accounts) == most, nil
	}
	if err := k.automatic.Walk(ctx, new(collections.Range[string]).StartExclusive(last), next); err != nil {
		return err
	}
	last = ""
	if len(accounts) == most {
		last = accounts[most-1]
	}
	if err := k.swept.Set(ctx, last); err != nil {
		return err
	}
	for _, account := range accounts {
		payee, err := k.payees.Get(ctx, account)
		if err != nil {
			return err
		}
		b, err := p.Bridge(payee.EVM)
		if err != nil {
			continue
		}
		from, err := sdk.AccAddressFromBech32(account)
		if err != nil {
			return err
		}
		for _, denom := range b.Denoms() { // an account may have many more
			c := k.bank.SpendableCoin(ctx, from, denom)
			if c.Denom == payout.Own {
				c.Amount = c.Amount.Sub(sdkmath.NewIntFromUint64(payee.Keep))
			}
			_, least, err := b.Find(c.Denom)
			if err != nil || !c.Amount.IsPositive() || c.Amount.BigInt().Cmp(least) < 0 {
				continue
			}
			amount := new(big.Int).Set(c.Amount.BigInt())
			if err := adapter.Isolate(ctx, func(ctx context.Context) error {
				return k.enter(ctx, from, b, payee.Address, c.Denom, amount)
			}); err != nil {
				sdk.UnwrapSDKContext(ctx).Logger().Info("payout: coins stay in an account", "account", account, "why", err)
			}
		}
	}
	return nil
}
