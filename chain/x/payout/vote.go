package payout

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"cosmossdk.io/collections"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/protocol/payout"
)

// Watcher sees deposits in the contracts of bridges, in blocks that are final on their chains. It answers at once, from
// memory.
type Watcher interface {
	// After are the deposits after a number, in their order, without gaps.
	After(evm uint64, contract payout.Address, number uint64) []payout.Deposit
}

// ballot is the part of a vote that concerns payouts.
type ballot struct {
	Key        []byte   `cbor:"1,keyasint,omitempty"` // of the validator, if the chain has another
	Proof      []byte   `cbor:"2,keyasint,omitempty"` // that it knows the secret
	Turn       uint64   `cbor:"3,keyasint,omitempty"`
	Signatures [][]byte `cbor:"4,keyasint,omitempty"` // of the messages of the turn
	Reports    []report `cbor:"5,keyasint,omitempty"`
}

// report has the deposits on a chain that a validator has seen and the network has not credited.
type report struct {
	EVM      uint64           `cbor:"1,keyasint"`
	Deposits []payout.Deposit `cbor:"2,keyasint"`
}

// Limits of a ballot: of its bytes, and of the deposits on one chain.
const (
	maxBallot   = 16 << 10
	maxDeposits = 8
)

func decodeBallot(v []byte) (b ballot, err error) {
	if len(v) == 0 {
		return b, nil
	}
	if len(v) > maxBallot {
		return b, fmt.Errorf("payout: a vote of %d bytes, at most %d", len(v), maxBallot)
	}
	return b, canon.Unmarshal(v, &b)
}

// Speak is what a validator adds to its vote: nothing on a network without payouts.
func (k *Keeper) Speak(ctx context.Context, validator, seed []byte) ([]byte, error) {
	p, err := k.Params(ctx)
	if err != nil || p.EpochBlocks == 0 {
		return nil, err
	}
	secret := payout.NewSecret(seed)
	var b ballot
	announced, _, err := get(k.keys.Get(ctx, validator))
	if err != nil {
		return nil, err
	}
	if string(announced) != string(secret.Public()) {
		b.Key = secret.Public()
		if b.Proof, err = secret.Possess(validator); err != nil {
			return nil, err
		}
	}
	if b.Turn, b.Signatures, err = k.sign(ctx, validator, secret); err != nil {
		return nil, err
	}
	for _, bridge := range p.Bridges {
		if k.watcher == nil {
			break
		}
		s, _, err := get(k.states.Get(ctx, bridge.EVM))
		if err != nil {
			return nil, err
		}
		seen := k.watcher.After(bridge.EVM, bridge.Contract, s.Credited)
		if seen = seen[:min(len(seen), maxDeposits)]; len(seen) > 0 {
			b.Reports = append(b.Reports, report{EVM: bridge.EVM, Deposits: seen})
		}
	}
	if !fit(p, b) { // the node of another chain may lie, and other validators drop votes that are not fit
		b.Reports = nil
	}
	if b.Key == nil && b.Turn == 0 && b.Reports == nil {
		return nil, nil
	}
	return canon.Marshal(b)
}

// sign signs the messages of the turn, if the validator is in the set and has not signed them.
func (k *Keeper) sign(ctx context.Context, validator []byte, secret payout.Secret) (uint64, [][]byte, error) {
	t, at, err := k.seat(ctx, validator)
	if err != nil || at < 0 {
		return 0, nil, err
	}
	set, err := k.set.Get(ctx)
	if err != nil || string(set.Members[at].Key) != string(secret.Public()) {
		return 0, nil, err
	}
	if had, err := k.signatures.Has(ctx, collections.Join(uint64(0), uint64(at))); err != nil || had {
		return 0, nil, err
	}
	signatures := make([][]byte, len(t.Messages))
	for i, m := range t.Messages {
		if signatures[i], err = secret.Sign(m); err != nil {
			return 0, nil, err
		}
	}
	return t.Number, signatures, nil
}

// seat is the turn under way, and the place of a validator in the set that signs; below 0: there is none.
func (k *Keeper) seat(ctx context.Context, validator []byte) (payout.Turn, int, error) {
	t, ok, err := get(k.turn.Get(ctx))
	if err != nil || !ok {
		return t, -1, err
	}
	set, err := k.set.Get(ctx)
	return t, set.Index(validator), err
}

