package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// Nothing is queued for the reader of a stream: each stream has a cursor into what is known, is woken when there is
// more, and sends what lies between. A reader that is slow gets more at once, one that does not read loses its
// connection after Limits.Write, and whoever makes the records never waits.

// sink is where a stream goes: a connection that takes server-sent events, or a call of gRPC.
type sink interface {
	// send sends an event now, or fails when nobody takes it.
	send(id, event string, data any) error
	// beat keeps a silent stream from being taken for dead.
	beat() error
}

// feed wakes those who follow something: while somebody does, it is looked at every Poll.
type feed struct {
	readers int
	version string
	changed chan struct{} // closed with the next change
	stop    context.CancelFunc
}

// follow returns a function that waits for the next change of what version reads, and one that ends the following.
func (s *Server) follow(key string,
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

func (s *Server) watch(ctx context.Context, f *feed, version func(context.Context) (string, error)) {
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

// enter counts a stream, unless there are too many; leave ends it.
func (s *Server) enter() (leave func(), err error) {
	if n := s.stats.streams.Add(1); n > int64(s.Streams) {
		s.stats.streams.Add(-1)
		s.stats.refused.Add(1)
		return nil, &Failure{Status: http.StatusServiceUnavailable, Code: "TOO_MANY_STREAMS",
			Detail: fmt.Sprintf("%d event streams are open, as many as may be", s.Streams),
			Fix:    "close pages that nobody looks at", Retry: 5 * time.Second}
	}
	return func() { s.stats.streams.Add(-1) }, nil
}

// stream is the connection of a reader of server-sent events (WHATWG HTML, section 9.2).
type stream struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	s  *Server
}

// open begins a stream of server-sent events.
func (s *Server) open(w http.ResponseWriter) (sink, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	st := &stream{w: w, rc: http.NewResponseController(w), s: s}
	_ = st.rc.SetReadDeadline(time.Time{}) // the request is read; the connection lives on
	return st, st.write([]byte("retry: 1000\n\n"))
}

// write sends bytes now, or fails when nobody takes them.
func (st *stream) write(b []byte) error {
	_ = st.rc.SetWriteDeadline(time.Now().Add(st.s.Limits.Write)) // a recorder has none
	_, err := st.w.Write(b)
	if err == nil {
		err = st.rc.Flush()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		st.s.stats.late.Add(1)
	}
	return err
}

// send implements sink. JSON has no newline in it.
func (st *stream) send(id, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", event, text)
	st.s.stats.events.Add(1)
	return st.write(b.Bytes())
}

// beat implements sink.
func (st *stream) beat() error { return st.write([]byte(": alive\n\n")) }

// run calls send at the beginning and after every change, and beat in between, until the reader or the server goes.
// What it returns is nobody's to answer: the answer has begun.
func (s *Server) run(ctx context.Context, beat func() error, changed func() <-chan struct{}, send func() error) {
	pulse := time.NewTicker(s.Heartbeat)
	defer pulse.Stop()
	for {
		next := changed() // before it is read what there is: nothing falls between
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

// lastEvent is the header in which a reader that comes back says what it has.
const lastEvent = "Last-Event-ID"

// cursor is how much of a run a reader has. As the id of an event it survives a restart of the server.
type cursor struct {
	metrics, lineage, samples int
	// beginning of the state root of the last checkpoint: another one means that records were taken back
	root string
}

func (c cursor) String() string {
	return fmt.Sprintf("%d.%d.%d.%s", c.metrics, c.lineage, c.samples, c.root)
}

// parseCursor reads an id; ok is false for what is none.
func parseCursor(text string) (c cursor, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 4 || len(parts[3]) > rootLength {
		return c, false
	}
	for i, n := range []*int{&c.metrics, &c.lineage, &c.samples} {
		v, err := strconv.ParseUint(parts[i], 10, 31)
		if err != nil {
			return cursor{}, false
		}
		*n = int(v)
	}
	c.root = parts[3]
	return c, true
}

const rootLength = 12

// end is the cursor of a reader that has all.
func end(h *History) cursor {
	c := cursor{metrics: len(h.Metrics), lineage: len(h.Lineage), samples: len(h.Samples)}
	c.root = rootAt(h, c.lineage)
	return c
}

func rootAt(h *History, n int) string {
	if n == 0 {
		return ""
	}
	root := h.Lineage[n-1].StateRoot
	return root[:min(len(root), rootLength)]
}

// holds reports whether what a reader has is still the beginning of what there is.
func (c cursor) holds(h *History) bool {
	return c.metrics <= len(h.Metrics) && c.lineage <= len(h.Lineage) && c.samples <= len(h.Samples) &&
		c.root == rootAt(h, c.lineage)
}

// maxNews bounds the metrics in one event. A reader that misses more gets the latest, and asks /metrics for a whole
// picture.
const maxNews = 2000

// since is what a reader lacks.
func since(c cursor, h *History) api.Update {
	u := api.Update{Job: h.Job, Metrics: h.Metrics[c.metrics:], Checkpoints: h.Lineage[c.lineage:],
		Samples: h.Samples[c.samples:], Receipts: len(h.Receipts), Disputes: len(h.Disputes)}
	u.Metrics = u.Metrics[max(0, len(u.Metrics)-maxNews):]
	u.Checkpoints = u.Checkpoints[max(0, len(u.Checkpoints)-maxNews):]
	return u
}

// jobEvents streams a run: first the run as it is, or, to who comes back, what is new since; then what is added. A run
// that took records back is sent as a reset.
func (s *Server) jobEvents(r *http.Request, open func() (sink, error)) error {
	id := r.PathValue("id")
	h, err := s.Runs.History(r.Context(), id)
	if err != nil {
		return err
	}
	at, event := end(h), "update"
	resumed, ok := parseCursor(r.Header.Get(lastEvent))
	switch {
	case ok && resumed.holds(h):
		at = resumed
	case r.Header.Get(lastEvent) != "":
		event = "reset"
	}
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	to, err := open()
	if err != nil {
		return nil // the reader is gone
	}
	changed, done := s.follow("job "+id, func(ctx context.Context) (string, error) {
		h, err := s.Runs.History(ctx, id)
		if err != nil {
			return "", err
		}
		return strconv.FormatUint(h.Version, 10), nil
	})
	defer done()
	var sent uint64
	s.run(r.Context(), to.beat, changed, func() error {
		h, err := s.Runs.History(r.Context(), id)
		if err != nil {
			return err
		}
		if sent == h.Version+1 {
			return nil
		}
		if !at.holds(h) {
			at, event = end(h), "reset"
		}
		u := since(at, h)
		at = end(h)
		sent = h.Version + 1
		name := event
		event = "update"
		return to.send(at.String(), name, u)
	})
	return nil
}

// allEvents streams the runs that change, as events job, and the network after its blocks, as events network.
func (s *Server) allEvents(r *http.Request, open func() (sink, error)) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	to, err := open()
	if err != nil {
		return nil // the reader is gone
	}
	changed, done := s.follow("all", s.pulse)
	defer done()
	had := map[string]string{}
	height := int64(-1)
	s.run(r.Context(), to.beat, changed, func() error {
		jobs, err := s.Runs.List(r.Context())
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if v := pulseOf(j); had[j.ID] != v {
				had[j.ID] = v
				if err := to.send("", "job", j); err != nil {
					return err
				}
			}
		}
		if s.Network == nil {
			return nil
		}
		n, err := s.overview(r)
		if err != nil || n.Height == height {
			return nil // the network is away for the moment; the page sees it in /v1/health
		}
		height = n.Height
		return to.send("", "network", n)
	})
	return nil
}

// pulse changes with any run, and with the network.
func (s *Server) pulse(ctx context.Context) (string, error) {
	jobs, err := s.Runs.List(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, j := range jobs {
		b.WriteString(j.ID)
		b.WriteString(pulseOf(j))
	}
	if s.Network != nil {
		ctx, cancel := context.WithTimeout(ctx, chainPatience)
		defer cancel()
		if n, err := s.Network.Overview(ctx); err == nil {
			fmt.Fprint(&b, n.Height)
		}
	}
	return b.String(), nil
}

func pulseOf(j api.Job) string {
	return fmt.Sprint(" ", j.State, j.Phase, j.Step, j.Round, j.PaidUzen, j.Workers, j.Updated.UnixNano(), ";")
}
