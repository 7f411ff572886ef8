// Package training stores runs and their results, executes the messages of their members, and pays for the work: the
// rules of protocol/run, protocol/dispute and protocol/reward on the chain. x/market decides which members a run has.
// The members compute the work; only in a dispute does the chain recompute a part, by the referee.
package training

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/training/ledger"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/runstore"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Name of the module, its store and its codespace.
const Name = "training"

// Errors of the module, in addition to those of the rules.
var (
	ErrNoRun     = errors.New("training: no such run")
	ErrSignature = errors.New("training: the signature is not the sender's over this checkpoint")
)

// ErrorTable of the module.
var ErrorTable = &adapter.ErrorTable{Space: Name, List: []adapter.ErrorCode{
	{Code: 2, Rule: ErrNoRun, Fix: "Check the name of the job; an order has no run before it is matched."},
	{Code: 3, Rule: refusal.ErrTerms, Fix: "Correct the terms of the order."},
	{Code: 4, Rule: refusal.ErrHalted, Fix: "Nothing is left to do; read the receipts for how it ended."},
	{Code: 5, Rule: refusal.ErrNotMember, Fix: "Only members of the run take part in it."},
	{Code: 6, Rule: refusal.ErrInactive, Fix: "Take no further part in this run; the state says why."},
	{Code: 7, Rule: refusal.ErrStale, Fix: "Read the state of the run and do what it asks now."},
	{Code: 8, Rule: refusal.ErrNoUnit, Fix: "Read the units of the round."},
	{Code: 9, Rule: refusal.ErrWrongPhase, Fix: "Read the state of the run and wait for the phase."},
	{Code: 10, Rule: refusal.ErrNotYours, Fix: "Leave this duty to the member who has it."},
	{Code: 11, Rule: refusal.ErrDuplicate, Fix: "Nothing is left to do for this duty."},
	{Code: 12, Rule: refusal.ErrBadCommitment, Fix: "Commit to as many state roots as the terms ask for."},
	{Code: 13, Rule: refusal.ErrBadVote, Fix: "Attest the checkpoint after the current round."},
	{Code: 14, Rule: ErrSignature, Fix: "Sign the digest of the attestation with the key of the sending account."},
	{Code: 15, Rule: runpb.ErrDigest, Fix: "Send the 32 bytes of a SHA-256 digest."},
	{Code: 17, Rule: ErrNoDispute, Fix: "Read the disputes of the job; this one has its verdict, or none was opened."},
	{Code: 18, Rule: dispute.ErrConfig, Fix: "Challenge a state root of the commitment, or its update."},
	{Code: 19, Rule: dispute.ErrOver, Fix: "Nothing is left to do."},
	{Code: 20, Rule: dispute.ErrNotYours, Fix: "Wait for the other party, or for its deadline."},
	{Code: 21, Rule: dispute.ErrLate, Fix: "The dispute is lost by silence; move within the deadline next time."},
	{Code: 22, Rule: dispute.ErrMove, Fix: "Read the dispute and make the move of its stage."},
	{Code: 23, Rule: dispute.ErrEncoding, Fix: "Send the canonical bytes of exactly one move."},
	{Code: 24, Rule: refusal.ErrBadOpening, Fix: "Open the seal of the committed state, where the unit's question says."},
	{Code: 25, Rule: audit.ErrOpening, Fix: "Send the canonical bytes of one opening."},
	{Code: 26, Rule: refusal.ErrBadPlant, Fix: "Show the nonce and the state roots that are hidden; plant fewer faults."},
	{Code: 27, Rule: refusal.ErrBadSlice, Fix: "Read the slices of the round; show what the seal binds to."},
	{Code: 28, Rule: refusal.ErrLast, Fix: "Wait until another has joined, or stop the process: the run waits a while."},
	{Code: 29, Rule: adapter.ErrAuthority, Fix: "Make a proposal of governance."},
	{Code: 30, Rule: penalty.ErrParams, Fix: "Correct the parameters of the proposal."},
	{Code: 31, Rule: refusal.ErrBadData, Fix: "Name the root over the tensors of the data, and the CID of their bytes."},
}}

// Market stores the order of a run, and the budget that pays for it.
type Market interface {
	ledger.Market
	Hold(ctx context.Context, s run.State, env transition.Env) (transition.Env, error)
	Free(ctx context.Context, id string, m crew.Member) error
	End(ctx context.Context, s run.State) error
	Verifiers(ctx context.Context, job string, seed canon.Digest, failed func(error)) iter.Seq[crew.Member]
}

// Registry holds the stakes of the members.
type Registry interface {
	ledger.Registry
	Audited(ctx context.Context, id string, passed bool) error
	Bond(ctx context.Context, id string) error
	Absent(ctx context.Context, id string) error
	Answered(ctx context.Context, id string, price uint64, own bool) error
	Missed(ctx context.Context, id string) error
}

// Rewards is notified of the work that an epoch rewards in addition to the payments of jobs.
type Rewards interface {
	ledger.Rewards
	Committed(ctx context.Context, who string, bytes uint64) error
	Ended(ctx context.Context, job string) error
}

// Beacon is the beacon of a block.
type Beacon interface {
	At(ctx context.Context, height int64) (canon.Digest, error)
}

// Accounts knows the public keys of accounts.
type Accounts interface {
	GetAccount(ctx context.Context, address sdk.AccAddress) sdk.AccountI
}

