// Package work does pieces of work one after the other, and keeps their results for a while. Pieces of one line are
// done in the order in which they come; a piece may hold its lines while it waits for others, and lines take turns. It
// knows no requests and no models.
package work

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// Limits of the queue.
const (
	maxWaiting      = 256       // pieces of work
	maxWaitingBytes = 128 << 20 // of their requests
	maxKept         = 1024      // results
	maxKeptBytes    = 64 << 20
)

// A Piece is work that is asked for.
type Piece struct {
	ID    string   // that no other piece has
	Owner string   // who sees the result
	Bytes int      // of the request, which waits with it
	Lines []string // in each of which it is done after the pieces that came before it; the first one has the turn
	Do    func() (any, error)
	Ended func(f *Future) // is called when the result is there, before others see it; may be nil
}

// A Future is a piece of work and, once Done is closed, its result.
type Future struct {
	Piece
	Done   chan struct{}
	Result json.RawMessage
	Err    *failure.Error

	came uint64 // when, on the clock of the queue
}

// line is the one that has a turn with the piece.
func (f *Future) line() string {
	if len(f.Lines) == 0 {
		return " " + f.Owner // no line of a piece begins with a space
	}
	return f.Lines[0]
}

// weighs is what a result takes of the room for those that are kept.
func (f *Future) weighs() int { return len(f.Result) + maxKeptBytes/maxKept }

// Answer is what became of work that is done: the result, or an error as the published client reads it.
func (f *Future) Answer() any {
	if f.Err == nil {
		return f.Result
	}
	category := "user"
	if f.Err.Status >= http.StatusInternalServerError {
		category = "server"
	}
	return map[string]any{"error": f.Err.Detail, "category": category, "code": f.Err.Code, "fix": f.Err.Fix}
}

// A Queue does one piece of work at a time, besides those that are Later or Held, and keeps the latest results.
type Queue struct {
	log    *slog.Logger
	owners int // of work, who have equal shares of the line

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*Future
	held    map[string]bool   // lines of pieces that wait for others
	turns   map[string]uint64 // when a line had its last one, of those in which pieces wait
	clock   uint64            // counts pieces that came, and turns
	all     map[string]*Future
	kept    []*Future // done, the oldest first
	closed  bool
}

// New returns a queue that is empty, for a number of owners. It logs errors that are no *failure.Error, of which
// clients hear nothing more.
func New(log *slog.Logger, owners int) *Queue {
	q := &Queue{log: log, owners: owners, all: map[string]*Future{}, held: map[string]bool{}, turns: map[string]uint64{}}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// Add puts work at the end of the line. Errors are of type *failure.Error.
func (q *Queue) Add(p Piece) (*Future, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, failure.New(http.StatusServiceUnavailable, "SERVER_STOPS", "the server stops", "start it again")
	}
	var bytes, own, ownBytes int // that wait
	for _, f := range q.waiting {
		bytes += f.Bytes
		if f.Owner == p.Owner {
			own, ownBytes = own+1, ownBytes+f.Bytes
		}
	}
	if len(q.waiting) >= maxWaiting || bytes+p.Bytes > maxWaitingBytes ||
		own > 0 && (own >= maxWaiting/q.owners || ownBytes+p.Bytes > maxWaitingBytes/q.owners) {
		return nil, &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL", Detail: "too much work waits",
			Fix: "retrieve results before sending more", Retry: time.Second}
	}
	return q.add(p), nil
}

// Always puts work of the server itself at the end of the line, also of one that is full.
func (q *Queue) Always(p Piece) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(p)
}

// Keep lists a result that is there already.
func (q *Queue) Keep(id, owner string, result json.RawMessage, err *failure.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := &Future{Piece: Piece{ID: id, Owner: owner}, Done: make(chan struct{}), Result: result, Err: err}
	close(f.Done)
	q.all[id] = f
	q.keep(f)
}

func (q *Queue) add(p Piece) *Future {
	q.clock++
	f := &Future{Piece: p, Done: make(chan struct{}), came: q.clock}
	q.waiting, q.all[f.ID] = append(q.waiting, f), f
	q.wake.Signal()
	return f
}

