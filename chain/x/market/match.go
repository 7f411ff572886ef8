package market

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/gogoproto/proto"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/refusal"
)

// EndBlock tries the open orders whose turn it is, in the order of market.Queue, and closes expired orders. Then it
// fills the free seats of runs.
func (k *Keeper) EndBlock(ctx context.Context) error {
	now := sdk.UnwrapSDKContext(ctx)
	beacon, err := k.beacon.At(ctx, now.BlockHeight())
	if err != nil || beacon.IsZero() {
		return err
	}
	jobs, err := k.open.turn(ctx)
	if err != nil {
		return err
	}
	if jobs, err = k.queue(ctx, jobs, beacon); err != nil {
		return err
	}
	book := &lazyBook{keeper: k, beacon: beacon}
	for _, id := range jobs {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return k.try(ctx, id, now.BlockHeight(), book) })
		if err != nil {
			now.Logger().Error("market: the order stays as it was", "job", id, "error", err)
		}
	}
	return k.fill(ctx, book)
}

// Limits of the work in one block, over all orders and runs.
const (
	maxRanked = 16 // open orders tried because their budgets are the largest
	maxTried  = 16 // open orders tried in turn
	maxFilled = 32 // runs whose free seats are filled
)

// openOrders are the orders that wait for a match.
type openOrders struct {
	jobs   collections.KeySet[string]
	ranked collections.KeySet[rankKey] // the largest budget first
	tried  collections.Item[string]    // the order that was tried last in turn
}

// turn lists the open orders that this block tries: those with the largest budgets, and those whose turn it is.
func (o openOrders) turn(ctx context.Context) ([]string, error) {
	jobs, err := adapter.Turn(ctx, o.jobs, o.tried, maxTried)
	if err != nil {
		return nil, err
	}
	n := 0
	return jobs, o.ranked.Walk(ctx, nil, func(key rankKey) (bool, error) {
		if !slices.Contains(jobs, key.K2()) {
			jobs = append(jobs, key.K2())
		}
		n++
		return n == maxRanked, nil
	})
}

// rank is the key of an open order in ranked.
func rank(o market.Order) rankKey { return collections.Join(math.MaxUint64-o.Rank(), o.ID) }

// enter adds an open order. leave removes it.
func (o openOrders) enter(ctx context.Context, order market.Order) error {
	return errors.Join(o.jobs.Set(ctx, order.ID), o.ranked.Set(ctx, rank(order)))
}

func (o openOrders) leave(ctx context.Context, order market.Order) error {
	return errors.Join(o.jobs.Remove(ctx, order.ID), o.ranked.Remove(ctx, rank(order)))
}

