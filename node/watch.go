package node

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/node/metrics"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
)

// watch is what the owner of a process can see of it while it runs.
type watch struct {
	metrics *metrics.Set

	mu       sync.Mutex
	height   int64
	time     time.Time     // of the block
	interval time.Duration // between it and the one before
	actions  map[actionID]time.Time
	train    Progress // of a consumer's job
}

type actionID struct{ who, job, key string }

// ActionStatus is an action that is under way.
type ActionStatus struct {
	Job    string    `json:"job"`
	Action string    `json:"action"`
	Since  time.Time `json:"since"`
}

func newWatch(version, role string) *watch {
	w := &watch{metrics: metrics.New(version, role), actions: map[actionID]time.Time{}}
	w.metrics.Gauge("starling_actions_in_flight", "Actions of the role that are under way.", func() float64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return float64(len(w.actions))
	})
	return w
}

func (w *watch) block(height int64, at time.Time) {
	w.metrics.Block(height, at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.height > 0 && height > w.height {
		w.interval = at.Sub(w.time) / time.Duration(height-w.height)
	}
	w.height, w.time = height, at
}

// pace is the latest block, and the time between it and the one before.
func (w *watch) pace() (height int64, interval time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.height, w.interval
}

// begin takes note that an action begins; the function it returns, that it ended.
func (w *watch) begin(who, job string, a role.Action) (ended func(error)) {
	id, at := actionID{who, job, a.Key()}, time.Now()
	w.mu.Lock()
	w.actions[id] = at
	w.mu.Unlock()
	return func(err error) {
		w.mu.Lock()
		delete(w.actions, id)
		w.mu.Unlock()
		name, _, _ := strings.Cut(id.key, " ")
		w.metrics.Action(name, outcome(err), time.Since(at))
	}
}

// outcome is how an action ended, for metrics and logs.
func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, run.ErrStale) || errors.Is(err, run.ErrWrongPhase):
		return "overtaken"
	case errors.Is(err, context.Canceled):
		return "stopped"
	}
	return "failed"
}

// underWay lists the actions that are, the oldest first.
func (w *watch) underWay() []ActionStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []ActionStatus{}
	for id, at := range w.actions {
		list = append(list, ActionStatus{id.job, id.key, at})
	}
	slices.SortFunc(list, func(a, b ActionStatus) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Action, b.Action))
	})
	return list
}

// follow shows the progress of a job in metrics, and passes it on.
func (w *watch) follow(next func(Progress)) func(Progress) {
	for _, g := range []struct {
		name, help string
		of         func(Progress) float64
	}{
		{"starling_job_steps", "Inner steps in attested rounds of the job.", func(p Progress) float64 { return float64(p.Step) }},
		{"starling_job_planned_steps", "Inner steps of the whole job.", func(p Progress) float64 { return float64(p.Steps) }},
		{"starling_job_rounds", "Attested rounds of the job.", func(p Progress) float64 { return float64(p.Round) }},
		{"starling_job_loss", "Mean training loss of the latest round, in nats a token.", func(p Progress) float64 { return p.Loss }},
		{"starling_job_eval_loss", "Latest loss on held-out data, in nats a token.", func(p Progress) float64 { return p.EvalLoss }},
		{"starling_job_grad_norm", "Norm of the gradient before clipping, the mean over the inner steps of the latest round.", func(p Progress) float64 { return p.GradNorm }},
		{"starling_job_tokens_per_second", "Tokens trained a second in the latest round.", func(p Progress) float64 { return p.TokensPerSecond }},
		{"starling_job_workers", "Active workers of the job.", func(p Progress) float64 { return float64(p.Workers) }},
		{"starling_job_paid_uzen", "Paid for the job so far, fee included.", func(p Progress) float64 { return float64(p.PaidUzen) }},
		{"starling_job_budget_uzen", "Budget of the job.", func(p Progress) float64 { return float64(p.BudgetUzen) }},
	} {
		w.metrics.Gauge(g.name, g.help, func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return g.of(w.train)
		})
	}
	w.train = Progress{Loss: math.NaN(), EvalLoss: math.NaN(), GradNorm: math.NaN(), TokensPerSecond: math.NaN()}
	return func(p Progress) {
		w.mu.Lock()
		w.train = p
		w.mu.Unlock()
		if next != nil {
			next(p)
		}
	}
}

// tell passes an event to the role, and writes down what comes of it.
func (p *process) tell(e role.Event) []role.Action {
	actions := p.step(e)
	p.minutes.note(e, actions)
	return actions
}
