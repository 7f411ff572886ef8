// Package registry stores the participants of the network and holds their stakes: the rules of protocol/registry on the
// chain. One module account holds the coins of all stakes; the record of a participant contains its amount.
package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/coinstakes"
	"github.com/starling-network/starling/chain/x/registry/earners"
	"github.com/starling-network/starling/chain/x/registry/fleets"
	"github.com/starling-network/starling/chain/x/registry/presences"
	"github.com/starling-network/starling/chain/x/registry/quotes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/registry/stakes"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/coinstake"
	"github.com/starling-network/starling/protocol/registry/earning"
	"github.com/starling-network/starling/protocol/registry/fleet"
	"github.com/starling-network/starling/protocol/reward"
)

// Name of the module, its store, its account and its codespace.
const Name = "registry"

// Errors of the module, in addition to those of protocol/registry.
var (
	ErrUnknown = errors.New("registry: not a participant")
	ErrFunds   = errors.New("registry: the account cannot pay the stake")

	ErrRests    = errors.New("registry: the machine was measured lately")
	ErrMeasured = errors.New("registry: the machine is being measured")
	ErrJailed   = errors.New("registry: the participant was slashed and is barred")
	ErrNoTier   = errors.New("registry: the participant commits to no tier")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: registry.ErrInvalid, Fix: "Correct the registration and send it again."},
	{Code: 3, Rule: registry.ErrStake, Fix: "Register with a larger stake."},
	{Code: 4, Rule: registry.ErrOverflow, Fix: "Add a smaller stake."},
	{Code: 5, Rule: ErrUnknown, Fix: "Register the account first."},
	{Code: 6, Rule: ErrFunds, Fix: "Fund the account or stake less."},
	{Code: 7, Rule: registry.ErrTier, Fix: "Commit to a lower tier, or to none, or declare what the machine has."},
	{Code: 8, Rule: registry.ErrBeat, Fix: "Send one heartbeat in a window; nothing is lost."},
	{Code: 9, Rule: registry.ErrMeasure, Fix: "Read the measurement and make the move that it waits for."},
	{Code: 10, Rule: registry.ErrParams, Fix: "Correct the parameters of the proposal."},
	{Code: 11, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 12, Rule: ErrMeasured, Fix: "Wait until the present measurement has ended."},
	{Code: 13, Rule: ErrNoTier, Fix: "Register with a tier first; an account without a tier needs no heartbeat."},
	{Code: 14, Rule: runpb.ErrDigest, Fix: "Send the 32 bytes of a SHA-256 digest."},
	{Code: 15, Rule: registry.ErrUnstake, Fix: "Ask for no more than the stake, and end a commitment to a tier " +
		"first."},
	{Code: 17, Rule: ErrRests, Fix: "Wait for the block that is named; each measurement in a row without a rate " +
		"doubles the wait."},
	{Code: 16, Rule: ErrJailed, Fix: "Challenge from an account that was not slashed, or end the bar first (starling " +
		"account stake unjail)."},
	{Code: 19, Rule: earning.ErrRefused, Fix: "Try again later, with a proof for a recent block (starling worker up " +
		"does), or register with a stake."},
	{Code: 20, Rule: registry.ErrPayee, Fix: "Name the address of an account, and sign with the key of the worker or " +
		"of the account that is paid now."},
	{Code: 21, Rule: fleet.ErrInvitation, Fix: "Use an invitation that its owner made lately (starling fleet add), with " +
		"a key of the machine that has no coins."},
	{Code: 22, Rule: fleet.ErrMachine, Fix: "Sign with the key of the owner: that of a machine signs its work alone."},
	{Code: 23, Rule: fleet.ErrNotOwner, Fix: "Name a machine or an invitation that starling fleet list shows."},
	{Code: 24, Rule: coinstake.ErrStake, Fix: "As a participant, stake a coin that you have; take no more back."},
	{Code: 25, Rule: coin.ErrCoin, Fix: "Name a coin that starling market coins shows."},
	{Code: 26, Rule: attestation.ErrRefused, Fix: "Correct what the named check says: make a new quote for the block, " +
		"the account and the transport key of the worker (starling worker attest), or fetch the maker's latest collateral."},
	{Code: 27, Rule: attestation.ErrRoots, Fix: "Name each root once, by its technology and the SHA-256 of its DER " +
		"bytes."},
	{Code: 28, Rule: quotes.ErrNoFlag, Fix: "Let the worker submit a quote: starling worker attest."},
	{Code: 18, Rule: registry.ErrJail, Fix: "Wait for the block that is named, have the machine measured (starling " +
		"worker up does so), and ask again."},
}}

