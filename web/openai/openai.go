// Package openai answers the part of OpenAI's HTTP interface that generates text: /v1/models, /v1/completions and
// /v1/chat/completions, whole or as a stream of events, so that programs written for it talk to a model of ours.
//
// It knows the interface and no model: a Model continues prompts. A parameter that no Model has, such as tools or
// penalties, is refused by name, not ignored.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/starling-network/starling/web/openai/strategy"
)

// Model is one or several models that continue texts. It is used by many goroutines.
type Model interface {
	// Models lists what requests may name.
	Models() []Info
	// Prompt renders a conversation as the text that the assistant continues, and the strings that end its turn.
	Prompt(model string, conversation []Message) (prompt string, stops []string, err error)
	// Generate continues a prompt and gives emit the text piece by piece. It ends when ctx does. The error wraps ErrModel,
	// ErrBusy, ErrTooLong or ErrRequest if the request is to blame, or is that of emit or ctx.
	Generate(ctx context.Context, r Request, emit func(Piece) error) (Result, error)
}

// Errors of a Model.
var (
	ErrModel   = errors.New("there is no such model")
	ErrBusy    = errors.New("too many requests wait")
	ErrTooLong = errors.New("the prompt is longer than the model's context")
	ErrRequest = errors.New("the request has no meaning")
)

// Info is a model that requests may name.
type Info struct {
	Name    string
	Created time.Time
	State   string // identifies the weights: the same request with the same seed gives the same text while it stays
}

// Message is one turn of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// Request is one text to be continued.
type Request struct {
	Model       string
	Prompt      string
	Tokens      []int32   // the prompt, if it was given as tokens
	Messages    []Message // the conversation of which Prompt is made; nil: it was not given as one
	Max         int       // tokens to add; 0 is as many as the context holds
	Temperature float64
	TopP        float64
	Seed        uint64
	Stops       []string
	Likely      int // likeliest tokens that are wanted with each token; -1: no probabilities

	// nil: one text. With it, Prompt and the stops of its template are left out where Messages are given.
	Strategy *strategy.Options
}

// Piece is what a text has more: whole characters, and the tokens behind them if probabilities are wanted.
type Piece struct {
	Text   string
	Tokens []Token
}

// Token is a token and how likely it was.
type Token struct {
	Text   string
	Log    float64
	Likely []Token // without their own Likely
}

// Result is what became of a text.
type Result struct {
	PromptTokens int
	Tokens       int
	Finish       string          // stop or length
	Trace        *strategy.Trace // of a request with a Strategy
	Drawn        *Drawn          // nil: the answer cannot be checked
}

// Drawn is an answer as it was drawn, so that it can be checked.
type Drawn struct {
	Prompt, Answer    []int32
	Asked             int    // tokens, at most
	Stopped           bool   // the last token is one that ends texts
	Temperature, TopP uint32 // millionths
	Seed              uint64
}

// Config holds the access rules and the limits of the server.
type Config struct {
	Token string // bearer token that requests must carry; "" is none
	// names, besides those of the loopback, that a browser may know the server by; nil with a Token: any
	Hosts   []string
	Rest    http.Handler  // answers requests outside of this interface, behind the same guard; nil: none
	Timeout time.Duration // with a client that does not read what it asked for

	Public  bool         // it goes by any name: requests need no trust of a browser, such as those that are paid
	Origins []string     // whose pages may ask from a browser, such as https://chat.example; "*" is any
	Watch   bool         // answer /, /health and /metrics, too: the server is not a part of another
	Health  func() error // why no text can be written; nil: it is not known

	Strategies bool         // the model finds answers by the Strategy of a request
	Log        *slog.Logger // of requests; nil: nowhere
}

// Limits of a request.
const (
	maxBody    = 1 << 20
	maxPrompts = 16
	maxChoices = 8
	maxStops   = 4
	maxLikely  = 20
)

// Server is the handler. It is made by New.
type Server struct {
	model  Model
	config Config
	mux    *http.ServeMux
	counts counts
}

// New returns a handler of the paths under /v1 that this package names.
func New(m Model, c Config) *Server {
	s := &Server{model: m, config: c, mux: http.NewServeMux()}
	if s.config.Timeout == 0 {
		s.config.Timeout = 30 * time.Second
	}
	s.mux.HandleFunc("GET /v1/models", s.models)
	s.mux.HandleFunc("GET /v1/models/{name...}", s.oneModel)
	s.mux.HandleFunc("POST /v1/completions", s.completions)
	s.mux.HandleFunc("POST /v1/chat/completions", s.chat)
	if c.Rest != nil {
		s.mux.Handle("/", c.Rest)
	}
	if c.Watch {
		s.mux.HandleFunc("GET /{$}", s.root)
		s.mux.HandleFunc("GET /health", s.health)
		s.mux.HandleFunc("GET /metrics", s.metrics)
	}
	s.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, &refusal{status: http.StatusNotFound, Code: "unknown_url",
			Message: "Unknown request URL: " + r.Method + " " + r.URL.Path + ". There are " + interfaces + "."})
	})
	return s
}

// interfaces are the addresses below /v1.
const interfaces = "GET /v1/models, POST /v1/completions and POST /v1/chat/completions"

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	watched, done := s.watch(w, r)
	defer done()
	if s.preflight(watched, r) {
		return
	}
	if err := s.admit(r); err != nil {
		refuse(watched, err)
		return
	}
	r.Body = http.MaxBytesReader(watched, r.Body, maxBody)
	s.mux.ServeHTTP(watched, r)
}

type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func object(i Info) modelObject {
	return modelObject{ID: i.Name, Object: "model", Created: i.Created.Unix(), OwnedBy: "starling"}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}{Object: "list", Data: []modelObject{}}
	for _, m := range s.model.Models() {
		list.Data = append(list.Data, object(m))
	}
	reply(w, http.StatusOK, list)
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) {
	info, err := s.named(r.PathValue("name"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, object(info))
}

// named is the model that a request names. One that names none is refused, as OpenAI does: its answer would depend on
// the models that happen to be served.
func (s *Server) named(name string) (Info, error) {
	if name == "" {
		return Info{}, invalid("model", "missing_required_parameter",
			"You must provide a model parameter. GET /v1/models lists the models.")
	}
	for _, m := range s.model.Models() {
		if m.Name == name {
			return m, nil
		}
	}
	return Info{}, &refusal{status: http.StatusNotFound, Code: "model_not_found", Param: "model",
		Message: "The model `" + name + "` does not exist. GET /v1/models lists those that do."}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that is gone hears nothing
}
