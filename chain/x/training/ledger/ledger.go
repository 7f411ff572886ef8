// Package ledger stores the receipts of runs and executes the settlements of protocol/reward: it takes coins from
// escrows and stakes, pays, and jails slashed accounts. It does not decide which payments are due.
package ledger

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/coinstake"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/event"
)

// Market stores the order of a run, and the budget that pays for it.
type Market interface {
	Job(ctx context.Context, id string) (market.Job, error)
	Escrow(ctx context.Context, id string) (rules.Escrow, error)
	Params(ctx context.Context) (rules.Params, error)
	Spend(ctx context.Context, job string, after rules.Escrow, transfers []reward.Transfer) error
}

// Registry holds the stakes of the members.
type Registry interface {
	Get(ctx context.Context, id string) (registry.Participant, error)
	Params(ctx context.Context) (registry.Params, error)
	Take(ctx context.Context, id, to string, amount uint64) error
	Jail(ctx context.Context, id, job string, slashed uint64) error
}

// CoinStakes holds the stakes of the members in coins other than the network's own.
type CoinStakes interface {
	Get(ctx context.Context, id string, c coin.Coin) (coinstake.Stake, error)
	Take(ctx context.Context, id string, c coin.Coin, to string, amount uint64) error
}

// Rewards is notified of paid work.
type Rewards interface {
	Paid(ctx context.Context, job, who string, flops, fee uint64) error
}

// Ledger reads and writes the receipts.
type Ledger struct {
	market   Market
	registry Registry
	rewards  Rewards
	stakes   CoinStakes
	receipts collections.Map[collections.Pair[string, uint64], reward.Receipt]
	issued   collections.Map[string, uint64] // number of receipts of a job
}

// New returns a ledger inside a module's store.
func New(b *collections.SchemaBuilder, market Market, registry Registry, rewards Rewards,
	stakes CoinStakes) *Ledger {
	return &Ledger{
		market: market, registry: registry, rewards: rewards, stakes: stakes,
		receipts: collections.NewMap(b, collections.NewPrefix(3), "receipts",
			collections.PairKeyCodec(collections.StringKey, collections.Uint64Key), adapter.Record[reward.Receipt]()),
		issued: collections.NewMap(b, collections.NewPrefix(4), "issued", collections.StringKey, collections.Uint64Value),
	}
}

// Open starts the receipts of a job.
func (l *Ledger) Open(ctx context.Context, job string) error { return l.issued.Set(ctx, job, 0) }

// Jobs lists the jobs that were opened, until each returns true.
func (l *Ledger) Jobs(ctx context.Context, within *collections.Range[string],
	each func(job string) (enough bool, err error)) error {
	return l.issued.Walk(ctx, within, func(job string, _ uint64) (bool, error) { return each(job) })
}

// Receipts lists the receipts of a job, starting at a number, until each returns true.
func (l *Ledger) Receipts(ctx context.Context, job string, from uint64, each func(reward.Receipt) (enough bool)) error {
	within := collections.NewPrefixedPairRange[string, uint64](job).StartInclusive(from)
	return l.receipts.Walk(ctx, within, func(_ collections.Pair[string, uint64], r reward.Receipt) (bool, error) {
		return each(r), nil
	})
}

