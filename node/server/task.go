package server

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/spending"
)

// queuedJob is a job that waits, is trained, or is ordered on a network: runs.Live.
type queuedJob struct {
	id, dir string
	job     *job.Job
	ctx     context.Context
	cancel  context.CancelFunc
	detach  func()
	done    chan struct{} // closed when it is over

	mu      sync.Mutex
	asked   runs.Submitted
	begun   bool
	pausing bool        // it continues when it is submitted again
	resumes bool        // it was paused before
	stage   stage       // of its order
	fees    uint64      // uzen that the account is to have for the order besides the budget and feesOfOrder
	order   string      // name of the order, once the network has it
	why     *api.Reason // that it does not continue; nil: the phase says it
	live    runs.Live   // nil: it prepares
}

// stage is how far the order of a job is.
type stage int

const (
	preparing stage = iota // nothing was sent
	ordering               // the transaction may be under way
	ordered                // the network has it
)

// note changes what is kept of a job, and writes it down.
func (t *queuedJob) note(change func(asked *runs.Submitted)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.noteLocked(change)
}

func (t *queuedJob) noteLocked(change func(asked *runs.Submitted)) error {
	change(&t.asked)
	return folder.WriteJSON(filepath.Join(t.dir, runs.FileSubmitted), t.asked)
}

// at is how far its order is.
func (t *queuedJob) at() stage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stage
}

// kept is what is kept of the job.
func (t *queuedJob) kept() runs.Submitted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

// need is what the account is to have before the job begins: the budget in its coin, and fees in ZEN.
func (t *queuedJob) need() spending.Amounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage == ordered || t.asked.Cancel {
		return nil
	}
	need := t.budget()
	need.Add(spending.Amounts{"": feesOfOrder + t.fees})
	return need
}

// budget is the budget of the job.
func (t *queuedJob) budget() spending.Amounts {
	return spending.Amounts{t.asked.Coin.Symbol: uint64(t.job.Budget.MaxCost)}
}

// conclude says how it ended.
func (t *queuedJob) conclude(state string, why *api.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked.State, t.asked.Reason = state, why
}

// pause says whether it is stopped for now only.
func (t *queuedJob) pause(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pausing = yes
}

// cancelled reports whether its order is to be taken back.
func (t *queuedJob) cancelled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked.Cancel
}

func (t *queuedJob) begin(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.why = yes, nil
}

// waits says why it does not continue.
func (t *queuedJob) waits(why *api.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.why, t.live = why, nil
}

func (t *queuedJob) show(live runs.Live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live, t.why = live, nil
}

// Progress implements runs.Live.
func (t *queuedJob) Progress() runs.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.begun && t.why == nil:
		return runs.Progress{Queued: true, Why: &api.Reason{Code: "queued", Text: "jobs are trained one after another, " +
			"and its turn has not come"}}
	case t.why != nil:
		return runs.Progress{Queued: !t.begun, Phase: "waiting", Why: t.why}
	case t.live == nil:
		return runs.Progress{Phase: "preparing", Why: &api.Reason{Code: "preparing", Text: "the data is read and tokenized"}}
	}
	p := t.live.Progress()
	if t.asked.Cancel {
		p.Why = &api.Reason{Code: "cancelling", Text: "its order is taken back: rounds under way are finished and paid, " +
			"and the rest of the budget returns"}
	}
	return p
}

// Books implements runs.Live.
func (t *queuedJob) Books(ctx context.Context) (runs.Payments, error) {
	t.mu.Lock()
	live := t.live
	t.mu.Unlock()
	if live == nil {
		return runs.Payments{}, dashboard.ErrNoChain
	}
	return live.Books(ctx)
}
