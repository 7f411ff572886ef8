package tinker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/body"
	"github.com/starling-network/starling/web/tinker/clients"
	"github.com/starling-network/starling/web/tinker/journal"
	"github.com/starling-network/starling/web/tinker/work"
)

// Config holds the access rules and the limits of a server.
type Config struct {
	Tokens *access.Tokens // that requests must carry, and that share the server; nil: none
	Hosts  access.Hosts   // names of the server
	Models int            // that are trained at once, at most
	Log    *slog.Logger   // of failures; nil: nowhere
	Notice string         // for clients that begin: which machines do their work

	wait time.Duration // for a result that is not there; 0: patience
}

// patience is how long retrieve_future waits: clients give up after 45 seconds.
const patience = 30 * time.Second

// Prefix begins every address of the server.
const Prefix = "/api/v1/"

// Server is the handler. It is made by New.
type Server struct {
	engine  Engine
	base    Base
	config  Config
	clients *clients.Table[Create]
	queue   *work.Queue
	all     []operation
	logs    *journal.Logs
	ctx     context.Context // until which work is done
}

// A request is the body of a client's, which it must still be waiting for.
type request struct {
	ctx  context.Context
	by   access.Caller
	body []byte
	rest string // of the address
}

// New returns a handler, and does the work that clients ask for until ctx ends.
func New(ctx context.Context, e Engine, c Config) *Server {
	if c.wait == 0 {
		c.wait = patience
	}
	tokens := max(1, c.Tokens.Number(access.Submit))
	s := &Server{engine: e, base: e.Base(), config: c, clients: clients.New[Create](c.Models, tokens, time.Now),
		queue: work.New(c.Log, tokens), logs: journal.NewLogs(), ctx: ctx}
	s.all = operations(s)
	go s.queue.Run(ctx)
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	value, err := s.answer(w, r)
	status, kind := http.StatusOK, "application/json"
	if err != nil {
		e := failure.Of(err)
		if e.Code == failure.Internal().Code && s.config.Log != nil {
			s.config.Log.Error("failed", "path", r.URL.Path, "error", err)
		}
		switch e.Status {
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
		}
		status, kind, value = e.Status, "application/problem+json", e.Problem("")
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a client that is gone hears nothing
}

// answer makes the answer to a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := s.config.Hosts.Refuse(r); err != nil {
		return nil, err
	}
	o, rest, err := find(s.all, r)
	if err != nil {
		return nil, err
	}
	ctx, err := s.config.Tokens.Allow(r.Context(), r, o.scope())
	if err != nil {
		return nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	text, err := body.Read(r)
	if err != nil {
		return nil, err
	}
	// The result may take longer than a body may.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a recorder has none
	return o.handle(request{ctx, access.CallerOf(ctx), text, rest})
}

// find finds the operation that answers a request, and the rest of its address.
func find(all []operation, r *http.Request) (o operation, rest string, err error) {
	name, below := strings.CutPrefix(r.URL.Path, Prefix)
	for _, o := range all {
		first, _, rests := strings.Cut(o.name, "{")
		after, begins := strings.CutPrefix(name, first)
		switch {
		case !below || !begins || !rests && after != "":
		case r.Method != o.method:
			return o, "", failure.New(http.StatusMethodNotAllowed, "METHOD_UNKNOWN", r.URL.Path+" takes "+o.method,
				"send "+o.method)
		default:
			return o, after, nil
		}
	}
	return o, "", failure.New(http.StatusNotFound, "UNKNOWN_URL", "there is nothing at "+r.URL.Path,
		"docs/serving.md lists the addresses below "+Prefix)
}

// A job is a request as work for a model. It is done under the identifier of its future.
type job struct {
	model  string
	number *int64 // of the request; nil: it has none
	do     func(id string) (any, error)
	from   []string // other models of the client, whose weights it reads
}

// lines are the models after whose earlier work a job is done.
func (j job) lines() []string {
	return append([]string{j.model}, j.from...)
}

// submits returns the operation that puts the jobs of requests into the queue, once for each sequence number of a
// model.
func submits(s *Server, name string, read func(r request) (job, error)) func(r request) (any, error) {
	return func(r request) (any, error) {
		j, err := read(r)
		if err != nil {
			return nil, err
		}
		id, err := s.clients.Once(j.model, r.by.Token, j.number, r.body, func() (string, error) {
			if l := s.logs.Of(j.model); l != nil && replays[name] != nil {
				return addLogged(s, l, name, r, j)
			}
			return s.add(r, j.lines(), j.do)
		})
		if err != nil {
			return nil, err
		}
		return promise(id, j.model), nil
	}
}

// add puts work into the queue and returns the identifier of its future.
func (s *Server) add(r request, lines []string, do func(id string) (any, error)) (string, error) {
	id := clients.NewID("request")
	_, err := s.queue.Add(work.Piece{ID: id, Owner: r.by.Token, Bytes: len(r.body), Lines: lines,
		Do: func() (any, error) { return do(id) }})
	return id, err
}

// promise is the answer to a request whose result is to be retrieved.
func promise(id, model string) any {
	answer := map[string]any{"request_id": id, "future_id": id, "status": "pending"}
	if model != "" {
		answer["model_id"] = model
	}
	return answer
}

// release has the engine drop models.
func release(s *Server, models []string) {
	for _, name := range models {
		s.queue.Always(work.Piece{ID: clients.NewID("request"), Lines: []string{name},
			Do: func() (any, error) { s.forget(name); return nil, nil }})
	}
}

func (s *Server) retrieve(r request) (any, error) {
	var q futureRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	f, err := s.queue.Find(q.ID, r.by.Token)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(s.config.wait)
	defer patience.Stop()
	select {
	case <-f.Done:
		return f.Answer(), nil
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	case <-patience.C:
		return map[string]any{"type": "try_again", "request_id": f.ID, "queue_state": "active"}, nil
	}
}