// Settle executes the settlement of the events of a run, with the penalty parameters in force. It returns the coin of
// the order if one of them is settled.
func (l *Ledger) Settle(ctx context.Context, s run.State, events []event.Event,
	slashes func(context.Context) (penalty.Params, error)) (coin.Coin, error) {
	if !slices.ContainsFunc(events, reward.Settles) {
		return coin.Coin{}, nil
	}
	job := s.Terms.Job
	book, err := l.book(ctx, job, slashes)
	if err != nil {
		return book.Coin, err
	}
	var unknown error
	book.Stake = func(id string) uint64 {
		p, err := l.registry.Get(ctx, id)
		unknown = errors.Join(unknown, err)
		return p.Stake
	}
	book.CoinStake = func(id string) uint64 {
		s, err := l.stakes.Get(ctx, id, book.Coin)
		unknown = errors.Join(unknown, err)
		return s.Amount
	}
	book.Convicted = func(id string) int64 {
		p, err := l.registry.Get(ctx, id)
		unknown = errors.Join(unknown, err)
		return p.Convicted
	}
	book.Earning = func(id string) bool {
		p, err := l.registry.Get(ctx, id)
		unknown = errors.Join(unknown, err)
		return p.Earning
	}
	settled := reward.Settle(s, events, book)
	if unknown != nil {
		return book.Coin, unknown
	}
	return book.Coin, l.execute(ctx, job, book.Coin, settled)
}

// execute makes the transfers of a settlement and stores its receipts.
func (l *Ledger) execute(ctx context.Context, job string, c coin.Coin, settled reward.Settlement) error {
	var spent []reward.Transfer
	for _, t := range settled.Transfers {
		id, staked := strings.CutPrefix(t.From, reward.Stake(""))
		foreign, stakedInCoin := strings.CutPrefix(t.From, reward.CoinStake(""))
		var err error
		switch {
		case staked:
			err = l.registry.Take(ctx, id, t.To, t.Amount)
		case stakedInCoin:
			err = l.stakes.Take(ctx, foreign, c, t.To, t.Amount)
		default:
			spent = append(spent, t)
		}
		if err != nil {
			return err
		}
	}
	if err := l.market.Spend(ctx, job, settled.Escrow, spent); err != nil {
		return err
	}
	for _, r := range settled.Receipts {
		if err := l.issue(ctx, r); err != nil {
			return err
		}
	}
	return l.issued.Set(ctx, job, settled.Seq)
}

func (l *Ledger) book(ctx context.Context, job string,
	slashes func(context.Context) (penalty.Params, error)) (reward.SettlementInput, error) {
	order, err := l.market.Job(ctx, job)
	if err != nil {
		return reward.SettlementInput{}, err
	}
	escrow, err := l.market.Escrow(ctx, job)
	if err != nil {
		return reward.SettlementInput{}, err
	}
	params, err := l.market.Params(ctx)
	if err != nil {
		return reward.SettlementInput{}, err
	}
	slash, err := slashes(ctx)
	if err != nil {
		return reward.SettlementInput{}, err
	}
	stakes, err := l.registry.Params(ctx)
	if err != nil {
		return reward.SettlementInput{}, err
	}
	seq, err := l.issued.Get(ctx, job)
	return reward.SettlementInput{
		Consumer: order.Order.Consumer, Coin: order.Order.Coin, Escrow: escrow, Penalty: slash, FeePPM: params.FeePPM,
		Waiting: order.Fee,
		Least:   stakes.MinStake,
		Height:  sdk.UnwrapSDKContext(ctx).BlockHeight(), Seq: seq,
	}, err
}

// issue stores a receipt. It jails the account of a slash, so that the market does not match it again, and reports paid
// work to the rewards of the epoch.
func (l *Ledger) issue(ctx context.Context, r reward.Receipt) error {
	if r.Jails() {
		if err := l.registry.Jail(ctx, r.Who, r.Job, r.Amount); err != nil {
			return err
		}
	}
	if r.Kind == reward.Work && r.Amount > 0 {
		fee := r.Fee
		if !r.Coin.Own() { // no rule says what it is worth in the coin that an epoch shares
			fee = 0
		}
		if err := l.rewards.Paid(ctx, r.Job, r.Who, r.Flops, fee); err != nil {
			return err
		}
	}
	if err := l.receipts.Set(ctx, collections.Join(r.Job, r.Seq), r); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&trainingpb.EventReceipt{
		Job: r.Job, Seq: r.Seq, Who: r.Who, Kind: string(r.Kind), Amount: r.Amount, Reason: r.Reason,
		Denom: r.Coin.Denom,
	})
}
