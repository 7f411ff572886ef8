// Package pipes carries the messages between the stages of a replica: over channels of the hosts of their workers, or
// directly where one worker has two stages. It tells the chain for whom a stage waits too long.
package pipes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/channel"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/pipeline"
	"github.com/starling-network/starling/role/staged"
)

// Chain is what the worker of a stage asks of the network, and tells it. client.Member implements it.
type Chain interface {
	Addresses(ctx context.Context, id string) ([]string, error) // of the host of an account
	Send(ctx context.Context, a role.Action) error
	SignJoined(message []byte) ([]byte, error)
}

// Pipes are the ends of the stages of one worker in one run. It implements staged.Wires.
type Pipes struct {
	ID       string // account
	Chain    Chain
	Channels *channel.Table
	Deadline func(u work.UnitID) time.Duration // how long the worker has for a unit; 0: not known

	mu    sync.Mutex
	local map[string]*queue // between two stages of this worker
}

// Sign implements staged.Wires.
func (p *Pipes) Sign(statement []byte) ([]byte, error) { return p.Chain.SignJoined(statement) }

const (
	again    = 500 * time.Millisecond // before a neighbour is dialled again
	patience = 10 * time.Second       // that a stage waits for another at least, before it says so
	buffered = 1 << 16                // bytes that are written at a time
	lingers  = time.Minute            // a stream whose reader has not read its end
	words    = 4                      // of a receiver, and frames of the next step, that wait to be read
)

// queue is messages that have come, up to the error after which none comes.
type queue struct {
	came chan pipeline.Message
	fail chan error // one
}

// newQueue returns a queue for some frames, and words.
func newQueue(frames int) *queue {
	return &queue{came: make(chan pipeline.Message, frames+words), fail: make(chan error, 1)}
}

// wire is the end of one stage.
type wire struct {
	*Pipes
	staged.Attempt
	ctx     context.Context
	cancel  context.CancelFunc
	in      map[int]*queue
	out     map[int]*sender
	local   map[string]*queue // its queues of Pipes.local
	told    map[int]bool
	waiting time.Duration
	until   time.Time // when it says for whom it waits, however short; zero: not known
	working sync.WaitGroup
}

// sender writes to another stage: to its queue, or to a stream that is open once ready is closed.
type sender struct {
	direct *queue
	ready  chan struct{}
	stream network.Stream
	w      *bufio.Writer
}

// Open implements staged.Wires. Neighbours are reached while the stage computes.
func (p *Pipes) Open(ctx context.Context, a staged.Attempt) (staged.Wire, error) {
	w := &wire{Pipes: p, Attempt: a, in: map[int]*queue{}, out: map[int]*sender{}, told: map[int]bool{},
		local: map[string]*queue{}}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.waiting = patience
	if d := p.Deadline(work.UnitID{Round: a.Round, Unit: a.Unit(a.Stage), Attempt: a.Number}); d > 0 {
		w.waiting = min(max(patience, d/4), d*3/4)
		w.until = time.Now().Add(d * 7 / 8)
	}
	for _, l := range link.OfStage(a.Plan, a.Stage) {
		w.connect(int(l.From) + int(l.To) - a.Stage)
	}
	return w, nil
}

// connect begins to reach a neighbour, in both directions: words go back where frames come from.
//
// A queue has room for the frames of one step: a sender begins no other before the receiver has signed those. Stages
// that do not wait for each other have as many steps under way as the first is late, and one more. So a neighbour that
// sends more fills no more memory than one that does not.
func (w *wire) connect(other int) {
	if w.in[other] != nil {
		return
	}
	if w.Holders[other] == w.ID {
		w.in[other] = w.queue(w.Channel(other, w.Stage), w.frames(other, w.Stage))
		w.out[other] = &sender{direct: w.queue(w.Channel(w.Stage, other), w.frames(w.Stage, other))}
		return
	}
	w.in[other] = newQueue(w.frames(other, w.Stage))
	s := &sender{ready: make(chan struct{})}
	w.out[other] = s
	w.working.Go(func() { w.dial(other, s) })
	w.working.Go(func() { w.read(other, w.in[other]) })
}

// frames is how many frames of one stage to another are not read at a time, at most.
func (w *wire) frames(from, to int) int {
	late := w.Plan.Late()
	return (late+1)*len(link.Frames(w.Plan, terms.Link{From: uint32(from), To: uint32(to)})) + late*words
}

// queue is the queue with a name between two stages of this worker, whichever of them is there first.
func (w *wire) queue(name string, frames int) *queue {
	w.Pipes.mu.Lock()
	defer w.Pipes.mu.Unlock()
	if w.Pipes.local == nil {
		w.Pipes.local = map[string]*queue{}
	}
	q := w.Pipes.local[name]
	if q == nil {
		q = newQueue(frames)
		w.Pipes.local[name] = q
	}
	w.local[name] = q
	return q
}

