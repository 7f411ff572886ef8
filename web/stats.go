package web

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/web/answer"
)

// stats counts the requests of the server.
type stats struct {
	requests [6]atomic.Uint64 // by the first digit of the status
	nanos    atomic.Int64
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
	streams := s.streams.Counts()
	metric("starling_web_streams", "gauge", "Event streams that are open.", streams.Open)
	metric("starling_web_events_total", "counter", "Events that were sent.", streams.Events)
	metric("starling_web_streams_refused_total", "counter",
		"Event streams that were refused because there were too many.", streams.Refused)
	metric("starling_web_streams_late_total", "counter",
		"Event streams that were ended because their clients did not read them.",
		streams.Late)
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
	return answer.Send(w, r, answer.Plain+"; version=0.0.4; charset=utf-8", []byte(b.String()))
}
