package tinker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/work"
)

// Config holds the access rules and the limits of a server.
type Config struct {
	Tokens *access.Tokens // that requests must carry; nil: none
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
	engine   Engine
	base     Base
	config   Config
	sessions *sessions
	queue    *work.Queue
	posts    map[string]func(r request) (any, error)
	gets     map[string]func(r request) (any, error)
}

// A request is the body of a client's, which it must still be waiting for.
type request struct {
	ctx  context.Context
	body []byte
	rest string // of the address
}

// New returns a handler, and does the work that clients ask for until ctx ends.
func New(ctx context.Context, e Engine, c Config) *Server {
	if c.wait == 0 {
		c.wait = patience
	}
	s := &Server{engine: e, base: e.Base(), config: c, sessions: newSessions(c.Models, time.Now), queue: work.New(c.Log)}
	s.gets = map[string]func(r request) (any, error){"healthz": healthz,
		"get_server_capabilities": s.capabilities, "samplers/": s.describeSampler}
	s.posts = map[string]func(r request) (any, error){"client/config": clientConfig, "telemetry": telemetry,
		"create_session": s.createSession, "session_heartbeat": s.heartbeat, "create_sampling_session": s.createSampler,
		"create_model": s.createModel, "get_info": s.info, "unload_model": s.unload, "forward": s.pass,
		"forward_backward": s.pass, "optim_step": s.step, "save_weights": s.save(Training),
		"save_weights_for_sampler": s.save(Sampling),
		"load_weights":             s.load, "weights_info": s.weightsInfo, "asample": s.asample, "sample": s.sample,
		"retrieve_future": s.retrieve}
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
	handle, rest, err := s.route(r)
	if err != nil {
		return nil, err
	}
	if key := r.Header.Get("X-API-Key"); key != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+key) // as the published client sends it
	}
	scope := access.Submit
	if r.URL.Path == Prefix+"healthz" {
		scope = "" // a look whether the server is well needs no token
	}
	ctx, err := s.config.Tokens.Allow(r.Context(), r, scope)
	if err != nil {
		return nil, err
	}
	if e := r.Header.Get("Content-Encoding"); e != "" || strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		return nil, failure.New(http.StatusUnsupportedMediaType, "FORM_UNSUPPORTED",
			"the server reads JSON that is not compressed", "use a client of the JSON form of the interface")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, failure.Of(err)
	}
	// The result may take longer than a body may.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // a recorder has none
	return handle(request{ctx, body, rest})
}

// route finds what answers a request, and the rest of its address.
func (s *Server) route(r *http.Request) (handle func(r request) (any, error), rest string, err error) {
	name, _ := strings.CutPrefix(r.URL.Path, Prefix)
	table, method := s.posts, http.MethodPost
	if _, ok := s.posts[name]; !ok {
		table, method = s.gets, http.MethodGet
		if after, ok := strings.CutPrefix(name, "samplers/"); ok {
			name, rest = "samplers/", after
		}
	}
	handle, ok := table[name]
	switch {
	case !ok || !strings.HasPrefix(r.URL.Path, Prefix):
		return nil, "", failure.New(http.StatusNotFound, "UNKNOWN_URL", "there is nothing at "+r.URL.Path,
			"docs/serving.md lists the addresses below "+Prefix)
	case r.Method != method:
		return nil, "", failure.New(http.StatusMethodNotAllowed, "METHOD_UNKNOWN", r.URL.Path+" takes "+method,
			"send "+method)
	}
	return handle, rest, nil
}

// submit puts work for a model into the queue, once for each sequence number of the model.
func (s *Server) submit(r request, name string, number *int64, do func() (any, error)) (any, error) {
	id, err := s.sessions.once(name, number, sha256.Sum256(r.body), func() (string, error) { return s.add(r, do) })
	if err != nil {
		return nil, err
	}
	return promise(id, name), nil
}

// add puts work into the queue and returns the identifier of its future.
func (s *Server) add(r request, do func() (any, error)) (string, error) {
	f, err := s.queue.Add(newID("request"), len(r.body), do)
	if err != nil {
		return "", err
	}
	return f.ID, nil
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
func (s *Server) release(models []string) {
	for _, name := range models {
		s.queue.Always(newID("request"), func() (any, error) { s.engine.Unload(name); return nil, nil })
	}
}

func (s *Server) retrieve(r request) (any, error) {
	var q futureRequest
	if err := decode(r.body, &q); err != nil {
		return nil, err
	}
	f, err := s.queue.Find(q.ID)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(s.config.wait)
	defer patience.Stop()
	select {
	case <-f.Done:
		return result(f), nil
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	case <-patience.C:
		return map[string]any{"type": "try_again", "request_id": f.ID, "queue_state": "active"}, nil
	}
}

// result is what a future became: the result, or an error as the published client reads it.
func result(f *work.Future) any {
	if f.Err == nil {
		return f.Result
	}
	category := "user"
	if f.Err.Status >= http.StatusInternalServerError {
		category = "server"
	}
	return map[string]any{"error": f.Err.Detail, "category": category, "code": f.Err.Code, "fix": f.Err.Fix}
}

// randomSeed is the seed of continuations for which a client gives none.
func randomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 1
}
