package web

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

// serveRoute is the handler of a route. It answers with the result of the route, or with an error.
func (s *Server) serveRoute(r route.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Body = http.MaxBytesReader(w, q.Body, cmp.Or(r.Upload, r.Object, route.MaxBody))
		ctx, err := s.admit(r, w, q)
		if err == nil {
			q = q.WithContext(ctx)
			err = s.respond(r, w, q)
		}
		if err != nil {
			// the time of the request may be over
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.Limits.Write))
			s.problem(w, q, err)
		}
	})
}

// admit checks the scope of a request, whose context it returns with the caller, and gives a route that takes long its
// time.
func (s *Server) admit(r route.Route, w http.ResponseWriter, q *http.Request) (context.Context, error) {
	ctx, err := s.Tokens.Allow(q.Context(), q, r.Scope)
	if err != nil || r.Timeout == 0 {
		return ctx, err
	}
	if r.Upload == 0 { // the body has no more time than any other
		if err := request.Buffer(q); err != nil {
			return nil, err
		}
	}
	rc, end := http.NewResponseController(w), time.Now().Add(r.Timeout)
	_, _ = rc.SetReadDeadline(end), rc.SetWriteDeadline(end) // a recorder has none
	return ctx, nil
}

// respond writes the result of a route.
func (s *Server) respond(r route.Route, w http.ResponseWriter, q *http.Request) error {
	switch {
	case r.Stream != nil:
		return r.Stream(w, q)
	case r.Events != nil:
		return r.Events(q, func() (stream.Sink, error) { return s.streams.Open(w) })
	}
	v, err := r.Handle(q)
	if err != nil {
		return err
	}
	if r.Status == 0 {
		return answer.Write(w, q, v)
	}
	w.Header().Set("Content-Type", answer.JSON)
	w.Header().Set("Cache-Control", "no-store")
	if r.Location != nil {
		w.Header().Set("Location", r.Location(v))
	}
	w.WriteHeader(r.Status)
	_ = answer.Encode(w, v) // the reader is gone
	return nil
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
