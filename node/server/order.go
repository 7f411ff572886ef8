package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/consumer"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/refusal"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/web/failure"
)

// After a failure that a later try may not have, such as a lost connection, the server tries a job again. The pause
// before a try doubles up to maxPause. After maxTries failures in a row while the network answers, the job fails.
const (
	maxTries = 5
	maxPause = 30 * time.Second
)

// errUnfunded ends a try to order a job.
var errUnfunded = errors.New("server: the account has not the coins for the order")

// payer is the account of a server on a network, as far as the queue of its jobs uses it.
type payer struct {
	spending.Wallet
	account  *account.Account
	log      *slog.Logger
	texts    refusal.Words
	life     context.Context // of the server
	planning chan struct{}   // held while a job is prepared
}

func (p *payer) address() string { return p.Chain.Address() }

// newMark is what tells an order from others of the account that are the same.
func newMark() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// collect orders a job, unless the network has its order, and collects what comes of it; errUnfunded if the account
// lacks the coins. It waits for a network that does not answer. It has the queue looked at when the order is placed.
func (p *payer) collect(t *queuedJob, o consumer.Options, look func()) error {
	o.Network, o.Account, o.Mark, o.Preparing = p.Network, p.account, t.asked.Mark, p.planning
	o.Ordering = t.ordering
	o.Ordered = func(job string) error {
		defer look() // its coins are in the order now
		return p.ordered(t, job)
	}
	for tries, pause := 0, time.Second; ; pause = min(2*pause, maxPause) {
		_, err := node.Train(t.ctx, o)
		switch {
		case err == nil || t.ctx.Err() != nil || refusal.Final(err):
			return err
		case refusal.Unfunded(err):
			t.unordered()
			return errUnfunded
		}
		p.log.Warn("a job is tried again", "run", t.id, "err", err)
		why := p.texts.Reason(err)
		if _, dead := p.Has(p.life); dead != nil {
			why = *refusal.Unreachable()
		} else if tries++; tries == maxTries {
			return err
		}
		t.waits(&why)
		select {
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-time.After(pause):
		}
	}
}

// ordering is called before the order is sent.
func (t *queuedJob) ordering() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked.Cancel || t.pausing {
		return refusal.ErrCancelled
	}
	t.stage = ordering
	return nil
}

// unordered says that the network refused the order for want of coins: more are waited for than before.
func (t *queuedJob) unordered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage, t.fees = preparing, 2*t.fees+feesOfOrder
}

// queued reports whether it has not begun.
func (t *queuedJob) queued() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.begun
}

// ordered is called when the network has the order of a job. A job that was cancelled meanwhile is taken back, and one
// that was paused resumed.
func (p *payer) ordered(t *queuedJob, job string) error {
	t.mu.Lock()
	t.order, t.stage = job, ordered
	err := t.noteLocked(func(asked *runs.Submitted) { asked.Ordered = true })
	cancel, resumes := t.asked.Cancel, t.resumes
	t.resumes = false
	t.mu.Unlock()
	switch {
	case err != nil:
		return err
	case cancel:
		return p.takeBack(p.life, job)
	case resumes:
		return passed(p.Chain.Market.ResumeJob(p.life, job))
	}
	return nil
}

// takeBack cancels an order, or the run that came of it; nothing happens to one that is over.
func (p *payer) takeBack(ctx context.Context, job string) error {
	return passed(p.Chain.Market.CancelOrder(ctx, job))
}

// passed is the error of a transaction, but for the one that the job is in a state in which there is nothing to change.
func passed(err error) error {
	if errors.Is(err, chainmarket.ErrState) {
		return nil
	}
	return err
}

// putBack puts a job at the head of the queue for which the coins of the account do not suffice.
func (l *jobQueue) putBack(t *queuedJob) {
	t.begin(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.Insert(l.queue, 0, t)
}

// haltOrder cancels or pauses a job that may have been ordered. Not over: the job is stopped here, too.
func (p *payer) haltOrder(ctx context.Context, t *queuedJob, pause bool) (err error, over bool) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	t.mu.Lock()
	at, order := t.stage, t.order
	if !pause {
		err = t.noteLocked(func(asked *runs.Submitted) { asked.Cancel = true })
	}
	t.mu.Unlock()
	switch {
	case err != nil:
		return err, true
	case at == preparing:
		return nil, false
	case at == ordering && !pause:
		return nil, true // it is taken back once the network has it; see ordered
	case at == ordering:
		return &failure.Error{Status: http.StatusConflict, Code: "JOB_WAITS", Detail: "the job is being ordered",
			Fix: "try again in a moment", Retry: time.Second}, true
	case pause:
		err = p.Chain.Market.PauseJob(ctx, order)
		if errors.Is(err, chainmarket.ErrState) {
			return failure.New(http.StatusConflict, "JOB_WAITS", "the order has no run that could be paused",
				"wait until it is matched, or cancel the job"), true
		}
	default:
		err = p.takeBack(ctx, order)
	}
	switch {
	case err == nil:
		return nil, !pause
	case errors.Is(err, context.DeadlineExceeded) && !pause:
		return nil, true // the transaction is under way
	}
	return p.unanswered(err), true
}

