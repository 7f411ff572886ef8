// Package arena holds contests of models and committees, whose rounds are contests: the rules of protocol/arena and
// protocol/committee on the chain. Its account holds the prizes, bonds, fees and deposits of contests, the pay of
// committees, the stakes of their members, and the bonds of evaluators. It evaluates no model, and sees no example.
package arena

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
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/committee"
	"github.com/starling-network/starling/protocol/registry"
)

// Name of the module, its store, its account and its codespace.
const Name = "arena"

// Errors of the module, in addition to those of protocol/arena.
var (
	ErrNone = errors.New("arena: no such contest or entry")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: arena.ErrTerms, Fix: "Correct the terms of the contest."},
	{Code: 3, Rule: arena.ErrParty, Fix: "Sign with the account of the host, of the entrant or of an evaluator of the " +
		"panel, as the message needs; a host enters no model."},
	{Code: 4, Rule: arena.ErrPhase, Fix: "Look at the contest, its phase and the last block of it: " +
		"starling market arena show."},
	{Code: 5, Rule: arena.ErrFull, Fix: "Choose another contest: starling market arena list."},
	{Code: 6, Rule: arena.ErrEntry, Fix: "Reveal the model that was entered, with the folder of the account that " +
		"entered it."},
	{Code: 7, Rule: arena.ErrTwice, Fix: "Look at the contest: an earlier message was taken."},
	{Code: 8, Rule: arena.ErrReport, Fix: "Report what this version of the program finds: starling market arena judge."},
	{Code: 9, Rule: arena.ErrSeal, Fix: "Open the report that was sealed, with its salt."},
	{Code: 10, Rule: arena.ErrEvaluator, Fix: "Register a verifier with a stake (starling verifier up), and give a bond " +
		"of 1 ZEN or more; a network takes 1000 evaluators."},
	{Code: 11, Rule: arena.ErrBusy, Fix: "Wait until the contests of the panels are over."},
	{Code: 12, Rule: ErrNone, Fix: "Check the number: starling market arena list."},
	{Code: 13, Rule: custody.ErrFunds, Fix: "Fund the account."},
	{Code: 14, Rule: coin.ErrCoin, Fix: "Name a coin of the network: starling market coins."},
	{Code: 15, Rule: runpb.ErrDigest, Fix: "Send the 32 bytes of a SHA-256 digest."},
	{Code: 16, Rule: ErrNoCommittee, Fix: "Check the number: starling market committee list."},
	{Code: 17, Rule: committee.ErrTerms, Fix: "Correct the terms of the committee, or of its round."},
	{Code: 18, Rule: committee.ErrParty, Fix: "Sign with the account of the host; the host is no member."},
	{Code: 19, Rule: committee.ErrPhase, Fix: "Look at the committee and its phase: starling market committee show."},
	{Code: 20, Rule: committee.ErrStake, Fix: "Lock at least the stake of the committee: starling market committee show."},
	{Code: 21, Rule: committee.ErrMember, Fix: "Join the committee, or choose one that has fewer members."},
	{Code: 22, Rule: committee.ErrBusy, Fix: "Leave once the round is over, for which the account is drawn."},
}}

// recordGas is the gas of a record that stays, in addition to that of the SDK. reportGas is that of a report.
const (
	recordGas = 100_000
	reportGas = 20_000
)

// turned is how many contests a block turns at most. The others follow in the next block. again is after how many
// blocks a contest is turned again that could not be.
const (
	turned = 10
	again  = 1_000
)

