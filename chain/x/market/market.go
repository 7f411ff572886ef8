// Package market stores offers and orders, holds the budgets of all jobs, and matches orders with offers in every
// block: the rules of protocol/market on the chain. x/training decides what a job pays for.
package market

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/coins"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/coinstake"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Name of the module, its store, its account and its codespace.
const Name = "market"

// Errors of the module, in addition to those of protocol/market.
var (
	ErrRole     = errors.New("market: the sender may not offer work in this role")
	ErrTaken    = errors.New("market: a job of this name exists")
	ErrJob      = errors.New("market: not a name for a job")
	ErrNoOrder  = errors.New("market: no such order")
	ErrNotYours = errors.New("market: the order belongs to another account")
	ErrFunds    = errors.New("market: the account cannot pay the budget")
	ErrDeadline = errors.New("market: the deadline of the order is past")
	ErrRate     = errors.New("market: the rate of the machine was never measured")
	ErrState    = errors.New("market: the job is in another state")
	ErrSlots    = errors.New("market: too many slots")
)

// Status of an order. Job.Status is Open, Running or Ended; Job.State is more precise.
type Status string

// States of an order.
const (
	Open    Status = "open"
	Running Status = "running"
	Paused  Status = "paused" // running; no round begins until the consumer resumes it or raises its budget
	Ending  Status = "ending" // running; no further round begins
	Ended   Status = "ended"
)

// Reasons why an order ended without a run, if its own text does not say it.
const (
	Cancelled = "cancelled"
	Expired   = "expired"
	Refused   = "refused"
)

// Job is an order with its current state.
type Job struct {
	Order  market.Order `cbor:"1,keyasint"`
	Status Status       `cbor:"2,keyasint"`
	Why    string       `cbor:"3,keyasint"` // open: a market.Reason; ended without a run: one of the above
	Paused int64        `cbor:"4,keyasint"` // running: height since which the consumer lets no round begin; 0: not paused
	Ending bool         `cbor:"5,keyasint"` // running: the consumer wants no further round

	// Short is the height since which the budget of a running job covers no round, no round is open, and the job waits
	// for a higher budget; 0: it does not wait.
	Short int64 `cbor:"6,keyasint,omitzero"`

	Fee uint64 `cbor:"7,keyasint,omitzero"` // grains charged if the order ends without a run
}

// Bank moves coins.
type Bank interface {
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
}

// Pool is the community pool.
type Pool interface {
	FundCommunityPool(ctx context.Context, amount sdk.Coins, from sdk.AccAddress) error
}

// Registry says which participants may be matched, and stores their data.
type Registry interface {
	Get(ctx context.Context, id string) (registry.Participant, error)
	Lead(ctx context.Context, p registry.Participant) (registry.Participant, error)
	Params(ctx context.Context) (registry.Params, error)
	Members(ctx context.Context, pool string) ([]string, error)
	Pay(ctx context.Context, module, id string, c coin.Coin, amount uint64) error
	Backing(ctx context.Context, p registry.Participant) (uint64, error)
	Verifiers(ctx context.Context, seed canon.Digest, take func(p registry.Participant) (enough bool, err error)) error
}

// CoinStakes are the stakes of participants in coins other than the network's own.
type CoinStakes interface {
	Get(ctx context.Context, id string, c coin.Coin) (coinstake.Stake, error)
}

