package web

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

// serveRoute is the handler of a route: it checks the scope, bounds the body and the time, and writes what the route
// returns.
func (s *Server) serveRoute(r route.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		err := s.Tokens.Allow(q, r.Scope)
		most := cmp.Or(r.Upload, route.MaxBody)
		q.Body = http.MaxBytesReader(w, q.Body, most)
		rc := http.NewResponseController(w)
		if err == nil && r.Timeout > 0 && r.Upload == 0 { // the answer takes long: the body comes as soon as any other
			err = request.Buffer(q)
		}
		if err == nil && r.Timeout > 0 {
			end := time.Now().Add(r.Timeout)
			_, _ = rc.SetReadDeadline(end), rc.SetWriteDeadline(end) // a recorder has none
		}
		if err == nil && r.Stream != nil {
			err = r.Stream(w, q)
		} else if err == nil && r.Events != nil {
			err = r.Events(q, func() (stream.Sink, error) { return s.streams.Open(w) })
		} else if err == nil {
			var v any
			if v, err = r.Handle(q); err == nil && r.Status != 0 {
				w.Header().Set("Content-Type", answer.JSON)
				w.Header().Set("Cache-Control", "no-store")
				if r.Location != nil {
					w.Header().Set("Location", r.Location(v))
				}
				w.WriteHeader(r.Status)
				_ = answer.Encode(w, v) // the reader is gone
				return
			} else if err == nil {
				err = answer.Write(w, q, v)
			}
		}
		if err != nil {
			_ = rc.SetWriteDeadline(time.Now().Add(s.Limits.Write)) // what went before took its time
			s.problem(w, q, err)
		}
	})
}

// problem answers with an error.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	s.problemAs(w, r, err, route.OpenAI(r.URL.Path))
}

// problemAs sends a failure in OpenAI's form, or as problem+json.
func (s *Server) problemAs(w http.ResponseWriter, r *http.Request, err error, openAI bool) {
	f := failure.Of(err)
	id := request.ID(r.Context())
	if f.Status >= 500 {
		s.Log.Error("request failed", "request_id", id, "method", r.Method, "path", r.URL.Path, "err", err)
	}
	kind, body := "application/problem+json", any(f.Problem(id))
	if openAI {
		kind, body = answer.JSON, f.OpenAI()
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, f.Retry.Seconds()))))
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="starling"`)
	}
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		_ = answer.Encode(w, body) // the reader is gone
	}
}