// queue sorts jobs in the order in which they are served.
func (k *Keeper) queue(ctx context.Context, jobs []string, beacon canon.Digest) ([]string, error) {
	if len(jobs) < 2 {
		return jobs, nil
	}
	var orders []market.Order
	for _, id := range jobs {
		o, err := k.Ordered(ctx, id)
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	jobs = nil
	for _, o := range market.Queue(orders, beacon) {
		jobs = append(jobs, o.ID)
	}
	return jobs, nil
}

// lazyBook is the book of a block, made at the first use.
type lazyBook struct {
	keeper *Keeper
	beacon canon.Digest
	book   *market.OrderBook
}

func (l *lazyBook) open(ctx context.Context) (*market.OrderBook, error) {
	if l.book != nil {
		return l.book, nil
	}
	lots, stale, err := l.keeper.lots(ctx)
	if err != nil {
		return nil, err
	}
	l.book = market.NewBook(lots, l.beacon)
	return l.book, l.prune(ctx, stale)
}

func (k *Keeper) try(ctx context.Context, id string, height int64, book *lazyBook) error {
	job, err := k.Job(ctx, id)
	switch {
	case err != nil:
		return err
	case job.Order.Expired(height):
		return k.refund(ctx, job, Expired, job.Why)
	}
	return k.match(ctx, job, book)
}

// match starts the run of an open order, or records why the order waits. An order that the rules of a run refuse ends.
func (k *Keeper) match(ctx context.Context, job Job, book *lazyBook) error {
	b, err := book.open(ctx)
	if err != nil {
		return err
	}
	lease, why := b.Match(job.Order)
	if why != market.Matched {
		if job.Why == string(why) {
			return nil
		}
		job.Why = string(why)
		return k.jobs.Set(ctx, job.Order.ID, job)
	}
	err = k.runs.Start(ctx, job.Order.Terms, lease.Members)
	if errors.Is(err, refusal.ErrTerms) {
		return k.refund(ctx, job, Refused, err.Error())
	}
	if err != nil {
		return err
	}
	if err := k.engage(ctx, job.Order, lease.Members); err != nil {
		return err
	}
	event := &marketpb.EventMatched{Job: job.Order.ID}
	for _, m := range lease.Members {
		event.Members = append(event.Members, m.ID)
	}
	job.Status, job.Why = Running, ""
	if err := errors.Join(k.jobs.Set(ctx, job.Order.ID, job), k.open.leave(ctx, job.Order), emit(ctx, event)); err != nil {
		return err
	}
	b.Take(job.Order, lease.Members)
	return nil
}

// engage takes the slots of the members of a run.
func (k *Keeper) engage(ctx context.Context, o market.Order, members []crew.Member) error {
	for _, m := range members {
		value, at := o.Value(m.Class(), m.Price), collections.Join3(uint32(m.Class()), m.ID, o.ID)
		if o.Coin.Own() {
			if err := k.busy.Set(ctx, at, value); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(k.busy.Set(ctx, at, 0),
			k.leased.Set(ctx, collections.Join(m.ID, o.ID), lease{o.Coin.Denom, value})); err != nil {
			return err
		}
	}
	return nil
}

// refund ends an order without a run and returns its budget, less the fee for waiting.
func (k *Keeper) refund(ctx context.Context, job Job, why, detail string) error {
	id := job.Order.ID
	escrow, err := k.escrows.Get(ctx, id)
	if err != nil {
		return err
	}
	escrow, fee := escrow.Charge(job.Fee)
	if err := k.pay(ctx, reward.CommunityPool, adapter.CoinsOf(job.Order.Coin, fee)); err != nil {
		return err
	}
	after, amount := escrow.Close()
	if err := k.pay(ctx, job.Order.Consumer, adapter.CoinsOf(job.Order.Coin, amount)); err != nil {
		return err
	}
	job.Status, job.Why = Ended, why
	return errors.Join(
		k.escrows.Set(ctx, id, after), k.jobs.Set(ctx, id, job), k.open.leave(ctx, job.Order),
		k.runs.Forget(ctx, job.Order.Terms.Spec), emit(ctx, &marketpb.EventEnded{Job: id, Why: why, Detail: detail}),
	)
}

// Job returns an order with its current state.
func (k *Keeper) Job(ctx context.Context, id string) (Job, error) {
	job, err := k.jobs.Get(ctx, id)
	if missing(err) {
		return job, fmt.Errorf("%w: %s", ErrNoOrder, id)
	}
	return job, err
}

// Ordered returns the order of a job.
func (k *Keeper) Ordered(ctx context.Context, id string) (market.Order, error) {
	job, err := k.Job(ctx, id)
	return job.Order, err
}

// Escrow returns the budget of a job and what was spent of it.
func (k *Keeper) Escrow(ctx context.Context, id string) (market.Escrow, error) {
	e, err := k.escrows.Get(ctx, id)
	if missing(err) {
		return e, fmt.Errorf("%w: %s", ErrNoOrder, id)
	}
	return e, err
}

// Spend executes the transfers from the escrow of a job, in the coin of its order, and stores the escrow after them. It
// returns an error if the two do not agree: the budget of a job never pays for another job.
func (k *Keeper) Spend(ctx context.Context, job string, after market.Escrow, transfers []reward.Transfer) error {
	before, err := k.Escrow(ctx, job)
	if err != nil {
		return err
	}
	order, err := k.Ordered(ctx, job)
	if err != nil {
		return err
	}
	var spent uint64
	for _, t := range transfers {
		spent += t.Amount
		if t.Pay {
			if err := k.registry.Pay(ctx, Name, t.To, order.Coin, t.Amount); err != nil {
				return err
			}
			continue
		}
		if err := k.pay(ctx, t.To, adapter.CoinsOf(order.Coin, t.Amount)); err != nil {
			return err
		}
	}
	if after.Budget != before.Budget || before.Remaining()-after.Remaining() != spent {
		return fmt.Errorf("market: escrow of %s goes from %+v to %+v, but %s were paid", job, before, after,
			order.Coin.Text(spent))
	}
	return k.escrows.Set(ctx, job, after)
}

func (k *Keeper) pay(ctx context.Context, to string, amount sdk.Coins) error {
	if to == reward.CommunityPool {
		return k.pool.FundCommunityPool(ctx, amount, k.account)
	}
	account, err := sdk.AccAddressFromBech32(to)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, amount)
}

// End records that the run of an order is over, and frees the slots of its members.
func (k *Keeper) End(ctx context.Context, s run.State) error {
	id := s.Terms.Job
	job, err := k.Job(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		if err := k.Free(ctx, id, m); err != nil {
			return err
		}
	}
	job.Status, job.Paused, job.Ending, job.Short = Ended, 0, false, 0
	return k.jobs.Set(ctx, id, job)
}

func missing(err error) bool { return errors.Is(err, collections.ErrNotFound) }

func emit(ctx context.Context, event proto.Message) error {
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(event)
}