// Keeper reads and writes runs, lineages, receipts, seals and disputes.
type Keeper struct {
	Schema collections.Schema

	authority string
	market    Market
	registry  Registry
	rewards   Rewards
	beacon    Beacon
	accounts  Accounts
	rooting   audit.RootFuncs
	ledger    *ledger.Ledger
	*works.Works

	runs     *runstore.Store
	active   collections.KeySet[string] // neither done nor halted
	lineage  collections.Map[collections.Pair[string, uint32], progress.Entry]
	seals    collections.Map[sealKey, []byte]
	disputes collections.Map[disputeKey, dispute.Dispute]
	pending  collections.KeySet[disputeKey] // the disputes that have no verdict
	params   collections.Item[penalty.Params]
	// height of the last tick of a run, while runs take turns
	ticks  collections.Map[string, int64]
	ticked collections.Item[string]                             // the run that was ticked last
	parts  collections.KeySet[collections.Pair[string, string]] // account, run under way that has it as a member
}

// sealKey is job, round, unit and attempt (32 bits each), verifier.
type sealKey = collections.Quad[string, uint32, uint64, string]

// NewKeeper returns a keeper over a store of its own.
func NewKeeper(s store.KVStoreService, authority string, market Market, registry Registry, rewards Rewards,
	stakes ledger.CoinStakes, beacon Beacon, accounts Accounts, referee works.Referee,
	rooting audit.RootFuncs) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	job, u32, u64 := collections.StringKey, collections.Uint32Key, collections.Uint64Key
	k := &Keeper{
		authority: authority, market: market, registry: registry, rewards: rewards, beacon: beacon, accounts: accounts,
		rooting: rooting, ledger: ledger.New(b, market, registry, rewards, stakes), Works: works.New(b, referee),
		runs:   runstore.New(b),
		active: collections.NewKeySet(b, collections.NewPrefix(1), "active", job),
		lineage: collections.NewMap(b, collections.NewPrefix(2), "lineage", collections.PairKeyCodec(job, u32),
			adapter.Record[progress.Entry]()),
		seals: collections.NewMap(b, collections.NewPrefix(5), "seals", collections.QuadKeyCodec(job, u32, u64, job),
			collections.BytesValue),
		disputes: collections.NewMap(b, collections.NewPrefix(6), "disputes", collections.QuadKeyCodec(job, u32, u32, u32),
			adapter.Record[dispute.Dispute]()),
		pending: collections.NewKeySet(b, collections.NewPrefix(7), "pending", collections.QuadKeyCodec(job, u32, u32, u32)),
		ticks:   collections.NewMap(b, collections.NewPrefix(24), "ticks", collections.StringKey, collections.Int64Value),
		ticked:  collections.NewItem(b, collections.NewPrefix(21), "ticked", collections.StringValue),
		parts:   collections.NewKeySet(b, collections.NewPrefix(22), "parts", collections.PairKeyCodec(job, job)),
		params:  collections.NewItem(b, collections.NewPrefix(12), "params", adapter.Record[penalty.Params]()),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// State is the current state of a run.
func (k *Keeper) State(ctx context.Context, job string) (run.State, error) {
	s, err := k.runs.Get(ctx, job)
	if errors.Is(err, collections.ErrNotFound) {
		return s, fmt.Errorf("%w: %s", ErrNoRun, job)
	}
	return s, err
}

// Start begins the run of a matched order, with the history of its members.
func (k *Keeper) Start(ctx context.Context, t terms.Terms, members []crew.Member) error {
	members, err := k.history(ctx, members)
	if err != nil {
		return err
	}
	s, err := run.New(t, members, sdk.UnwrapSDKContext(ctx).BlockHeight())
	if err != nil {
		return err
	}
	return errors.Join(k.runs.Set(ctx, t.Job, s), k.active.Set(ctx, t.Job), k.ledger.Open(ctx, t.Job),
		k.seat(ctx, t.Job, members))
}

// history returns members with the audits that they passed in earlier runs, and with their current stake, or that
// they earn it.
func (k *Keeper) history(ctx context.Context, members []crew.Member) ([]crew.Member, error) {
	members = slices.Clone(members)
	for i := range members {
		p, err := k.registry.Get(ctx, members[i].ID)
		if err != nil {
			return nil, err
		}
		members[i].Passed, members[i].Stake, members[i].Earning = p.Passed, p.Firm(), p.Earning
	}
	return members, nil
}

// env returns what the current block provides to a rule about a job. failed returns the errors of drawing verifiers and
// of reading the escrow.
func (k *Keeper) env(ctx context.Context, job string) (env transition.Env, failed func() error, err error) {
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	beacon, err := k.beacon.At(ctx, height)
	var broke error
	env = transition.Env{Height: height, Beacon: beacon, Draw: func(id work.UnitID) iter.Seq[crew.Member] {
		seed := audit.Seed(beacon, "verifier", job, id.Round, id.Unit, id.Attempt)
		return k.market.Verifiers(ctx, job, seed, func(err error) { broke = errors.Join(broke, err) })
	}, Covers: func(p progress.Progress) func(unit uint32, price uint64, spared bool) bool {
		escrow, err := k.market.Escrow(ctx, job)
		broke = errors.Join(broke, err)
		return cost.Covers(run.State{Progress: p}, escrow.Remaining())
	}, Attested: ledger.Attested(ctx, k.registry, &broke)}
	return env, func() error { return broke }, err
}
