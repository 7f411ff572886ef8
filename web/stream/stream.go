// Package stream sends events to the readers of a server for as long as they stay: it wakes them when what they follow
// has changed, and keeps silent connections alive.
//
// It queues nothing for a reader. Each stream has a cursor into what is known, is woken when there is more, and sends
// what lies between. A slow reader gets more at once, one that does not read loses its connection after Timeout, and
// what makes the records never waits. The package does not know what the events are.
package stream

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// LastEvent is the header in which a reader that comes back sends the id of the last event that it got.
const LastEvent = "Last-Event-ID"

// A Sink is where a stream goes: a connection that takes server-sent events, or a call of gRPC.
type Sink interface {
	// Send sends an event now, or fails when the reader does not take it.
	Send(id, event string, data any) error
	// Beat keeps a silent stream from being taken for dead.
	Beat() error
}

// ErrEnded ends the streams of a server that stops.
var ErrEnded = &failure.Error{Status: http.StatusServiceUnavailable, Code: "STREAM_ENDED", Detail: "the server ends",
	Fix: "watch again, with the id of the last event as last_event_id", Retry: time.Second}

// Config is how streams are served. Every field is needed.
type Config struct {
	Poll      time.Duration // between looks at a source that a stream follows
	Heartbeat time.Duration // between beats of a silent stream
	Timeout   time.Duration // of a write to a reader
	Max       int           // streams that may be open at once
}

// Streams are those of a server. Its methods may be called concurrently.
type Streams struct {
	Config
	counts counts
	quit   chan struct{}
	stop   func()

	mu    sync.Mutex
	feeds map[string]*feed
}

type counts struct {
	open    atomic.Int64
	events  atomic.Uint64
	refused atomic.Uint64
	late    atomic.Uint64
}

// Counts are what streams count of themselves since the server began.
type Counts struct {
	Open    int64  // now
	Events  uint64 // that were sent
	Refused uint64 // streams, because there were too many
	Late    uint64 // streams that ended because their readers took nothing
}

// feed wakes the readers of one thing: while it has any, it is looked at every Poll.
type feed struct {
	readers int
	version string
	changed chan struct{} // closed with the next change
	stop    context.CancelFunc
}

// New returns the streams of a server, none of which is open.
func New(c Config) *Streams {
	s := &Streams{Config: c, feeds: map[string]*feed{}, quit: make(chan struct{})}
	s.stop = sync.OnceFunc(func() { close(s.quit) })
	return s
}

// Stop ends all streams, and every one that begins later.
func (s *Streams) Stop() { s.stop() }

// Counts returns the counts as they are now.
func (s *Streams) Counts() Counts {
	return Counts{s.counts.open.Load(), s.counts.events.Load(), s.counts.refused.Load(), s.counts.late.Load()}
}

// Sent counts an event that a sink outside this package sent.
func (s *Streams) Sent() { s.counts.events.Add(1) }

// Enter counts a stream, unless there are too many; leave ends it.
func (s *Streams) Enter() (leave func(), err error) {
	if n := s.counts.open.Add(1); n > int64(s.Max) {
		s.counts.open.Add(-1)
		s.counts.refused.Add(1)
		return nil, &failure.Error{Status: http.StatusServiceUnavailable, Code: "TOO_MANY_STREAMS",
			Detail: fmt.Sprintf("%d event streams are open, as many as may be", s.Max),
			Fix:    "close pages that are not in use", Retry: 5 * time.Second}
	}
	return func() { s.counts.open.Add(-1) }, nil
}

// Follow returns a function whose channel is closed when the result of version changes next, and one that ends the
// following. Readers with the same key share one query of the source.
func (s *Streams) Follow(key string,
	version func(context.Context) (string, error)) (changed func() <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{changed: make(chan struct{}), stop: cancel}
		s.feeds[key] = f
		go s.watch(ctx, f, version)
	}
	f.readers++
	changed = func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return f.changed
	}
	return changed, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.readers--; f.readers == 0 {
			f.stop()
			delete(s.feeds, key)
		}
	}
}

func (s *Streams) watch(ctx context.Context, f *feed, version func(context.Context) (string, error)) {
	tick := time.NewTicker(s.Poll)
	defer tick.Stop()
	for {
		if v, err := version(ctx); err == nil {
			s.mu.Lock()
			if v != f.version {
				f.version = v
				close(f.changed)
				f.changed = make(chan struct{})
			}
			s.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Serve opens a stream, unless too many are open, and calls send at its beginning and whenever the result of version
// changes, until the stream ends. Streams with the same key share the calls of version. It returns an error only if it
// did not open the stream.
func (s *Streams) Serve(ctx context.Context, open func() (Sink, error), key string,
	version func(context.Context) (string, error), send func(Sink) error) error {
	leave, err := s.Enter()
	if err != nil {
		return err
	}
	defer leave()
	to, err := open()
	if err != nil {
		return nil // the reader is gone
	}
	changed, done := s.Follow(key, version)
	defer done()
	s.Run(ctx, to.Beat, changed, func() error { return send(to) })
	return nil
}

// Run calls send at the beginning and after every change, and beat in between, until one of them fails, the context
// ends or the server stops. It returns no error: the answer has begun, so none can be sent.
func (s *Streams) Run(ctx context.Context, beat func() error, changed func() <-chan struct{}, send func() error) {
	pulse := time.NewTicker(s.Heartbeat)
	defer pulse.Stop()
	for {
		next := changed() // taken before send reads what there is, so that no change is missed
		if err := send(); err != nil {
			return
		}
	wait:
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.quit:
				return
			case <-next:
				break wait
			case <-pulse.C:
				if beat() != nil {
					return
				}
			}
		}
	}
}