// settleOrder finds out whether the network has the order of a job that was sent when a server ended, or when its
// answer was lost.
func (p *payer) settleOrder(t *queuedJob) error {
	ctx, cancel := context.WithTimeout(p.life, spending.AskTimeout)
	defer cancel()
	name, err := p.placed(ctx, t.dir)
	if err != nil || name == "" {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stage, t.order = ordered, name
	return t.noteLocked(func(asked *runs.Submitted) { asked.Ordered = true })
}

// placed is the name of the order of the run in a folder; "": the network has none.
func (p *payer) placed(ctx context.Context, dir string) (string, error) {
	o := rundir.OutDir{Path: dir}
	if err := o.ReadRun(); errors.Is(err, rundir.ErrNotARun) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	_, err := p.Chain.Market.PlacedOrder(ctx, o.Run.ID)
	if errors.Is(err, client.ErrNotFound) {
		return "", nil
	}
	return o.Run.ID, err
}

// restore queues the jobs of the account that were not over when the last server ended, in their order.
func (l *jobQueue) restore(had map[string]runs.Submitted) error {
	if l.payer == nil {
		return nil
	}
	var ids []string
	for id, asked := range had {
		if asked.Account == l.payer.address() && asked.State == "" && !l.over(id, asked) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if c := had[a].At.Compare(had[b].At); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if err := l.revive(id, had[id]); err != nil {
			return err
		}
	}
	return nil
}

// revive queues a job as its folder describes it. The caller holds the lock.
func (l *jobQueue) revive(id string, asked runs.Submitted) error {
	t := newTask(l.words.Root, id, asked, nil, false)
	if !asked.Ordered {
		ctx, cancel := context.WithTimeout(l.ctx, spending.AskTimeout)
		defer cancel()
		name, err := l.payer.placed(ctx, t.dir)
		switch {
		case err != nil:
			return err
		case name != "":
			t.stage, t.order, t.asked.Ordered = ordered, name, true
		case asked.Cancel:
			setCancelled(&asked, "")
			return folder.WriteJSON(filepath.Join(t.dir, runs.FileSubmitted), asked)
		case errors.Is(rundir.Probe(t.dir), rundir.ErrUnfinished):
			t.stage = ordering // its transaction may still be included
		}
	}
	text, err := os.ReadFile(filepath.Join(t.dir, rundir.FileJob))
	if err == nil {
		set := slices.DeleteFunc(slices.Clone(asked.Set), func(s string) bool { return strings.HasPrefix(s, "output.dir=") })
		t.job, err = l.read(api.Spec{Config: string(text), Overrides: set})
	}
	if err != nil {
		why := l.words.Reason(err)
		t.conclude("failed", &why)
		return t.note(func(*runs.Submitted) {})
	}
	return l.enqueue(t)
}

// takeBackPaused cancels a job that was paused after the network had its order.
func (l *jobQueue) takeBackPaused(id string, asked runs.Submitted) error {
	if l.payer == nil || asked.Account != l.payer.address() {
		return refusal.Elsewhere(asked.Account)
	}
	asked.Cancel, asked.State, asked.Reason = true, "", nil
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revive(id, asked)
}

// costOf is what a job cost that is over, in millionths of its coin; nil: it is not over, or that is not known yet.
func (p *payer) costOf(t *queuedJob) *uint64 {
	var cost uint64
	t.mu.Lock()
	state, order, why, in := t.asked.State, t.order, t.asked.Reason, t.asked.Coin
	t.mu.Unlock()
	switch {
	case state == stateStopped && why.Code != refusal.CodeCancelled:
		return nil
	case p == nil:
		var s rundir.Summary
		if folder.ReadJSON(filepath.Join(t.dir, rundir.FileSummary), &s) == nil {
			cost = s.PaidUzen + s.FeeUzen
		}
		return &cost
	case order == "":
		return &cost
	}
	ctx, cancel := context.WithTimeout(p.life, spending.AskTimeout)
	defer cancel()
	e, err := p.Chain.Market.Escrow(ctx, order)
	if err != nil || e.Remaining() > 0 {
		return nil
	}
	cost, more := coins.Millionths(in, e.Budget-e.Refunded)
	if more {
		cost++ // a limit is not exceeded by parts of a millionth
	}
	return &cost
}