// Fit reports whether a part of a vote holds only what its validator may add.
func (k *Keeper) Fit(ctx context.Context, validator, said []byte) (bool, error) {
	if len(said) == 0 {
		return true, nil
	}
	p, err := k.Params(ctx)
	if err != nil || p.EpochBlocks == 0 {
		return false, err
	}
	b, err := decodeBallot(said)
	if err != nil || !fit(p, b) {
		return false, nil
	}
	if len(b.Key) > 0 && !payout.CheckKey(b.Key, validator, b.Proof) {
		return false, nil
	}
	if b.Turn == 0 {
		return len(b.Signatures) == 0, nil
	}
	t, at, err := k.seat(ctx, validator)
	if err != nil || at < 0 || t.Number != b.Turn || len(b.Signatures) != len(t.Messages) {
		return false, err
	}
	set, err := k.set.Get(ctx)
	return err == nil && right(t, set.Members[at], b.Signatures), err
}

// right reports whether signatures are those of a member, of the messages of a turn.
func right(t payout.Turn, m payout.Member, signatures [][]byte) bool {
	for i, s := range signatures {
		if !payout.Verify(m.Key, t.Messages[i], s) {
			return false
		}
	}
	return true
}

// fit reports whether reports are in their one form: one for a chain at most.
func fit(p payout.Params, b ballot) bool {
	for i, r := range b.Reports {
		_, err := p.Bridge(r.EVM)
		again := slices.ContainsFunc(b.Reports[:i], func(o report) bool { return o.EVM == r.EVM })
		if err != nil || again || len(r.Deposits) == 0 || len(r.Deposits) > maxDeposits {
			return false
		}
		for j, d := range r.Deposits {
			if !d.Valid() || j > 0 && d.Number != r.Deposits[j-1].Number+1 {
				return false
			}
		}
	}
	return len(b.Key)+len(b.Proof) <= payout.KeySize+payout.SignatureSize && len(b.Reports) <= payout.MaxBridges
}

// spoken is the part of a vote, of its validator.
type spoken struct {
	validator abci.Validator
	ballot
}

// Count processes the parts of the votes for the block before. powers are those of all validators.
func (k *Keeper) Count(ctx context.Context, height int64, votes []beacon.Said, powers []abci.Validator) error {
	p, err := k.Params(ctx)
	if err != nil || p.EpochBlocks == 0 {
		return err
	}
	var list []spoken
	for _, v := range votes {
		if b, err := decodeBallot(v.Text); err == nil && fit(p, b) {
			list = append(list, spoken{v.Validator, b})
		}
	}
	for _, v := range list {
		if had, _, err := get(k.keys.Get(ctx, v.validator.Address)); err != nil {
			return err
		} else if len(v.Key) == 0 || string(had) == string(v.Key) ||
			!payout.CheckKey(v.Key, v.validator.Address, v.Proof) {
			continue
		}
		if err := k.keys.Set(ctx, v.validator.Address, v.Key); err != nil {
			return err
		}
	}
	if err := k.collect(ctx, list); err != nil {
		return err
	}
	for _, b := range p.Bridges {
		if err := k.credit(ctx, b, list, powers); err != nil {
			return err
		}
	}
	if height%int64(p.EpochBlocks) == 0 {
		return k.close(ctx, p, powers)
	}
	return nil
}

// collect stores the right signatures of the messages of the turn.
func (k *Keeper) collect(ctx context.Context, votes []spoken) error {
	t, ok, err := get(k.turn.Get(ctx))
	if err != nil || !ok {
		return err
	}
	set, err := k.set.Get(ctx)
	if err != nil {
		return err
	}
	for _, v := range votes {
		if v.Turn != t.Number {
			continue
		}
		if _, err := k.receive(ctx, set, t, v.validator.Address, v.Signatures); err != nil {
			return err
		}
	}
	return k.complete(ctx, set, t)
}

// receive stores the signatures of a member, if they are right and new.
func (k *Keeper) receive(ctx context.Context, set payout.Set, t payout.Turn, validator []byte,
	signatures [][]byte) (bool, error) {
	at := set.Index(validator)
	if at < 0 || len(signatures) != len(t.Messages) {
		return false, nil
	}
	had, err := k.signatures.Has(ctx, collections.Join(uint64(0), uint64(at)))
	if err != nil || had || !right(t, set.Members[at], signatures) {
		return false, err
	}
	for i, s := range signatures {
		if err := k.signatures.Set(ctx, collections.Join(uint64(i), uint64(at)), s); err != nil {
			return false, err
		}
	}
	return true, nil
}

