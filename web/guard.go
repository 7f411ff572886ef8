package web

import (
	"net/http"
	"runtime/debug"
	"time"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/request"
)

// contentPolicy lets a page load what this server has, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard wraps every handler: it gives the request an identifier, refuses what neither a page of this server nor a
// program sends, bounds the time of writes, and turns a panic into an answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := request.NewID()
		r = r.WithContext(request.WithID(r.Context(), id))
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Security-Policy", contentPolicy)
		_ = http.NewResponseController(w).SetWriteDeadline(began.Add(s.Limits.Write)) // a recorder has none
		watched := &watchedWriter{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.Log.Error("panic", "request_id", id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if watched.status == 0 {
					s.problem(watched, r, failure.Internal())
				}
			}
			s.stats.request(watched.status, time.Since(began))
		}()
		if err := s.Hosts.Refuse(r); err != nil {
			s.problem(watched, r, err)
			return
		}
		next.ServeHTTP(watched, r)
	})
}

// watchedWriter remembers the status.
type watchedWriter struct {
	http.ResponseWriter
	status int
}

func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
