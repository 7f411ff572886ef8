// Package web is the HTTP server through which people and programs look at runs and networks: it mounts the operations
// of the packages below it under /v1 and as gRPC, guards them, and serves the dashboard, a page of hand-written modules
// that reads the same API.
//
// It shows what its sources report and computes no result. A folder of runs, a network or a process that trains are
// sources behind the interfaces of web/source, implemented in node/. A reader that is slow, hangs or vanishes costs a
// time-out and a connection; the server waits for none, and no source waits for the server. It refuses requests that a
// page of another origin in the same browser makes.
package web

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/answer"
	"github.com/starling-network/starling/web/examples"
	"github.com/starling-network/starling/web/finetune"
	"github.com/starling-network/starling/web/health"
	"github.com/starling-network/starling/web/jobs"
	"github.com/starling-network/starling/web/models"
	"github.com/starling-network/starling/web/network"
	"github.com/starling-network/starling/web/openai"
	"github.com/starling-network/starling/web/openapi"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/rpc"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/stream"
	"github.com/starling-network/starling/web/tinker"
)

// Config is what a server serves. Runs is needed; the rest may be missing.
type Config struct {
	Runs     source.Runs
	Network  source.Network
	Launcher source.Launcher
	Files    source.Files
	Tuner    source.Tuner
	Models   openai.Model   // that can be asked
	Loops    *tinker.Server // that programs lead; nil: none
	Tokens   *access.Tokens // what each client may do; nil: every client may do everything
	Hosts    access.Hosts
	Version  api.Version
	NoPages  bool         // the API without the dashboard
	Log      *slog.Logger // nil: nowhere

	Poll      time.Duration // between queries of a source that has followers; 0: half a second
	Heartbeat time.Duration // between comments on a silent stream; 0: 15 seconds
	Streams   int           // that may be open at once; 0: 1000
	Limits    Limits

	// that is free where runs are kept, not ok if that is not known; nil: it is not looked at
	Room func() (bytes int64, ok bool)
}

// Limits are how long a client may take before its connection, or its request, ends. 0 is what is usual.
type Limits struct {
	Header time.Duration // to send the header of a request; 0: 5 seconds
	Body   time.Duration // to send all of it, but an upload; 0: 20 seconds
	Write  time.Duration // to take what is written to it; 0: 20 seconds
}

// Server answers requests. It is an http.Handler.
type Server struct {
	Config
	routes  []route.Route
	handler http.Handler
	mux     *http.ServeMux
	calls   *rpc.Server
	streams *stream.Streams
	stats   stats
	spec    func() ([]byte, error) // openapi.json
}

// New returns a server.
func New(c Config) *Server {
	c = c.withDefaults()
	s := &Server{Config: c, mux: http.NewServeMux()}
	s.streams = stream.New(stream.Config{Poll: c.Poll, Heartbeat: c.Heartbeat, Timeout: c.Limits.Write, Max: c.Streams})
	checks := &health.API{Runs: c.Runs, Network: c.Network, Streams: s.streams, Room: c.Room, Started: time.Now()}
	tunings := &finetune.API{Runs: c.Runs, Launcher: c.Launcher, Tuner: c.Tuner}
	asked := &models.API{Runs: c.Runs, Models: c.Models, Tunings: tunings}
	if c.Models != nil {
		asked.Writer = openai.New(c.Models, openai.Config{Hosts: c.Hosts, Timeout: c.Limits.Write})
	}
	s.routes = slices.Concat(
		(&jobs.API{Runs: c.Runs, Launcher: c.Launcher, Network: c.Network, Streams: s.streams,
			Timeout: c.Limits.Write}).Routes(),
		asked.Routes(),
		(&network.API{Network: c.Network}).Routes(),
		(&examples.API{Files: c.Files, Tunings: tunings, Timeout: c.Limits.Write}).Routes(),
		tunings.Routes(),
		c.Loops.Routes(),
		checks.Routes(),
		s.ownRoutes())
	s.spec = sync.OnceValues(func() ([]byte, error) { return openapi.Describe(s.routes, c.Version.Version) })
	for _, r := range s.routes {
		s.mux.Handle(r.Method+" "+r.Path, s.serveRoute(r))
	}
	s.mux.Handle(tinker.Prefix, s.noLoops())
	s.mux.Handle("/", s.pages())
	s.handler = s.guard(s.mux)
	s.calls = rpc.New(rpc.Config{Routes: s.routes, Tokens: c.Tokens, Hosts: c.Hosts, Streams: s.streams, Health: checks,
		Timeout: c.Limits.Write, Count: s.stats.request, Log: c.Log})
	return s
}

// withDefaults is the configuration with default values where it has none, and with the name of the program.
func (c Config) withDefaults() Config {
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	c.Heartbeat = cmp.Or(c.Heartbeat, 15*time.Second)
	c.Streams = cmp.Or(c.Streams, 1000)
	c.Limits = Limits{cmp.Or(c.Limits.Header, headerTimeout), cmp.Or(c.Limits.Body, bodyTimeout),
		cmp.Or(c.Limits.Write, writeTimeout)}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Version.API, c.Version.Submits, c.Version.Network, c.Version.Auth = "v1", c.Launcher != nil, c.Network != nil,
		c.Tokens != nil
	return c
}

// ownRoutes are the operations of the server itself, without its health.
func (s *Server) ownRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/version", Summary: "Version of the server", Answer: api.Version{},
			Handle: func(*http.Request) (any, error) { return s.Version, nil }},
		{Method: "GET", Path: "/openapi.json", Summary: "This description",
			Handle: func(*http.Request) (any, error) {
				text, err := s.spec()
				return answer.Raw{Kind: answer.JSON, Bytes: text}, err
			}},
		{Method: "GET", Path: "/metrics", Scope: access.Read, Summary: "What the server counts, for Prometheus",
			Kinds: []string{answer.Plain}, Stream: s.prometheus},
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		s.calls.ServeHTTP(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}