// complete ends the turn when members with two thirds of the power have signed.
func (k *Keeper) complete(ctx context.Context, set payout.Set, t payout.Turn) error {
	power := uint64(0)
	for at, m := range set.Members {
		had, err := k.signatures.Has(ctx, collections.Join(uint64(0), uint64(at)))
		if err != nil {
			return err
		}
		if had {
			power += m.Power
		}
	}
	if !set.Enough(power) {
		return nil
	}
	return k.end(ctx, set, t)
}

// credit credits the next deposits on a chain that validators with two thirds of the power report alike.
func (k *Keeper) credit(ctx context.Context, b payout.Bridge, votes []spoken, powers []abci.Validator) error {
	s, _, err := get(k.states.Get(ctx, b.EVM))
	if err != nil {
		return err
	}
	var all payout.Set
	for _, v := range powers {
		all.Total += uint64(v.Power)
	}
	for range maxDeposits {
		d, ok := agreed(all, b.EVM, s.Credited+1, votes)
		if !ok {
			break
		}
		s.Credited = d.Number
		if s, err = k.deposit(ctx, b, s, d); err != nil {
			return err
		}
		if err := k.states.Set(ctx, b.EVM, s); err != nil {
			return err
		}
	}
	return nil
}

// agreed is the deposit with a number that enough validators report alike. A validator counts once.
func agreed(all payout.Set, evm, number uint64, votes []spoken) (payout.Deposit, bool) {
	var seen []payout.Deposit
	var power []uint64
	for _, v := range votes {
		d, ok := v.reported(evm, number)
		if !ok {
			continue
		}
		i := slices.IndexFunc(seen, d.Same)
		if i < 0 {
			i = len(seen)
			seen, power = append(seen, d), append(power, 0)
		}
		if power[i] += uint64(v.validator.Power); all.Enough(power[i]) {
			return seen[i], true
		}
	}
	return payout.Deposit{}, false
}

// reported is the deposit on a chain with a number that a vote reports.
func (v spoken) reported(evm, number uint64) (payout.Deposit, bool) {
	for _, r := range v.Reports {
		for _, d := range r.Deposits {
			if r.EVM == evm && d.Number == number {
				return d, true
			}
		}
	}
	return payout.Deposit{}, false
}

// deposit credits a deposit, and returns the state of the bridge after it. One that cannot be credited goes to the
// total of its sender on the other chain; one of a token that is not registered stays there, as do ZEN that the network
// does not hold for this bridge: a chain that makes deposits up takes nothing from the others.
func (k *Keeper) deposit(ctx context.Context, b payout.Bridge, s payout.State, d payout.Deposit) (payout.State,
	error) {
	log := sdk.UnwrapSDKContext(ctx).Logger().With("chain", b.EVM, "number", d.Number)
	denom, err := b.Denom(d.Token)
	amount := new(big.Int).SetBytes(d.Amount)
	own := denom == payout.Own
	if err != nil || amount.BitLen() > 200 || own && (!amount.IsUint64() || amount.Uint64() > s.Locked) {
		log.Info("payout: a deposit is not credited", "token", d.Token, "amount", amount)
		return s, nil
	}
	err = adapter.Isolate(ctx, func(ctx context.Context) error {
		coins := coinsOf(denom, amount)
		if !own {
			if err := k.bank.MintCoins(ctx, Name, coins); err != nil {
				return err
			}
		}
		return k.bank.SendCoinsFromModuleToAccount(ctx, Name, d.To, coins)
	})
	if own {
		s.Returned += amount.Uint64()
	}
	if err == nil {
		if own {
			s.Locked -= amount.Uint64()
		}
		return s, nil
	}
	log.Info("payout: a deposit returns to its sender", "why", err)
	if err := adapter.Isolate(ctx, func(ctx context.Context) error {
		return k.add(ctx, b.EVM, d.From, d.Token, amount)
	}); err != nil {
		log.Info("payout: a deposit is not credited", "why", err)
	}
	return s, nil
}
