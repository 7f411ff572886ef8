// Package web is the HTTP server that people and programs look at runs and networks through: the REST API under /v1,
// its streams of events, the same operations by gRPC, and the dashboard, a page of hand-written modules that reads the
// same API.
//
// It shows what its sources tell and computes no result: what a run is, is in a History; a folder of runs, a network or
// a process that trains are sources behind small interfaces, implemented in node/. A reader that is slow, hangs or
// vanishes costs a time-out and a connection; nothing in the server waits for one, and no source ever waits for the
// server. It binds where it is told, and guards itself as if a stranger's page were open in the same browser.
package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/openai"
)

// ErrNotFound is what a source returns for what it does not know.
var ErrNotFound = errors.New("web: there is no such thing")

// Runs is where runs are known: a folder of them, or a network. Its methods are called concurrently, often, and are
// expected to answer from memory.
type Runs interface {
	// List returns all runs, the latest first.
	List(ctx context.Context) ([]api.Job, error)
	// History of a run, or ErrNotFound.
	History(ctx context.Context, id string) (*History, error)
	// Log returns at most limit bytes of whole lines of a run's log from an offset; a negative offset counts from the end.
	Log(ctx context.Context, id string, from int64, limit int) (api.Log, error)
	// Files of a run: those of the model that it left, none while it is not over, then others.
	Files(ctx context.Context, id string) ([]api.File, error)
	// Open opens one of these files.
	Open(ctx context.Context, id, name string) (io.ReadSeekCloser, api.File, error)
}

// History is what is known of a run at one moment. Nobody changes it.
type History struct {
	Version  uint64 // another with every change
	Job      api.Job
	Metrics  []api.Metric
	Lineage  []api.Checkpoint
	Receipts []api.Receipt
	Disputes []api.Dispute
	Samples  []api.Sample
	Links    []api.Link // of members, as far as it is known who fetched from whom
}

// Network is a chain, as one of its validators sees it.
type Network interface {
	Overview(ctx context.Context) (api.Network, error)
	Account(ctx context.Context, address string) (api.Account, error)
	// Blocks returns at most limit blocks below a height, the latest first, and below which height more are asked for,
	// 0 if there are none; before 0 means from the latest on. Of busy ones, which have transactions, a page may be
	// empty and not the last.
	Blocks(ctx context.Context, before int64, limit int, busy bool) (list []api.Block, next int64, err error)
	// Tx is a transaction by its hash, in the block at a height, or, for height 0, in one of the latest.
	Tx(ctx context.Context, hash string, height int64) (api.Tx, error)
}

// Launcher starts jobs.
type Launcher interface {
	Plan(ctx context.Context, spec api.Spec) (api.Plan, error)
	// Submit returns the run of a job, which need not have begun; the same key, if it is not empty, gives the same run,
	// and has one that stopped go on.
	Submit(ctx context.Context, key string, s api.Submission) (id string, err error)
	// Cancel stops a run, or fails with ErrNotFound. One that has stopped may be cancelled again.
	Cancel(ctx context.Context, id string) error
	// Pause stops a run, or fails with ErrNotFound. It goes on when it is submitted again.
	Pause(ctx context.Context, id string) error
}

// Files keeps files of examples that models are tuned with.
type Files interface {
	// List returns all files, the latest first.
	List() ([]api.FileObject, error)
	// Keep reads a file to its end and keeps it; the error wraps openai.ErrExamples where it is no file of examples.
	Keep(name string, r io.Reader) (api.FileObject, error)
	// Open opens a file, or fails with ErrNotFound.
	Open(id string) (io.ReadSeekCloser, api.FileObject, error)
	// Remove removes a file, or fails with ErrNotFound.
	Remove(id string) error
}

// Tuner writes the jobs that tune models.
type Tuner interface {
	// Job returns the job that a request asks for, or a *Failure if the request is to blame.
	Job(r api.FineTuningRequest) (api.Spec, error)
	// Request returns what a run was asked for, with all that it left open, or fails with ErrNotFound if it tunes nothing.
	Request(run string) (api.FineTuningRequest, error)
	// Remove removes the weights of a model that a job tuned, and keeps the records of the job, or fails with ErrNotFound.
	Remove(model string) error
}