// Beacon is the beacon of a block.
type Beacon interface {
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// Runs starts matched runs, and adds members that are matched later. It stores the opening of the work of a job from
// its order on.
type Runs interface {
	Start(ctx context.Context, t terms.Terms, members []crew.Member) error
	Turn(ctx context.Context, last collections.Item[string], n int) ([]string, error)
	State(ctx context.Context, job string) (run.State, error)
	Join(ctx context.Context, job string, members []crew.Member) error
	Feed(ctx context.Context, job string, round uint32, root canon.Digest, cid string) error
	Admit(ctx context.Context, consumer string, t terms.Terms, opening []byte, numerics uint32) error
	Forget(ctx context.Context, spec canon.Digest) error
}

// Keeper reads and writes offers, orders and escrows.
type Keeper struct {
	Schema collections.Schema

	account   sdk.AccAddress
	authority string // of governance

	bank     Bank
	pool     Pool
	registry Registry
	stakes   CoinStakes
	beacon   Beacon
	runs     Runs

	Coins coins.List // in which orders may be placed

	offers  collections.Map[offerKey, market.Offer]
	jobs    collections.Map[string, Job]
	open    openOrders
	escrows collections.Map[string, market.Escrow]
	// members of running jobs, and what a conviction must take from each there, in uzen; 0 for an order in another coin
	busy   collections.Map[busyKey, uint64]
	leased collections.Map[leaseKey, lease]
	filled collections.Item[string] // the last run whose free seats were filled
	params collections.Item[market.Params]
}

type (
	offerKey = collections.Pair[uint32, string]           // role, account
	busyKey  = collections.Triple[uint32, string, string] // role, account, job
	leaseKey = collections.Pair[string, string]           // account, job in another coin
	rankKey  = collections.Pair[uint64, string]           // MaxUint64 minus the rank, job
)

// lease is what a conviction must take from a member of a running job, in a coin other than the network's own.
type lease struct {
	Denom string `cbor:"1,keyasint"`
	Value uint64 `cbor:"2,keyasint"` // grains
}

// NewKeeper returns a keeper over its own store. Connect completes it.
func NewKeeper(s store.KVStoreService, account sdk.AccAddress, authority string, bank Bank, pool Pool,
	registry Registry, stakes CoinStakes, beacon Beacon) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	role, id := collections.Uint32Key, collections.StringKey
	k := &Keeper{
		account: account, authority: authority, bank: bank, pool: pool, registry: registry, stakes: stakes,
		beacon: beacon, Coins: coins.New(b),
		offers: collections.NewMap(b, collections.NewPrefix(0), "offers", collections.PairKeyCodec(role, id),
			adapter.Record[market.Offer]()),
		jobs: collections.NewMap(b, collections.NewPrefix(1), "jobs", id, adapter.Record[Job]()),
		open: openOrders{
			jobs: collections.NewKeySet(b, collections.NewPrefix(2), "open", id),
			ranked: collections.NewKeySet(b, collections.NewPrefix(8), "ranked",
				collections.PairKeyCodec(collections.Uint64Key, id)),
			tried: collections.NewItem(b, collections.NewPrefix(9), "tried", collections.StringValue),
		},
		escrows: collections.NewMap(b, collections.NewPrefix(3), "escrows", id, adapter.Record[market.Escrow]()),
		busy: collections.NewMap(b, collections.NewPrefix(7), "busy", collections.TripleKeyCodec(role, id, id),
			collections.Uint64Value),
		leased: collections.NewMap(b, collections.NewPrefix(13), "leased", collections.PairKeyCodec(id, id),
			adapter.Record[lease]()),
		filled: collections.NewItem(b, collections.NewPrefix(10), "filled", collections.StringValue),
		params: collections.NewItem(b, collections.NewPrefix(5), "params", adapter.Record[market.Params]()),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Connect sets the module that starts runs, which itself needs the keeper.
func (k *Keeper) Connect(runs Runs) { k.runs = runs }

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: market.ErrOrder, Fix: "Correct the order and send it again."},
	{Code: 3, Rule: cost.ErrOverflow, Fix: "Ask for less work or a lower price."},
	{Code: 4, Rule: ErrRole, Fix: "Register the account in this role, with its stake, first."},
	{Code: 5, Rule: ErrTaken, Fix: "Choose another name for the job, or add a dot and the address of your account to " +
		"it: such a name is yours alone."},
	{Code: 6, Rule: ErrJob, Fix: "Use 1 to 96 letters, digits, dots, dashes or underscores."},
	{Code: 7, Rule: ErrNoOrder, Fix: "Check the name of the job."},
	{Code: 8, Rule: ErrNotYours, Fix: "Send the message from the account that placed the order."},
	{Code: 9, Rule: ErrState, Fix: "See what the order is now: starling job get JOB --network URL."},
	{Code: 10, Rule: ErrFunds, Fix: "Fund the account or order with a smaller budget."},
	{Code: 11, Rule: ErrDeadline, Fix: "Give a height after the current one and within 2592000 blocks, or 0 for 600000 " +
		"blocks."},
	{Code: 12, Rule: ErrDigest, Fix: "Send the 32 bytes of a SHA-256 digest."},
	{Code: 13, Rule: ErrRate, Fix: "Have the machine measured, or give a price for 10^15 operations."},
	{Code: 14, Rule: market.ErrParams, Fix: "Correct the parameters of the proposal."},
	{Code: 16, Rule: ErrSlots, Fix: "Offer fewer slots."},
	{Code: 17, Rule: dispute.ErrWork, Fix: "Send the specification, the program and the manifest that the terms name; " +
		"make what is named as too large smaller."},
	{Code: 18, Rule: market.ErrNumerics, Fix: "Prepare the job again: it takes the version that is in force. If this " +
		"program does not know the version, install a newer one."},
	{Code: 19, Rule: coin.ErrCoin, Fix: "Use a coin that starling market coins shows, and one coin for all of an order."},
	{Code: 15, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
}}
