package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/sourcetest"
)

// listener answers on the loopback until the test ends.
func listener(t *testing.T, s *Server) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// event is one of a stream.
type event struct {
	id, name string
	update   api.Update
}

type reader struct {
	body  io.ReadCloser
	lines *bufio.Scanner
	beats int
}

func listen(t *testing.T, address, path, last string) *reader {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil || a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v %v", a, err)
	}
	lines := bufio.NewScanner(a.Body)
	lines.Buffer(nil, 1<<24)
	t.Cleanup(func() { _ = a.Body.Close() })
	return &reader{body: a.Body, lines: lines}
}

func (r *reader) next(t *testing.T) (e event) {
	t.Helper()
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.update); err != nil && e.id != "" {
				t.Fatal(err)
			}
		case "":
			if value == "alive" {
				r.beats++
			} else if e.name != "" {
				return e
			}
		}
	}
	t.Fatalf("the stream ended: %v", r.lines.Err())
	return e
}

// grow puts a run of that many rounds under the identifier live.
func grow(lib *sourcetest.Store, rounds int) {
	run := sourcetest.Run(rounds)
	lib.Put("live", func(h *source.History) { h.Metrics, h.Lineage = run.Metrics, run.Lineage })
}

// A reader that comes back, also to another server, gets what it missed and nothing twice; one whose records were taken
// back gets an event to read all again.
func TestStreamResumes(t *testing.T) {
	lib := sourcetest.New()
	grow(lib, 3)
	address, stop := listener(t, server(t, Config{Runs: lib}))
	r := listen(t, address, "/v1/jobs/live/events", "")
	first := r.next(t)
	if first.name != "update" || len(first.update.Metrics) != 0 {
		t.Fatalf("%+v", first)
	}
	grow(lib, 4)
	second := r.next(t)
	if len(second.update.Metrics) != 11 || len(second.update.Checkpoints) != 1 || second.update.Checkpoints[0].Round != 4 {
		t.Fatalf("%d metrics, %d checkpoints", len(second.update.Metrics), len(second.update.Checkpoints))
	}
	stop()
	grow(lib, 6)
	address, _ = listener(t, server(t, Config{Runs: lib}))
	r = listen(t, address, "/v1/jobs/live/events", second.id)
	missed := r.next(t)
	if missed.name != "update" || len(missed.update.Checkpoints) != 2 || missed.update.Checkpoints[0].Round != 5 {
		t.Fatalf("%s, %d checkpoints", missed.name, len(missed.update.Checkpoints))
	}
	for r.beats == 0 { // a silent stream is kept alive
		if !r.lines.Scan() {
			t.Fatal("the stream ended")
		}
		if r.lines.Text() == ": alive" {
			r.beats++
		}
	}
	lib.Put("live", func(h *source.History) {
		h.Metrics, h.Lineage = sourcetest.Run(5).Metrics, slices.Clone(sourcetest.Run(5).Lineage)
		h.Lineage[4].StateRoot = strings.Repeat("f", 64)
	})
	back := r.next(t)
	if back.name != "reset" {
		t.Errorf("a rollback comes as %s", back.name)
	}
	if e := listen(t, address, "/v1/jobs/live/events", missed.id).next(t); e.name != "reset" {
		t.Errorf("who comes back after a rollback gets %s", e.name)
	}
	if e := listen(t, address, "/v1/jobs/live/events", "../../etc").next(t); e.name != "reset" {
		t.Errorf("an id of nobody gives %s", e.name)
	}
}

// Readers that vanish or never read delay no other reader, and are disconnected.
func TestStreamsEnd(t *testing.T) {
	lib := sourcetest.New()
	s := server(t, Config{Runs: lib, Streams: 3})
	address, stop := listener(t, s)
	var all []*reader
	for range 3 {
		r := listen(t, address, "/v1/jobs/first/events", "")
		r.next(t)
		all = append(all, r)
	}
	a, err := http.Get("http://" + address + "/v1/events")
	if err != nil || a.StatusCode != 503 || a.Header.Get("Retry-After") == "" {
		t.Errorf("the fourth stream of three: %v %v", a, err)
	}
	_ = a.Body.Close()
	for _, r := range all {
		_ = r.body.Close()
	}
	for s.streams.Counts().Open > 0 { // every write to one that is gone fails, at the latest the next heartbeat
		lib.Put("first", func(*source.History) {})
	}
	listen(t, address, "/v1/events", "").next(t)
	stop()
}
