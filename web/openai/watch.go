package openai

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/starling-network/starling/web/openai/strategy"
)

// requestID is the header that names a request, in its answer and in the log.
const requestID = "X-Request-Id"

// counts is what a server counts of itself.
type counts struct {
	answers            [6]atomic.Uint64 // by the first digit of the status
	nanos              atomic.Int64
	open               atomic.Int64 // requests
	prompt, made, left atomic.Uint64
}

// watched is an answer whose status, and whose tokens, are remembered.
type watched struct {
	http.ResponseWriter
	status       int
	model        string
	prompt, made int // tokens
	left         int // stages that texts were continued without
}

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// watch gives a request an identifier, unless an earlier handler did, and counts and logs it when it is done.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) (*watched, func()) {
	began := time.Now()
	id := w.Header().Get(requestID)
	if id == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		id = "req_" + hex.EncodeToString(b[:])
		w.Header().Set(requestID, id)
	}
	out := &watched{ResponseWriter: w}
	s.counts.open.Add(1)
	return out, func() {
		took := time.Since(began)
		s.counts.open.Add(-1)
		s.counts.answers[min(max(out.status/100, 0), 5)].Add(1)
		s.counts.nanos.Add(int64(took))
		s.counts.prompt.Add(uint64(out.prompt))
		s.counts.made.Add(uint64(out.made))
		s.counts.left.Add(uint64(min(out.left, 1)))
		if s.config.Log == nil {
			return
		}
		about := []any{"request_id", id, "method", r.Method, "path", r.URL.Path, "status", out.status, "seconds",
			float64(took.Microseconds()) / 1e6}
		if out.model != "" {
			about = append(about, "model", out.model, "prompt_tokens", out.prompt, "completion_tokens", out.made)
		}
		s.config.Log.Log(context.WithoutCancel(r.Context()), slog.LevelInfo, "request", about...)
	}
}

// wrote remembers what an answer consists of.
func (a *answer) wrote(w http.ResponseWriter) {
	if out, ok := w.(*watched); ok {
		out.model, out.prompt, out.made, out.left = a.info.Name, 0, 0, len(a.left())
		for _, r := range a.results {
			out.prompt, out.made = out.prompt+r.PromptTokens, out.made+r.Tokens
		}
	}
}

// welcomes reports whether pages of an origin may ask.
func (s *Server) welcomes(origin string) bool {
	return slices.Contains(s.config.Origins, "*") || slices.Contains(s.config.Origins, origin)
}

// preflight tells a browser whether a page of another origin may read what is answered, and reports whether that was
// all it asked.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	if len(s.config.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !s.welcomes(origin) || !s.known(hostname(r.Host)) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", requestID+", Retry-After, "+strategy.HeaderLeft)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked) // a client of OpenAI's sends a dozen of its own
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// root describes the server to a person who opens its address in a browser.
func (s *Server) root(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(w, "This server continues texts, in OpenAI's form: %s.\nGET /health says whether it is well, "+
		"GET /metrics has what it counts.\n", interfaces)
}

// health says whether texts can be written.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.config.Health != nil && s.config.Health() != nil {
		reply(w, http.StatusServiceUnavailable, map[string]string{"status": "error"})
		return
	}
	reply(w, http.StatusOK, map[string]string{"status": "ok"})
}

// metrics answers in the text format of Prometheus.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	b.WriteString("# HELP starling_serve_requests_total Requests that were answered, by the class of their status.\n# " +
		"TYPE starling_serve_requests_total counter\n")
	for class := 1; class <= 5; class++ {
		fmt.Fprintf(&b, "starling_serve_requests_total{status=\"%dxx\"} %d\n", class, s.counts.answers[class].Load())
	}
	for _, m := range []struct {
		name, kind, help string
		value            any
	}{
		{"starling_serve_request_seconds_total", "counter", "Time that requests took.", float64(s.counts.nanos.Load()) / 1e9},
		{"starling_serve_requests_open", "gauge", "Requests that are being answered, this one among them.",
			s.counts.open.Load()},
		{"starling_serve_prompt_tokens_total", "counter", "Tokens of the prompts that were continued.",
			s.counts.prompt.Load()},
		{"starling_serve_completion_tokens_total", "counter", "Tokens that were written.", s.counts.made.Load()},
		{"starling_serve_left_stages_total", "counter", "Answers that leave out a stage.", s.counts.left.Load()},
	} {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", m.name, m.help, m.name, m.kind, m.name, m.value)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String())) // the reader is gone
}
