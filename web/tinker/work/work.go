// Package work is one line of work: pieces are done one after the other, in the order in which they come, and their
// results are kept for a while. It knows no requests and no models.
package work

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
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

// A Future is a piece of work and, once Done is closed, its result.
type Future struct {
	ID     string
	Done   chan struct{}
	Result json.RawMessage
	Err    *failure.Error

	bytes int // of the request
	work  func() (any, error)
	ended func(f *Future) // is called when the result is there, before others see it; may be nil
}

// A Queue does one piece of work at a time, in the order in which they came, and keeps the latest results.
type Queue struct {
	log *slog.Logger

	mu      sync.Mutex
	wake    *sync.Cond
	waiting []*Future
	bytes   int // of the requests that wait
	all     map[string]*Future
	kept    []*Future // done, the oldest first
	size    int       // of their results
	closed  bool
}

// New returns a queue that is empty. It logs errors that are no *failure.Error, of which clients hear nothing more.
func New(log *slog.Logger) *Queue {
	q := &Queue{log: log, all: map[string]*Future{}}
	q.wake = sync.NewCond(&q.mu)
	return q
}

// Add puts work at the end of the line, under a name that no other has. The bytes of its request wait with it. Ended is
// called with the result before others see it; nil: it is not. Errors are of type *failure.Error.
func (q *Queue) Add(id string, bytes int, work func() (any, error), ended func(f *Future)) (*Future, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, failure.New(http.StatusServiceUnavailable, "SERVER_STOPS", "the server stops", "start it again")
	}
	if len(q.waiting) >= maxWaiting || q.bytes+bytes > maxWaitingBytes {
		return nil, &failure.Error{Status: http.StatusTooManyRequests, Code: "QUEUE_FULL", Detail: "too much work waits",
			Fix: "retrieve results before sending more", Retry: time.Second}
	}
	return q.add(id, bytes, work, ended), nil
}

// Always puts work of the server itself at the end of the line, also of one that is full.
func (q *Queue) Always(id string, work func() (any, error), ended func(f *Future)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(id, 0, work, ended)
}

// Keep lists a result that is there already.
func (q *Queue) Keep(id string, result json.RawMessage, err *failure.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := &Future{ID: id, Done: make(chan struct{}), Result: result, Err: err}
	close(f.Done)
	q.all[id] = f
	q.keep(f)
}

func (q *Queue) add(id string, bytes int, work func() (any, error), ended func(f *Future)) *Future {
	f := &Future{ID: id, bytes: bytes, work: work, ended: ended, Done: make(chan struct{})}
	q.waiting, q.bytes, q.all[f.ID] = append(q.waiting, f), q.bytes+bytes, f
	q.wake.Signal()
	return f
}

// Find returns the future of a name, or a *failure.Error.
func (q *Queue) Find(id string) (*Future, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.all[id]; f != nil {
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
		for len(q.waiting) == 0 && !q.closed {
			q.wake.Wait()
		}
		if q.closed {
			return
		}
		f := q.waiting[0]
		q.waiting, q.bytes = q.waiting[1:], q.bytes-f.bytes
		q.mu.Unlock()
		later := q.do(f)
		q.mu.Lock()
		if later == nil {
			q.keep(f)
			continue
		}
		go func() {
			q.finish(f, later)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.keep(f)
		}()
	}
}

// Later is the value of work that only begins: it waits for the result, while other work is done.
type Later func() (any, error)

// do makes the result of a future, or returns what waits for it.
func (q *Queue) do(f *Future) Later {
	value, err := f.work()
	f.work = nil
	if later, ok := value.(Later); ok && err == nil {
		return later
	}
	q.finish(f, func() (any, error) { return value, err })
	return nil
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
	if f.ended != nil {
		f.ended(f)
	}
}

// keep lists a result among those that are kept, and drops the oldest ones.
func (q *Queue) keep(f *Future) {
	q.kept, q.size = append(q.kept, f), q.size+len(f.Result)
	for len(q.kept) > 1 && (len(q.kept) > maxKept || q.size > maxKeptBytes) {
		delete(q.all, q.kept[0].ID)
		q.kept, q.size = q.kept[1:], q.size-len(q.kept[0].Result)
	}
}
