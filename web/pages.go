package web

import (
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

//go:embed static
var static embed.FS

// pages serves the dashboard: its files, and its one page for every address that a person may be at.
func (s *Server) pages() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if below := strings.HasPrefix(r.URL.Path, "/v1/"); below && r.Method == http.MethodPost && !s.gets(r) {
			f := failure.New(http.StatusNotFound, "UNKNOWN_URL", "Unknown request URL: "+r.Method+" "+r.URL.Path,
				"see /openapi.json for those that there are")
			s.problemAs(w, r, f, true)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			s.problem(w, r, failure.New(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
				"this address does not take "+r.Method, "see /openapi.json"))
			return
		}
		if r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/") {
			s.problem(w, r, failure.ErrNotFound)
			return
		}
		if s.NoPages {
			s.problem(w, r, failure.New(http.StatusNotFound, "NO_PAGES", "this server has an API, and no pages",
				"see /openapi.json, or show the same runs with starling web"))
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if path.Ext(name) == "" {
			name = "index.html"
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			s.problem(w, r, failure.ErrNotFound)
			return
		}
		kind := mime.TypeByExtension(path.Ext(name))
		if kind == "" {
			kind = "application/octet-stream"
		}
		if err := answer.Send(w, r, kind, text); err != nil {
			s.problem(w, r, err)
		}
	})
}

// noLoops answers requests for an address of training loops that there is not.
func (s *Server) noLoops() http.Handler {
	f := failure.New(http.StatusNotFound, "UNKNOWN_URL", "there is nothing at this address, or not for this method",
		"docs/serving.md lists the addresses below "+tinker.Prefix)
	if s.Loops == nil {
		f = failure.New(http.StatusNotImplemented, "LOOPS_OFF", "the server serves no training loops",
			"start it with --loops and the folder of a model")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.problem(w, r, f) })
}

// gets reports whether the address of a request can be read: only the method is wrong then.
func (s *Server) gets(r *http.Request) bool {
	read := r.Clone(r.Context())
	read.Method = http.MethodGet
	_, pattern := s.mux.Handler(read)
	return pattern != "/"
}