// Bank moves coins.
type Bank interface {
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
	SendCoinsFromModuleToModule(ctx context.Context, from, to string, amount sdk.Coins) error
	BlockedAddr(address sdk.AccAddress) bool
	SpendableCoin(ctx context.Context, address sdk.AccAddress, denom string) sdk.Coin
}

// Pool is the community pool.
type Pool interface {
	FundCommunityPool(ctx context.Context, amount sdk.Coins, from sdk.AccAddress) error
}

// Beacon is the beacon of a block.
type Beacon interface {
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// Runs knows which accounts have a part in a run: they work in it, or may have to answer for their work there.
type Runs interface {
	Part(ctx context.Context, id string) (bool, error)
	Withdraw(ctx context.Context, id string) error
}

// Keeper reads and writes the participants, their uptime and their measurements.
type Keeper struct {
	Schema collections.Schema

	account   sdk.AccAddress
	authority string // of governance
	bank      Bank
	pool      Pool
	beacon    Beacon
	runs      Runs

	participants collections.Map[string, registry.Participant]
	params       collections.Item[registry.Params]
	uptimes      collections.Map[string, registry.Uptime] // of participants that commit to a tier
	measurements collections.Map[string, registry.Measurement]
	// participant whose measurement was advanced last, if measurements take turns
	measured collections.Item[string]
	resting  collections.Map[string, rest]                        // of measured participants
	pooled   collections.KeySet[collections.Pair[string, string]] // pool, account that named it
	leaving  collections.KeySet[collections.Pair[int64, string]]  // height, participant whose stake leaves

	tree     stakes.Tree // of verifiers
	absences collections.Map[string, absence]

	presences presences.Store

	Earners    earners.List
	Fleets     fleets.List
	CoinStakes coinstakes.Book
	Quotes     quotes.List
}

// Connect sets the module of runs, which itself needs the keeper.
func (k *Keeper) Connect(runs Runs) { k.runs = runs }

// NewKeeper returns a keeper over its own store. Connect completes it.
func NewKeeper(s store.KVStoreService, account sdk.AccAddress, authority string, bank Bank, pool Pool,
	beacon Beacon) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	id := collections.StringKey
	k := &Keeper{
		account: account, authority: authority, bank: bank, pool: pool, beacon: beacon,
		participants: collections.NewMap(b, collections.NewPrefix(0), "participants", id,
			adapter.Record[registry.Participant]()),
		params:  collections.NewItem(b, collections.NewPrefix(1), "params", adapter.Record[registry.Params]()),
		uptimes: collections.NewMap(b, collections.NewPrefix(2), "uptimes", id, adapter.Record[registry.Uptime]()),
		measurements: collections.NewMap(b, collections.NewPrefix(3), "measurements", id,
			adapter.Record[registry.Measurement]()),
		measured: collections.NewItem(b, collections.NewPrefix(21), "measured", collections.StringValue),
		resting:  collections.NewMap(b, collections.NewPrefix(22), "resting", id, adapter.Record[rest]()),
		pooled:   collections.NewKeySet(b, collections.NewPrefix(5), "pooled", collections.PairKeyCodec(id, id)),
		leaving: collections.NewKeySet(b, collections.NewPrefix(4), "leaving",
			collections.PairKeyCodec(collections.Int64Key, id)),
		tree:      stakes.New(b),
		absences:  collections.NewMap(b, collections.NewPrefix(20), "absences", id, adapter.Record[absence]()),
		presences: presences.New(b),
	}
	k.Earners, k.Fleets = earners.New(b, surroundings{k}), fleets.New(b, fleeting{surroundings{k}})
	k.Quotes = quotes.New(b, fleeting{surroundings{k}})
	k.CoinStakes = coinstakes.New(b, surroundings{k}, Paying{k},
		coinstakes.Account{Module: Name, Address: account, Bank: bank, Pool: pool})
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Get returns a participant.
func (k *Keeper) Get(ctx context.Context, id string) (registry.Participant, error) {
	p, err := k.participants.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return p, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return p, err
}

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (registry.Params, error) {
	p, err := k.params.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return registry.DefaultParams(), nil
	}
	return p, err
}

