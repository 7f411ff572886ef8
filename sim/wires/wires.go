// Package wires carries the messages between the stages of replicas under virtual time. A message takes the time of its
// bytes on the link between two machines, and its sender waits for that.
package wires

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/pipeline"
	"github.com/starling-network/starling/role/staged"
	"github.com/starling-network/starling/sim/clock"
)

// Net is the queues between all stages of a network.
type Net struct{ queues map[string]*queue }

// queue is the messages from one stage to another that are not read yet.
type queue struct {
	list  []pipeline.Message
	ended bool
}

// Wires are the ends of the stages of one worker. It implements staged.Wires.
type Wires struct {
	Net   *Net
	Clock *clock.Clock
	Key   wallet.Signer
	Carry func(to string, bytes int) error                     // brings bytes to the worker of an account
	Say   func(ctx context.Context, missing role.Action) error // for whom the worker waits
}

// Sign implements staged.Wires.
func (w *Wires) Sign(statement []byte) ([]byte, error) {
	signature, err := w.Key.Sign(statement)
	return append(slices.Clip(w.Key.PublicKey()), signature...), err
}

// wire is the end of one stage.
type wire struct {
	*Wires
	staged.Attempt
	ctx  context.Context
	out  map[int]*queue
	in   map[int]*queue
	told map[int]bool
}

// Open implements staged.Wires.
func (w *Wires) Open(ctx context.Context, a staged.Attempt) (staged.Wire, error) {
	if w.Net.queues == nil {
		w.Net.queues = map[string]*queue{}
	}
	e := &wire{Wires: w, Attempt: a, ctx: ctx, out: map[int]*queue{}, in: map[int]*queue{}, told: map[int]bool{}}
	for to := range a.Holders {
		if to != a.Stage {
			e.out[to] = &queue{}
			w.Net.queues[a.Channel(a.Stage, to)] = e.out[to]
		}
	}
	return e, nil
}

// size counts the bytes of a message.
type size int

func (s *size) Write(b []byte) (int, error) {
	*s += size(len(b))
	return len(b), nil
}

// Send implements pipeline.Transport.
func (e *wire) Send(to int, m pipeline.Message) error {
	var n size
	if err := pipeline.WriteMessage(&n, m); err != nil {
		return err
	}
	m = m.Clone()
	if err := e.Carry(e.Holders[to], int(n)); err != nil {
		return err
	}
	e.out[to].list = append(e.out[to].list, m)
	return e.ctx.Err()
}

var errEnded = errors.New("wires: the other stage has ended")

// A stage that waits looks every poll, and says so after its patience.
const (
	poll     = 20 * time.Millisecond
	patience = 10 * time.Second
)

// Receive implements pipeline.Transport.
func (e *wire) Receive(from int) (m pipeline.Message, err error) {
	begun := e.Clock.Now
	for {
		q := e.in[from]
		if q == nil { // the stage has not begun, or begins again
			if now := e.Net.queues[e.Channel(from, e.Stage)]; now != nil && !now.ended {
				q, e.in[from] = now, now
			}
		}
		switch {
		case e.ctx.Err() != nil:
			return m, e.ctx.Err()
		case q != nil && len(q.list) > 0:
			m, q.list = q.list[0], q.list[1:]
			return m, nil
		case q != nil && q.ended && !e.Done(from):
			return m, errEnded
		}
		if m, ok := e.Word(from); ok {
			return m, nil
		}
		if e.Clock.Now-begun > patience && !e.told[from] {
			e.told[from] = true
			_ = e.Say(e.ctx, role.Missing{Work: work.UnitID{Round: e.Round, Unit: e.Unit(from), Attempt: e.Number}})
		}
		if err := e.Clock.Sleep(poll); err != nil {
			return m, err
		}
	}
}

// Close implements staged.Wire.
func (e *wire) Close() {
	for to, q := range e.out {
		q.ended = true
		if at := e.Channel(e.Stage, to); len(q.list) == 0 && e.Net.queues[at] == q {
			delete(e.Net.queues, at)
		}
	}
}
