package web

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// stats is what the server counts of itself.
type stats struct {
	requests [6]atomic.Uint64 // by the first digit of the status
	nanos    atomic.Int64
	streams  atomic.Int64
	events   atomic.Uint64
	refused  atomic.Uint64 // streams
	late     atomic.Uint64 // streams that ended because nobody read
}

func (s *stats) request(status int, took time.Duration) {
	s.requests[min(max(status/100, 0), 5)].Add(1)
	s.nanos.Add(int64(took))
}

// prometheus answers in the text format of Prometheus.
func (s *Server) prometheus(w http.ResponseWriter, r *http.Request) error {
	var b strings.Builder
	metric := func(name, kind, help string, value any) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, value)
	}
	b.WriteString("# HELP starling_web_requests_total Requests that were answered, by the class of their status.\n# " +
		"TYPE starling_web_requests_total counter\n")
	for class := 1; class <= 5; class++ {
		fmt.Fprintf(&b, "starling_web_requests_total{status=\"%dxx\"} %d\n", class, s.stats.requests[class].Load())
	}
	metric("starling_web_request_seconds_total", "counter", "Time that requests took, streams among them.",
		float64(s.stats.nanos.Load())/1e9)
	metric("starling_web_streams", "gauge", "Event streams that are open.", s.stats.streams.Load())
	metric("starling_web_events_total", "counter", "Events that were sent.", s.stats.events.Load())
	metric("starling_web_streams_refused_total", "counter",
		"Event streams that were refused because there were too many.", s.stats.refused.Load())
	metric("starling_web_streams_late_total", "counter", "Event streams that were ended because nobody read them.",
		s.stats.late.Load())
	jobs, err := s.Runs.List(r.Context())
	if err != nil {
		return err
	}
	states := map[string]int{}
	for _, j := range jobs {
		states[j.State]++
	}
	b.WriteString("# HELP starling_web_jobs Runs that are known, by state.\n# TYPE starling_web_jobs gauge\n")
	for _, state := range []string{"queued", "running", "stopped", "done", "halted", "failed"} {
		fmt.Fprintf(&b, "starling_web_jobs{state=%q} %d\n", state, states[state])
	}
	return send(w, r, plainText+"; version=0.0.4; charset=utf-8", []byte(b.String()))
}