// at is where the worker of a stage is reached.
func (w *wire) at(stage int) (peer.AddrInfo, error) {
	addrs, err := w.Chain.Addresses(w.ctx, w.Holders[stage])
	if err != nil {
		return peer.AddrInfo{}, err
	}
	others := address.Others("", addrs)
	if len(others) == 0 {
		return peer.AddrInfo{}, fmt.Errorf("pipes: no address of %s is known", w.Holders[stage])
	}
	return others[0], nil
}

// pausing waits before something is tried again; false: there is no time left.
func (w *wire) pausing() bool {
	select {
	case <-w.ctx.Done():
		return false
	case <-time.After(again):
		return true
	}
}

// dial opens the channel to a neighbour, again until it is there or the context ends.
func (w *wire) dial(other int, s *sender) {
	for {
		to, err := w.at(other)
		if err == nil {
			s.stream, err = w.Channels.Open(w.ctx, to, w.Channel(w.Stage, other))
		}
		if err == nil {
			s.w = bufio.NewWriterSize(s.stream, buffered)
			close(s.ready)
			return
		}
		if !w.pausing() {
			return
		}
	}
}

// read reads what a neighbour sends.
func (w *wire) read(other int, q *queue) {
	from, err := w.at(other)
	for err != nil {
		if !w.pausing() {
			return
		}
		from, err = w.at(other)
	}
	called := w.Channel(other, w.Stage)
	stream, err := w.Channels.Accept(w.ctx, from.ID, called)
	if err != nil {
		q.fail <- err
		return
	}
	defer w.Channels.Release(called, stream)
	defer context.AfterFunc(w.ctx, func() { _ = stream.Reset() })()
	r := bufio.NewReaderSize(stream, buffered)
	for {
		m, err := pipeline.ReadMessage(r, w.Plan, other, w.Stage)
		if err != nil {
			q.fail <- fmt.Errorf("pipes: stage %d: %w", other, err)
			return
		}
		select {
		case q.came <- m:
		case <-w.ctx.Done():
			return
		}
	}
}

// Send implements pipeline.Transport.
func (w *wire) Send(to int, m pipeline.Message) error {
	s := w.out[to]
	if s == nil {
		return fmt.Errorf("pipes: stage %d has no link with stage %d", w.Stage, to)
	}
	if s.direct != nil {
		select {
		case s.direct.came <- m.Clone():
			return nil
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	if err := w.wait(to, s.ready); err != nil {
		return err
	}
	defer context.AfterFunc(w.ctx, func() { _ = s.stream.Reset() })()
	if err := pipeline.WriteMessage(s.w, m); err != nil {
		return fmt.Errorf("pipes: to stage %d: %w", to, err)
	}
	return s.w.Flush()
}

// patient is how long the stage waits from now before it says so. A neighbour that stops shortly before the deadline
// must not be the only one that says it waits.
func (w *wire) patient() time.Duration {
	if w.until.IsZero() {
		return w.waiting
	}
	return max(again, min(w.waiting, time.Until(w.until)))
}

// wait waits until a neighbour is reached.
func (w *wire) wait(other int, ready <-chan struct{}) error {
	late := time.NewTimer(w.patient())
	defer late.Stop()
	for {
		select {
		case <-ready:
			return nil
		case <-late.C:
			w.tell(other)
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// Receive implements pipeline.Transport.
func (w *wire) Receive(from int) (m pipeline.Message, err error) {
	q := w.in[from]
	if q == nil {
		return m, fmt.Errorf("pipes: stage %d has no link with stage %d", w.Stage, from)
	}
	late, look, fail := time.NewTimer(w.patient()), time.NewTicker(again), q.fail
	defer late.Stop()
	defer look.Stop()
	for {
		select {
		case m = <-q.came:
			return m, nil
		default:
		}
		select {
		case m = <-q.came:
			return m, nil
		case err = <-fail:
			q.fail <- err
			if !w.Done(from) {
				return m, err
			}
			fail = nil // it may have committed
		case <-look.C:
			if m, ok := w.Word(from); ok {
				return m, nil
			}
		case <-late.C:
			w.tell(from)
		case <-w.ctx.Done():
			return m, w.ctx.Err()
		}
	}
}

// tell says on the chain that the stage waits for another. The unit does not depend on it.
func (w *wire) tell(other int) {
	if w.told[other] || w.Holders[other] == w.ID {
		return
	}
	w.told[other] = true
	unit := w.Unit(other)
	w.working.Go(func() {
		_ = w.Chain.Send(w.ctx, role.Missing{Work: work.UnitID{Round: w.Round, Unit: unit, Attempt: w.Number}})
	})
}

var errEnded = errors.New("pipes: the stage has ended")

// Close implements staged.Wire. Others see that nothing more is written.
func (w *wire) Close() {
	w.cancel()
	w.working.Wait()
	for _, s := range w.out {
		switch {
		case s.direct != nil:
			select {
			case s.direct.fail <- errEnded:
			default:
			}
		case s.stream != nil:
			_ = s.stream.CloseWrite()
			time.AfterFunc(lingers, func() { _ = s.stream.Reset() })
		}
	}
	w.Pipes.mu.Lock()
	defer w.Pipes.mu.Unlock()
	for n, q := range w.local {
		if w.Pipes.local[n] == q {
			delete(w.Pipes.local, n)
		}
	}
}