// Beacon is the beacon of a block.
type Beacon interface {
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// Registry has the verifiers, of whom some evaluate.
type Registry interface {
	Get(ctx context.Context, id string) (registry.Participant, error)
	Params(ctx context.Context) (registry.Params, error)
}

// Keys of the collections.
type (
	entryKey   = collections.Pair[uint64, uint32] // contest, number
	opinionKey = collections.Pair[uint64, string] // contest, evaluator
	untilKey   = collections.Pair[int64, uint64]  // last block of the phase, contest
)

// Keeper reads and writes contests.
type Keeper struct {
	Schema collections.Schema

	custody  custody.Custody
	beacon   Beacon
	registry Registry

	contests   collections.Map[uint64, arena.Contest]
	last       collections.Sequence // number of the last contest
	entries    collections.Map[entryKey, arena.Entry]
	opinions   collections.Map[opinionKey, arena.Opinion]
	until      collections.KeySet[untilKey] // of contests that are open
	open       collections.KeySet[uint64]
	evaluators collections.Map[string, arena.Evaluator]
	number     collections.Item[uint64] // of evaluators
	committees
}

// NewKeeper returns a keeper over its own store.
func NewKeeper(s store.KVStoreService, held custody.Custody, beacon Beacon, registry Registry) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	u32, u64, name := collections.Uint32Key, collections.Uint64Key, collections.StringKey
	k := &Keeper{custody: held, beacon: beacon, registry: registry,
		contests: collections.NewMap(b, collections.NewPrefix(0), "contests", u64, adapter.Record[arena.Contest]()),
		last:     collections.NewSequence(b, collections.NewPrefix(1), "last"),
		entries: collections.NewMap(b, collections.NewPrefix(2), "entries", collections.PairKeyCodec(u64, u32),
			adapter.Record[arena.Entry]()),
		opinions: collections.NewMap(b, collections.NewPrefix(3), "opinions", collections.PairKeyCodec(u64, name),
			adapter.Record[arena.Opinion]()),
		until: collections.NewKeySet(b, collections.NewPrefix(4), "until",
			collections.PairKeyCodec(collections.Int64Key, u64)),
		open:       collections.NewKeySet(b, collections.NewPrefix(5), "open", u64),
		evaluators: collections.NewMap(b, collections.NewPrefix(6), "evaluators", name, adapter.Record[arena.Evaluator]()),
		number:     collections.NewItem(b, collections.NewPrefix(7), "number", collections.Uint64Value),
		committees: newCommittees(b),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// found turns a missing record into ErrNone.
func found[T any](v T, err error) (T, error) {
	if errors.Is(err, collections.ErrNotFound) {
		err = ErrNone
	}
	return v, err
}

// contest returns a contest.
func (k *Keeper) contest(ctx context.Context, id uint64) (arena.Contest, error) {
	c, err := found(k.contests.Get(ctx, id))
	if err != nil {
		err = fmt.Errorf("%w: contest %d", err, id)
	}
	return c, err
}

// entered are the entries of a contest, by their numbers.
func (k *Keeper) entered(ctx context.Context, id uint64) (list []arena.Entry, err error) {
	err = k.entries.Walk(ctx, collections.NewPrefixedPairRange[uint64, uint32](id),
		func(_ entryKey, e arena.Entry) (bool, error) {
			list = append(list, e)
			return false, nil
		})
	return list, err
}

// heard are the opinions of the panel of a contest, in its order.
func (k *Keeper) heard(ctx context.Context, c arena.Contest) (list []arena.Opinion, err error) {
	for _, who := range c.Panel {
		o, err := k.opinions.Get(ctx, collections.Join(c.ID, who))
		if errors.Is(err, collections.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// save stores a contest in its new state, in place of the old one.
func (k *Keeper) save(ctx context.Context, old, c arena.Contest) error {
	errs := []error{k.contests.Set(ctx, c.ID, c)}
	if old.Open() {
		errs = append(errs, k.until.Remove(ctx, collections.Join(old.Until, old.ID)))
	}
	if c.Open() {
		errs = append(errs, k.until.Set(ctx, collections.Join(c.Until, c.ID)), k.open.Set(ctx, c.ID))
	} else {
		errs = append(errs, k.open.Remove(ctx, c.ID))
	}
	return errors.Join(errs...)
}

// evaluator returns an evaluator; the zero value for an account that is none.
func (k *Keeper) evaluator(ctx context.Context, who string) (arena.Evaluator, error) {
	e, err := k.evaluators.Get(ctx, who)
	if errors.Is(err, collections.ErrNotFound) {
		return arena.Evaluator{}, nil
	}
	return e, err
}

// count adds to the number of evaluators.
func (k *Keeper) count(ctx context.Context, more int64) error {
	n, err := k.number.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	if n = uint64(int64(n) + more); n > arena.MaxEvaluators {
		return fmt.Errorf("%w: the network has %d", arena.ErrEvaluator, n-1)
	}
	return k.number.Set(ctx, n)
}

func height(ctx context.Context) int64 { return sdk.UnwrapSDKContext(ctx).BlockHeight() }
