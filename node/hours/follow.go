package hours

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/ledger"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/metrics"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/protocol/standing"
)

// every is the time between two looks, old the age of a block that no later one follows, and lastLook bounds the look
// before the process ends.
const (
	every    = 30 * time.Second
	old      = 2 * time.Minute
	lastLook = 2 * time.Second
)

// Process is what a process says of itself.
type Process struct {
	Pause   pause.State
	Refused map[string]string // runs that it left at once for want of room, and why
	Cut     error             // why the head of its local network carries nothing; nil: it does, or there is none
	Busy    []busy.Share      // its computations so far
}

// served is the time in which the process has answered requests or evaluated models, in seconds: no seat has it.
func (p Process) served() (seconds float64) {
	for _, s := range p.Busy {
		if s.Class == busy.Hosting || s.Class == busy.Evaluation {
			seconds += s.Seconds
		}
	}
	return seconds
}

// Reasons are those of the process itself, the first that counts first.
func (p Process) Reasons() (all []standing.Reason) {
	if p.Pause.Paused {
		all = append(all, standing.Reason{Code: standing.Paused, Kind: standing.Waits, Text: p.Pause.String(),
			Do: "starling worker resume ends the pause of its owner; a condition has to fail for a minute"})
	}
	for _, job := range slices.Sorted(maps.Keys(p.Refused)) {
		all = append(all, standing.Reason{Code: standing.StoreTooSmall, Kind: standing.Blocked, Job: job,
			Text: p.Refused[job] + "; no work is offered until that run is over", Do: "start it again with a larger --disk"})
	}
	return all
}

// chain is the network of a process.
type chain interface {
	Head(ctx context.Context) (ledger.Head, error)
	Standing(ctx context.Context, height int64) ([]standing.Reason, error)
}

// onChain reads the standing of the account of a client.
type onChain struct{ *client.Client }

func (c onChain) Head(ctx context.Context) (ledger.Head, error) { return c.Ledger.Head(ctx) }

func (c onChain) Standing(ctx context.Context, height int64) ([]standing.Reason, error) {
	return inspect.Standing(ctx, c.Client, height, c.Address())
}

// Follower notes the situation of a process.
type Follower struct {
	dir     string
	chain   chain
	process func() Process
	log     *slog.Logger

	served float64 // seconds until the look before

	mu    sync.Mutex
	total map[string]float64 // seconds of each cause since the process began
	now   standing.Cause
	why   standing.Reason // of now
}

// New returns the follower of the process over a folder, and adds its metrics to those of the process.
func New(dir string, c *client.Client, process func() Process, m *metrics.Set, log *slog.Logger) *Follower {
	f := &Follower{dir: dir, chain: onChain{c}, process: process, log: log}
	f.expose(m)
	return f
}

func (f *Follower) expose(m *metrics.Set) {
	m.Labelled("starling_worker_seconds_total", "Seconds that the worker or verifier was in each situation: the reason "+
		"for its pay, or for none.", "reason", true, func() map[string]float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return maps.Clone(f.total)
	})
	m.Labelled("starling_worker_reason", "1 for the situation in which the worker or verifier is.", "reason", false,
		func() map[string]float64 {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.now == "" {
				return nil
			}
			return map[string]float64{string(f.now): 1}
		})
}

// Run notes the situation of the process until the context ends.
func (f *Follower) Run(ctx context.Context) {
	hours, err := load(f.dir)
	if err != nil {
		f.log.Warn("the hours before this process cannot be read, and are replaced", "err", err)
	}
	l := &record{dir: f.dir, hours: hours}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		c, why := f.look(ctx, time.Now())
		if ctx.Err() != nil {
			f.end(l)
			return
		}
		f.note(l, time.Now(), c, why)
		select {
		case <-ctx.Done():
			f.end(l)
			return
		case <-ticks.C:
		}
	}
}

// end notes the situation in which the process ends: the hours after it have the same reason, if it is that its owner
// wants no more work of it. Its way to the network may have ended before it, as the link of a head does: then the
// situation is that of the look before.
func (f *Follower) end(l *record) {
	ctx, cancel := context.WithTimeout(context.Background(), lastLook)
	defer cancel()
	c, why := f.look(ctx, time.Now())
	if why.Code == standing.Unreachable && f.now != "" {
		c, why = f.now, f.why
	}
	if why.Code == standing.Revoked || why.Code == standing.OwnerDrains {
		l.ended = &Reason{"the process has ended: " + why.Text, why.Do}
	}
	f.note(l, time.Now(), c, why)
}

// note counts the time since the last note.
func (f *Follower) note(l *record, now time.Time, c standing.Cause, why standing.Reason) {
	since := now.Sub(l.last)
	if l.last.IsZero() || since > gap {
		since = 0
	}
	l.note(now, c, why)
	f.mu.Lock()
	if f.total == nil {
		f.total = map[string]float64{}
	}
	f.total[string(c)] += max(0, since.Seconds())
	f.now, f.why = c, why
	f.mu.Unlock()
	if err := l.write(); err != nil {
		f.log.Warn("the reasons of this hour are not kept", "err", err)
	}
}

// look says in which situation the process is.
func (f *Follower) look(ctx context.Context, now time.Time) (standing.Cause, standing.Reason) {
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	process := f.process()
	reasons, served := process.Reasons(), process.served()
	if served > f.served {
		reasons = append(reasons, standing.Reason{Code: standing.Serves, Kind: standing.Works,
			Text: "it answers requests to its model, or evaluates models"})
	}
	f.served = served
	head, err := f.chain.Head(ctx)
	if err == nil && (head.CatchingUp || now.Sub(head.Time) > old) {
		reasons = append(reasons, standing.Reason{Code: standing.Behind, Kind: standing.Blocked,
			Text: "the validator that is asked has no block of the last two minutes: it is behind, or the network makes none",
			Do:   "see starling network status with another validator, and name several in --network"})
	}
	var more []standing.Reason
	if err == nil {
		more, err = f.chain.Standing(ctx, head.Height)
	}
	switch {
	case err != nil && process.Cut != nil:
		reasons = append(reasons, standing.Reason{Code: standing.Unreachable, Kind: standing.Blocked,
			Text: "the head of the local network carries nothing for this machine: " + process.Cut.Error(),
			Do:   "check that starling fleet head runs, and ask its owner for a ticket if that of this machine was deleted"})
	case err != nil:
		reasons = append(reasons, standing.Reason{Code: standing.Unreachable, Kind: standing.Blocked,
			Text: "the network does not answer: " + err.Error(),
			Do:   "check the connection of the machine, and name several validators in --network"})
	}
	return standing.Deciding(append(reasons, more...))
}