// Config is what a server serves. Runs is needed; the rest may be missing.
type Config struct {
	Runs     Runs
	Network  Network
	Launcher Launcher
	Files    Files
	Tuner    Tuner
	Models   openai.Model // that can be asked
	Tokens   *Tokens      // who may do what; nil: whoever reaches the server may do everything
	Hosts    []string     // names by which the server is reached, beside those of the loopback and addresses
	Version  api.Version
	Log      *slog.Logger // nil: nowhere

	Poll      time.Duration // between looks at a source that somebody follows; 0: half a second
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
	handler http.Handler
	mux     *http.ServeMux
	grpc    *grpc.Server
	started time.Time
	writer  http.Handler // of texts; nil without Models
	stats   stats
	rendered
	spec func() ([]byte, error) // openapi.json

	mu    sync.Mutex
	feeds map[string]*feed
	quit  chan struct{}
}

// New returns a server.
func New(c Config) *Server {
	if c.Poll == 0 {
		c.Poll = 500 * time.Millisecond
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.Streams == 0 {
		c.Streams = 1000
	}
	c.Limits = Limits{cmp.Or(c.Limits.Header, headerPatience), cmp.Or(c.Limits.Body, bodyPatience),
		cmp.Or(c.Limits.Write, writePatience)}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Version.API, c.Version.Submits, c.Version.Network, c.Version.Auth = "v1", c.Launcher != nil, c.Network != nil,
		c.Tokens != nil
	s := &Server{Config: c, started: time.Now(), feeds: map[string]*feed{}, quit: make(chan struct{})}
	s.spec = sync.OnceValues(func() ([]byte, error) { return openAPI(routes, c.Version.Version) })
	if c.Models != nil {
		s.writer = openai.New(c.Models, openai.Config{Hosts: c.Hosts, Timeout: c.Limits.Write})
	}
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, s.route(r))
	}
	mux.Handle("/", s.pages())
	s.mux, s.handler = mux, s.guard(mux)
	s.grpc = s.newGRPC()
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		s.serveGRPC(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// Limits of connections. A request that does not come to its end, or whose answer nobody reads, ends with them.
const (
	headerPatience  = 5 * time.Second
	bodyPatience    = 20 * time.Second
	writePatience   = 20 * time.Second
	planPatience    = 5 * time.Minute // data is read and tokenized for it
	writingPatience = time.Minute     // until the first of a text is sent; a model may have to be loaded
	idlePatience    = 2 * time.Minute
	pingAfter       = 30 * time.Second // of silence on a connection by HTTP/2
	maxHeader       = 16 << 10
	maxBody         = 1 << 20
	maxConnections  = 4096
	maxStreams      = 100 // requests at once of a connection by HTTP/2
)

// Serve answers on a listener until the context ends; streams end with it. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: s.Limits.Header, ReadTimeout: s.Limits.Body, IdleTimeout: idlePatience,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: s.Limits.Write,
			WriteByteTimeout: s.Limits.Write},
	}
	h.Protocols.SetHTTP1(true)
	h.Protocols.SetUnencryptedHTTP2(true) // for gRPC: a client that knows that it wants it says so with its first bytes
	stop := context.AfterFunc(ctx, func() {
		s.Stop()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if h.Shutdown(patience) != nil {
			_ = h.Close() // whoever is left has had its second
		}
	})
	defer stop()
	go func() { _, _ = s.Runs.List(ctx) }() // long runs are read now, so that the first who looks does not wait for it
	err := h.Serve(bounded(l, maxConnections))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Stop ends all streams. The server answers no more of them.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.quit:
	default:
		close(s.quit)
	}
}

// bounded accepts so many connections at once; further ones wait in the system's queue.
func bounded(l net.Listener, n int) net.Listener {
	return &boundedListener{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type boundedListener struct {
	net.Listener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &boundedConn{Conn: c, release: sync.OnceFunc(func() { <-b.free })}, nil
}

func (b *boundedListener) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type boundedConn struct {
	net.Conn
	release func()
}

func (c *boundedConn) Close() error {
	c.release()
	return c.Conn.Close()
}
