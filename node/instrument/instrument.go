package instrument

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/metrics"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/role"
)

// Instruments is what the owner of a process can see of it while it runs.
type Instruments struct {
	Metrics *metrics.Set
	Busy    *busy.Meter
	Shards  atomic.Int64 // bytes of shards of jobs' data that others have sent

	Mu       sync.Mutex
	Height   int64
	Time     time.Time     // of the block
	interval time.Duration // between it and the one before
	actions  map[actionID]time.Time
}

type actionID struct{ who, job, key string }

// ActionStatus is an action that is under way.
type ActionStatus struct {
	Job    string    `json:"job"`
	Action string    `json:"action"`
	Since  time.Time `json:"since"`
}

func New(version, role string) *Instruments {
	w := &Instruments{Metrics: metrics.New(version, role), Busy: busy.New(time.Now), actions: map[actionID]time.Time{}}
	w.Metrics.Labelled("starling_busy_seconds_total", "Time in which at least one computation of a class of work was "+
		"under way; those of all classes together have the class all.", "class", true, w.busy)
	w.Metrics.Gauge("starling_actions_in_flight", "Actions of the role that are under way.", func() float64 {
		w.Mu.Lock()
		defer w.Mu.Unlock()
		return float64(len(w.actions))
	})
	w.Metrics.Counter("starling_shards_received_bytes_total", "Bytes of shards of the data of jobs that others have sent.",
		func() float64 { return float64(w.Shards.Load()) })
	return w
}

// busy are the busy times in seconds, by class.
func (w *Instruments) busy() map[string]float64 {
	classes, all := w.Busy.Shares()
	seconds := map[string]float64{"all": all.Seconds}
	for _, c := range classes {
		seconds[string(c.Class)] = c.Seconds
	}
	return seconds
}

func (w *Instruments) Block(height int64, at time.Time) {
	w.Metrics.Block(height, at)
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Height > 0 && height > w.Height {
		w.interval = at.Sub(w.Time) / time.Duration(height-w.Height)
	}
	w.Height, w.Time = height, at
}

// Pace is the latest block, and the time between it and the one before.
func (w *Instruments) Pace() (height int64, interval time.Duration) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Height, w.interval
}

// Begin takes note that an action of a class of work begins; the function it returns, that it ended.
func (w *Instruments) Begin(who, job string, c busy.Class, a role.Action) (ended func(error)) {
	id, at := actionID{who, job, a.Key()}, time.Now()
	computed := func() {}
	if computes(a) {
		computed = w.Busy.Begin(c)
	}
	w.Mu.Lock()
	w.actions[id] = at
	w.Mu.Unlock()
	return func(err error) {
		computed()
		w.Mu.Lock()
		delete(w.actions, id)
		w.Mu.Unlock()
		name, _, _ := strings.Cut(id.key, " ")
		w.Metrics.Action(name, Outcome(err), time.Since(at))
	}
}

// computes reports whether an action computes: others send messages, or wait for blobs.
func computes(a role.Action) bool {
	switch a.(type) {
	case role.Train, role.Check, role.Measure, role.Probe, role.Reduce, role.Prove, role.Move, role.Challenge:
		return true
	}
	return false
}

// Outcome is how an action ended, for metrics and logs.
func Outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, refusal.ErrStale) || errors.Is(err, refusal.ErrWrongPhase):
		return "overtaken"
	case errors.Is(err, context.Canceled):
		return "stopped"
	}
	return "failed"
}

// UnderWay lists the actions that are, the oldest first.
func (w *Instruments) UnderWay() []ActionStatus {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	list := []ActionStatus{}
	for id, at := range w.actions {
		list = append(list, ActionStatus{id.job, id.key, at})
	}
	slices.SortFunc(list, func(a, b ActionStatus) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Action, b.Action))
	})
	return list
}