// Find returns the future of a name and an owner, or a *failure.Error.
func (q *Queue) Find(id, owner string) (*Future, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.all[id]; f != nil && f.Owner == owner {
		return f, nil
	}
	return nil, failure.New(http.StatusGone, "RESULT_GONE", "there is no such request, or its result is no longer kept",
		"retrieve a result before 1024 further ones are there; a server that was started again has none of those before")
}

// Run does the work until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.closed = true
		q.wake.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		next := q.next()
		for ; next < 0 && !q.closed; next = q.next() {
			q.wake.Wait()
		}
		if q.closed {
			return
		}
		f := q.take(next)
		q.mu.Unlock()
		later, holds := q.do(f)
		q.mu.Lock()
		if later == nil {
			q.keep(f)
			continue
		}
		for _, l := range f.Lines {
			q.held[l] = q.held[l] || holds
		}
		go func() {
			q.finish(f, later)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.keep(f)
			for _, l := range f.Lines {
				if holds {
					delete(q.held, l)
				}
			}
			q.wake.Signal()
		}()
	}
}

// next is the place of the piece that is done next, or -1. In no line of it is one that holds the line or came before
// it. Of several such pieces, that one is next whose line had its turn the longest time ago.
func (q *Queue) next() int {
	next, least, taken := -1, uint64(0), maps.Clone(q.held)
	for i, f := range q.waiting {
		free := !slices.ContainsFunc(f.Lines, func(l string) bool { return taken[l] })
		if at := max(f.came, q.turns[f.line()]); free && (next < 0 || at < least) {
			next, least = i, at
		}
		for _, l := range f.Lines {
			taken[l] = true
		}
	}
	return next
}

// take takes the piece at a place out of those that wait. It is the turn of its line.
func (q *Queue) take(place int) *Future {
	f := q.waiting[place]
	q.waiting = slices.Delete(q.waiting, place, place+1)
	q.clock++
	q.turns[f.line()] = q.clock
	waits := map[string]bool{}
	for _, f := range q.waiting {
		waits[f.line()] = true
	}
	maps.DeleteFunc(q.turns, func(l string, _ uint64) bool { return !waits[l] }) // the next piece there comes later
	return f
}

// Later is the value of work that only begins: it waits for the result, while other work is done.
type Later func() (any, error)

// Held is Later for work that later pieces of its lines are done after.
type Held func() (any, error)

// do makes the result of a future, or returns what waits for it, and whether its lines are held meanwhile.
func (q *Queue) do(f *Future) (later func() (any, error), holds bool) {
	value, err := f.Do()
	f.Do = nil
	if err == nil {
		switch v := value.(type) {
		case Later:
			return v, false
		case Held:
			return v, true
		}
	}
	q.finish(f, func() (any, error) { return value, err })
	return nil, false
}

// finish stores the result of a future.
func (q *Queue) finish(f *Future, result func() (any, error)) {
	defer close(f.Done)
	value, err := result()
	if err == nil {
		f.Result, err = json.Marshal(value)
	}
	if err != nil {
		f.Err = failure.Of(err)
		var known *failure.Error
		if q.log != nil && !errors.As(err, &known) {
			q.log.Error("failed", "request_id", f.ID, "error", err)
		}
	}
	if f.Ended != nil {
		f.Ended(f)
	}
}

// keep adds a result to the list of kept results. While their bytes exceed maxKeptBytes, it drops the oldest result of
// the owner whose results take the most bytes; the added result stays.
func (q *Queue) keep(f *Future) {
	before := q.kept
	q.kept = append(q.kept, f)
	sum, of := 0, map[string]int{}
	for _, k := range q.kept {
		sum += k.weighs()
		of[k.Owner] += k.weighs()
	}
	for ; len(before) > 0 && sum > maxKeptBytes; before = q.kept[:len(q.kept)-1] {
		most := 0
		for i, k := range before {
			if of[k.Owner] > of[before[most].Owner] {
				most = i
			}
		}
		k := before[most]
		sum, of[k.Owner] = sum-k.weighs(), of[k.Owner]-k.weighs()
		delete(q.all, k.ID)
		q.kept = slices.Delete(q.kept, most, most+1)
	}
}
