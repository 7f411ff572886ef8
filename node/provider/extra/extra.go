// Package extra is the work that a worker or verifier takes besides its seats in runs: it evaluates the models of
// contests, and answers requests to a hosted model. Each class of it takes nothing new in a pause, sets aside what is
// under way, and takes its memory from the memory that all work of the process shares.
//
// The evaluation is that of package arena, and the provider that of package provider. It offers no seats.
package extra

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/hosting/provider"
	"github.com/starling-network/starling/node/pause"
)

// Options say which work is taken.
type Options struct {
	Bond    uint64            // uzen of an evaluator of contests; 0: it evaluates none
	Private bool              // an evaluator also gets files from private addresses
	Host    *provider.Options // of the model that is hosted; nil: none
}

// Memory is what the machine has for all work of the process.
type Memory interface {
	Reserve(work string, bytes int64) error
	Release(work string)
}

// Process is what the work shares with the runs of the process.
type Process struct {
	Home    string
	Key     wallet.Signer // of the account
	Chain   *client.Client
	Threads int
	Memory  Memory
	Pause   *pause.Pauser
	Drain   <-chan struct{} // closed when no new work is to be taken
	Busy    *busy.Meter
	Log     *slog.Logger
	Say     func(string)
}

// Work is the work of a process, once Open has read what it needs.
type Work struct {
	Process
	judge *judge // nil: it evaluates no contests
	host  *host  // nil: it hosts no model

	working sync.WaitGroup
	left    atomic.Int32 // classes that are not done
}

// Open reads the model that is to be hosted, and sets its memory aside.
func Open(ctx context.Context, p Process, o Options) (*Work, error) {
	w := &Work{Process: p}
	if o.Host != nil {
		h, err := openHost(ctx, p, *o.Host)
		if err != nil {
			return nil, err
		}
		w.host = h
	}
	if o.Bond > 0 {
		w.judge = newJudge(p, o)
	}
	return w, nil
}

// Close gives back what Open took. The work is over.
func (w *Work) Close() error {
	if w.host != nil {
		return w.host.close()
	}
	return nil
}

// Begin takes work until the context ends, or it drains and nothing is owed. A class that fails ends with a message,
// and the others continue.
func (w *Work) Begin(ctx context.Context) {
	start := func(what string, run func(context.Context) error) {
		w.left.Add(1)
		w.working.Go(func() {
			defer w.left.Add(-1)
			if err := run(ctx); err != nil && ctx.Err() == nil {
				w.Log.Warn("work ends", "of", what, "err", err)
				w.Say(what + " ended: " + err.Error())
			}
		})
	}
	if w.judge != nil {
		start("the evaluation of contests", w.judge.run)
	}
	if w.host != nil {
		start("the hosted model", w.host.run)
	}
}

// Wait returns when all work has ended.
func (w *Work) Wait() { w.working.Wait() }

// Idle reports whether nothing is left to do once it drains.
func (w *Work) Idle() bool { return w.left.Load() == 0 }

// unpaused returns a context that ends with another one, and when a pause begins.
func unpaused(ctx context.Context, p *pause.Pauser) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	go func() {
		for {
			state, turned := p.State()
			if state.Paused {
				cancel(errPaused)
			}
			select {
			case <-turned:
			case <-inner.Done():
				return
			}
		}
	}()
	return inner, func() { cancel(nil) }
}

// Words adds the work to the seats of a process, and joins all.
func (o Options) Words(seats []string) string {
	if o.Bond > 0 {
		seats = append(seats, "judge of contests")
	}
	if o.Host != nil {
		seats = append(seats, "host of a model")
	}
	last := len(seats) - 1
	if last == 0 {
		return seats[0]
	}
	return strings.Join(seats[:last], ", ") + " and " + seats[last]
}