// MaxPool is how many accounts a pool offers for: the first ones by address that named it.
const MaxPool = 1024

// Members lists the workers that name an account as their pool and, as far as it was measured, are close to it.
func (k *Keeper) Members(ctx context.Context, pool string) (ids []string, err error) {
	head, err := k.Get(ctx, pool)
	if err != nil {
		return nil, err
	}
	var named []string
	err = k.pooled.Walk(ctx, collections.NewPrefixedPairRange[string, string](pool),
		func(key collections.Pair[string, string]) (bool, error) {
			named = append(named, key.K2())
			return len(named) == MaxPool, nil
		})
	if err != nil {
		return nil, err
	}
	for _, id := range named {
		p, err := k.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if p.Cluster == "" || head.Cluster == "" || p.Cluster == head.Cluster {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Take moves an amount of a participant's stake, in uzen, to an account, or to reward.CommunityPool.
func (k *Keeper) Take(ctx context.Context, id, to string, amount uint64) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	if amount > p.Stake {
		return fmt.Errorf("registry: %d uzen from the stake of %s, which is %d", amount, id, p.Stake)
	}
	if err := k.put(ctx, p.Withdraw(amount)); err != nil {
		return err
	}
	if to == reward.CommunityPool {
		return k.pool.FundCommunityPool(ctx, adapter.Coins(amount), k.account)
	}
	account, err := Paying{k}.Payee(ctx, to)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, adapter.Coins(amount))
}

// Audited adds the outcome of an audit to the history of a worker.
func (k *Keeper) Audited(ctx context.Context, id string, passed bool) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	if !p.Earning {
		return k.participants.Set(ctx, id, p.Audited(passed))
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	p = earning.Audited(p, passed, params, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return putEarner(ctx, k, p)
}

// Uptimes returns the uptimes, in the current epoch, of all participants that commit to a tier.
func (k *Keeper) Uptimes(ctx context.Context) (map[string]registry.Uptime, error) {
	all := map[string]registry.Uptime{}
	err := k.uptimes.Walk(ctx, nil, func(id string, u registry.Uptime) (bool, error) {
		all[id] = u
		return false, nil
	})
	return all, err
}

// Turn ends an epoch at its last height. It resets the uptimes, and stores the latencies and clusters measured in the
// epoch until the next Turn. A participant that was not measured keeps its old values.
func (k *Keeper) Turn(ctx context.Context, height int64, latency map[string]uint32, cluster map[string]string) error {
	it, err := k.uptimes.Iterate(ctx, nil)
	if err != nil {
		return err
	}
	committed, err := it.Keys()
	if err != nil {
		return err
	}
	for _, id := range committed {
		if err := k.uptimes.Set(ctx, id, registry.Uptime{From: height + 1}); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(cluster)) {
		p, err := k.Get(ctx, id)
		if err != nil {
			return err
		}
		if ms := latency[id]; ms > 0 {
			p.Latency = ms
		}
		p.Cluster = cluster[id]
		if err := k.participants.Set(ctx, id, p); err != nil {
			return err
		}
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	return k.presences.Forget(ctx, params, height)
}

// Missed counts a missed duty of a participant against the uptime that it committed to.
func (k *Keeper) Missed(ctx context.Context, id string) error {
	u, err := k.uptimes.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	}
	return errors.Join(err, k.uptimes.Set(ctx, id, u.Miss()))
}

// Jail bars a slashed participant from being matched, and emits an event with the job and the slashed uzen.
func (k *Keeper) Jail(ctx context.Context, id, job string, slashed uint64) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := k.put(ctx, p.Jail(sdk.UnwrapSDKContext(ctx).BlockHeight())); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&registrypb.EventSlashed{Participant: id,
		Amount: slashed, Job: job})
}
