package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/refusal"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/failure"
)

// feesOfOrder is what is left in the account for the fees of the transactions of an order, in uzen.
const feesOfOrder = 200_000

// funded returns the coin of a new job, or why the job cannot be taken: the network takes no orders in the coin, the
// account has nothing of it, neither free nor in other jobs, or the network does not answer.
func (l *jobQueue) funded(ctx context.Context, want runs.Submitted, b spec.Budget) (coin.Coin, error) {
	l.mu.Lock()
	id, had, err := l.known(want)
	l.mu.Unlock()
	if id != "" || err != nil {
		return had.Coin, err
	}
	c, err := l.payer.CoinOf(ctx, b)
	if refused := (*failure.Error)(nil); errors.As(err, &refused) {
		return c, err
	}
	free := spending.Amounts(nil)
	if err == nil {
		free, err = l.payer.Has(ctx, c)
	}
	if err != nil {
		return c, l.payer.unanswered(err)
	}
	l.mu.Lock()
	locked := inJobs(l.tasks)
	l.mu.Unlock()
	least := spending.Amounts{"": 1, c.Symbol: 1}
	free.Add(locked)
	symbol, lacks := free.Lacks(least)
	if !lacks {
		return c, nil
	}
	need := spending.Amounts{c.Symbol: want.Budget}
	need.Add(spending.Amounts{"": feesOfOrder})
	a, in := l.payer.address(), spending.Millionths(symbol)
	return c, failure.New(http.StatusPaymentRequired, "WALLET_EMPTY",
		fmt.Sprintf("the account of the server, %s, has no %s", a, in.Name()),
		fmt.Sprintf("send it %s or more: %s", in.Text(need[symbol]), l.payer.Send(symbol, need[symbol])))
}

// unanswered is the answer where the network gives none.
func (p *payer) unanswered(err error) error {
	p.log.Warn("the network does not answer", "network", p.Network, "err", err)
	return &failure.Error{Status: http.StatusServiceUnavailable, Code: "NETWORK_UNREACHABLE",
		Detail: "the network does not answer",
		Fix: "try again, with the same Idempotency-Key; the owner of the server sees more with starling doctor --network " +
			p.Network, Retry: 2 * time.Second}
}

// inJobs are the budgets of those jobs that the network has.
func inJobs(tasks map[string]*queuedJob) spending.Amounts {
	sum := spending.Amounts{}
	for _, t := range tasks {
		if t.at() == ordered {
			sum.Add(t.budget())
		}
	}
	return sum
}

// lookAtFunds reads the coins of the account, if a job waits for them and one more may begin.
func (l *jobQueue) lookAtFunds() (free spending.Amounts, ok bool) {
	l.mu.Lock()
	queue := append([]*queuedJob{}, l.queue...)
	full := len(l.tasks)-len(l.queue) >= l.most
	var others []coin.Coin
	for _, t := range l.tasks {
		if c := t.kept().Coin; !c.Own() && !slices.Contains(others, c) {
			others = append(others, c)
		}
	}
	l.mu.Unlock()
	if len(queue) == 0 {
		return nil, false
	}
	if full {
		return nil, true
	}
	free, err := l.payer.Has(l.ctx, others...)
	for _, t := range queue {
		if err == nil && t.at() == ordering {
			err = l.payer.settleOrder(t)
		}
	}
	if err == nil {
		return free, true
	}
	for _, t := range queue {
		t.waits(refusal.Unreachable())
	}
	return nil, false
}

// sayFull tells the jobs that wait that as many are under way as may be.
func sayFull(queue []*queuedJob, most int) {
	if most == 1 {
		return // as they say by themselves
	}
	for _, t := range queue {
		t.waits(&api.Reason{Code: "queued",
			Text: fmt.Sprintf("%d jobs are under way, as many as may be at a time", most)})
	}
}

// covered is the place in the queue of the first job that may begin, or -1. A job that the network has needs no coins.
// The others begin in their order: one for which the account lacks a coin that is free once others are over holds back
// those after it that need this coin, and one that needs more than all coins of the account does not. All need ZEN, for
// fees. The caller holds the lock.
func (l *jobQueue) covered(has spending.Amounts) int {
	free := spending.Amounts{}
	free.Add(has)
	for _, t := range l.tasks { // those that have begun, and are not ordered yet
		if !t.queued() {
			free.Take(t.need())
		}
	}
	locked, held := inJobs(l.tasks), map[string]bool{}
	later := spending.Amounts{}
	later.Add(free)
	later.Add(locked)
	for i, t := range l.queue {
		need := t.need()
		lacked, lacks := free.Lacks(need)
		if slices.ContainsFunc(slices.Collect(maps.Keys(need)), func(symbol string) bool { return held[symbol] }) {
			t.waits(&api.Reason{Code: "queued", Text: "jobs before it wait for coins of the account"})
			continue
		}
		if !lacks {
			return i
		}
		_, never := later.Lacks(need)
		held[lacked] = !never
		t.waits(l.payer.Short(lacked, need, free, locked, !never))
	}
	return -1
}
