package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/web/failure"
)

// feesOfOrder is what is left in the account for the fees of the transactions of an order, in uzen.
const feesOfOrder = 200_000

// askTimeout is how long the network may take to answer a question about the account.
const askTimeout = 10 * time.Second

// funds are the coins of an account, in uzen.
type funds struct {
	free uint64 // that are in it
}

// askFunds reads the coins of the account.
func (p *payer) askFunds(ctx context.Context) (funds, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	free, err := p.account.Chain.Coins.Balance(ctx, p.account.Chain.Address())
	if errors.Is(err, client.ErrNotFound) {
		err = nil
	}
	return funds{free}, err
}

// funded returns why a new job cannot be taken: the account has no coins, neither free nor in other jobs, or the
// network does not answer.
func (l *jobQueue) funded(ctx context.Context, want runs.Submitted) error {
	l.mu.Lock()
	id, _, err := l.known(want)
	l.mu.Unlock()
	if id != "" || err != nil {
		return err
	}
	f, err := l.payer.askFunds(ctx)
	if err != nil {
		return l.payer.unanswered(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.free > 0 || inJobs(l.tasks) > 0 {
		return nil
	}
	a := l.payer.address()
	return failure.New(http.StatusPaymentRequired, "WALLET_EMPTY", "the account of the server, "+a+", has no coins",
		fmt.Sprintf("send it %s ZEN or more: starling account send %s %s --network %s --home DIR",
			spending.ZEN(want.Budget+feesOfOrder), a, spending.ZEN(want.Budget+feesOfOrder), l.payer.network))
}

// unanswered is the answer where the network gives none.
func (p *payer) unanswered(err error) error {
	p.log.Warn("the network does not answer", "network", p.network, "err", err)
	return &failure.Error{Status: http.StatusServiceUnavailable, Code: "NETWORK_UNREACHABLE",
		Detail: "the network does not answer",
		Fix: "try again, with the same Idempotency-Key; the owner of the server sees more with starling doctor --network " +
			p.network, Retry: 2 * time.Second}
}

// inJobs is the sum of the budgets of those jobs that the network has.
func inJobs(tasks map[string]*queuedJob) (sum uint64) {
	for _, t := range tasks {
		if t.at() == ordered {
			sum += uint64(t.job.Budget.MaxCost)
		}
	}
	return sum
}

// lookAtFunds reads the coins of the account, if a job waits for them and one more may begin.
func (l *jobQueue) lookAtFunds() (f funds, ok bool) {
	l.mu.Lock()
	queue := append([]*queuedJob{}, l.queue...)
	full := len(l.tasks)-len(l.queue) >= l.most
	l.mu.Unlock()
	if len(queue) == 0 {
		return f, false
	}
	if full {
		return f, true
	}
	f, err := l.payer.askFunds(l.ctx)
	for _, t := range queue {
		if err == nil && t.at() == ordering {
			err = l.payer.settleOrder(t)
		}
	}
	if err == nil {
		return f, true
	}
	for _, t := range queue {
		t.waits(unreachable())
	}
	return f, false
}

func unreachable() *api.Reason {
	return &api.Reason{Code: "network_unreachable", Text: "the network does not answer",
		Next: "the job continues when it does"}
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
// The others begin in their order: one whose budget is free once others are over holds back those after it, and one
// whose budget is more than all coins of the account does not. The caller holds the lock.
func (l *jobQueue) covered(f funds) int {
	free := f.free
	for _, t := range l.tasks { // those that have begun, and are not ordered yet
		if !t.queued() {
			free -= min(free, t.need())
		}
	}
	locked, held := inJobs(l.tasks), false
	for i, t := range l.queue {
		need := t.need()
		switch {
		case need == 0, !held && need <= free:
			return i
		case held:
			t.waits(&api.Reason{Code: "queued", Text: "jobs before it wait for coins of the account"})
		default:
			held = need <= f.free+locked
			t.waits(l.payer.short(need, free, locked, held))
		}
	}
	return -1
}

// short says which coins a job waits for.
func (p *payer) short(need, free, locked uint64, returns bool) *api.Reason {
	a := p.account.Chain.Address()
	why := &api.Reason{Code: "budget", Text: fmt.Sprintf("the account %s has %s ZEN free and %s ZEN in jobs; the job "+
		"needs %s ZEN, its budget and fees", a, spending.ZEN(free), spending.ZEN(locked), spending.ZEN(need))}
	missing := need - min(need, free)
	why.Next = fmt.Sprintf("starling account send %s %s --network %s --home DIR", a, spending.ZEN(missing), p.network)
	if returns {
		why.Next = "it begins when other jobs are over, or with more coins: " + why.Next
	}
	return why
}
