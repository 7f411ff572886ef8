// Package clients knows the clients of a server of training loops: their sessions, the models and the sampling sessions
// of each, and the requests that were made under a number. It knows no weights and does no work.
package clients

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// Limits of sessions.
const (
	maxSessions = 64   // at one token; each of several has a share
	minSessions = 16   // that a token may have, however many there are
	maxSamplers = 4096 // sampling sessions, shared as sessions are; the oldest of a token are dropped
	maxSequence = 1024 // requests of a model of which a repetition is recognised
	idleAfter   = 10 * time.Minute
)

// Table has the clients of a server. C says how a model was created. A session, and what is in it, is known to requests
// with the token alone with which it began.
type Table[C any] struct {
	models int              // at most
	tokens int              // that share the places
	now    func() time.Time // of the machine

	mu       sync.Mutex
	sessions map[string]*session
	running  map[string]*model[C]
	samplers map[string]sampler
	order    map[string][]string // samplers of each token, the oldest first
}

type session struct {
	token string
	seen  time.Time
}

type sampler struct{ token, path string }

// A model that is trained, or is about to be.
type model[C any] struct {
	session string
	create  C
	asked   map[int64]asked // requests by their sequence number
	numbers []int64         // of asked, in the order in which they came
}

// asked is a request that was made.
type asked struct {
	digest string // of its body
	id     string // of its future
}

// New returns a table of as many models at most, which reads the time by now. Each of some tokens may have an equal
// share of the places, and at least one.
func New[C any](models, tokens int, now func() time.Time) *Table[C] {
	return &Table[C]{models: models, tokens: tokens, now: now, sessions: map[string]*session{},
		running: map[string]*model[C]{}, samplers: map[string]sampler{}, order: map[string][]string{}}
}

// NewID returns a name that no other server has given.
func NewID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return kind + "-" + hex.EncodeToString(b[:])
}

// NewSeed returns the seed of a continuation for which a client gives none.
func NewSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 1
}

func unknown(code, kind string) error {
	return failure.New(http.StatusNotFound, code, "the server has no such "+kind,
		"create it again; silent sessions may be ended after ten minutes, and a server that was started again has those "+
			"models alone whose steps a network takes")
}

func full(code, kind string) error {
	return &failure.Error{Status: http.StatusTooManyRequests, Code: code, Detail: "the server has as many " + kind +
		" as it, or the token, may have", Fix: "unload a model, or wait until another client is silent for ten minutes",
		Retry: time.Minute}
}

// Begin begins a session for a token. It returns the models of sessions that it ends.
func (t *Table[C]) Begin(token string) (id string, ended []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := func() (n int) {
		for _, s := range t.sessions {
			if s.token == token {
				n++
			}
		}
		return n
	}
	most := max(minSessions, maxSessions/t.tokens)
	if own() >= most {
		ended = t.expire(&token)
	}
	if own() >= most {
		return "", ended, full("SESSIONS_FULL", "sessions")
	}
	id = NewID("session")
	t.sessions[id] = &session{token, t.now()}
	return id, ended, nil
}

// expire ends silent sessions, of a token or, for nil, of all, and returns their models.
func (t *Table[C]) expire(token *string) (ended []string) {
	for id, s := range t.sessions {
		if t.now().Sub(s.seen) < idleAfter || token != nil && s.token != *token {
			continue
		}
		delete(t.sessions, id)
		for name, m := range t.running {
			if m.session == id {
				delete(t.running, name)
				ended = append(ended, name)
			}
		}
	}
	slices.Sort(ended)
	return ended
}

// Touch notes that the client of a session is there.
func (t *Table[C]) Touch(id, token string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.touch(id, token)
}

func (t *Table[C]) touch(id, token string) error {
	s := t.sessions[id]
	if s == nil || s.token != token {
		return unknown("SESSION_UNKNOWN", "session")
	}
	s.seen = t.now()
	return nil
}

// Create adds a model to a session.
func (t *Table[C]) Create(id, token string, c C) (name string, ended []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.touch(id, token); err != nil {
		return "", nil, err
	}
	own := func() (n int) {
		for _, m := range t.running {
			if s := t.sessions[m.session]; s != nil && s.token == token {
				n++
			}
		}
		return n
	}
	share := max(1, t.models/t.tokens)
	if own() >= share {
		ended = t.expire(&token)
	}
	if len(t.running) >= t.models {
		ended = append(ended, t.expire(nil)...)
	}
	if len(t.running) >= t.models || own() >= share {
		return "", ended, full("MODELS_FULL", "models")
	}
	name = NewID("model")
	t.running[name] = &model[C]{session: id, create: c, asked: map[int64]asked{}}
	return name, ended, nil
}

// Forget removes a model.
func (t *Table[C]) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, name)
}

// find returns a model, and notes that its client is there.
func (t *Table[C]) find(name, token string) (*model[C], error) {
	m := t.running[name]
	if m == nil || t.touch(m.session, token) != nil {
		return nil, unknown("MODEL_UNKNOWN", "model")
	}
	return m, nil
}

// Find returns how a model was created, and notes that its client is there.
func (t *Table[C]) Find(name, token string) (c C, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, err := t.find(name, token)
	if err == nil {
		c = m.create
	}
	return c, err
}

// Own is a model of a token as a list; nil: the token has no such model. A client names models of others, too, whose
// work must not wait for its own.
func (t *Table[C]) Own(name, token string) []string {
	if _, err := t.Find(name, token); err != nil {
		return nil
	}
	return []string{name}
}

// Once makes a future of a request to a model, or returns that of the same request, made before under the same number:
// its identifier.
func (t *Table[C]) Once(name, token string, number *int64, body []byte, add func() (string, error)) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, err := t.find(name, token)
	switch {
	case err != nil:
		return "", err
	case number == nil:
		return add()
	}
	digest := Digest(body)
	if before, ok := m.asked[*number]; ok {
		if before.digest != digest {
			return "", failure.New(http.StatusConflict, "SEQUENCE_REUSED", "another request was made under this seq_id",
				"count seq_id up")
		}
		return before.id, nil
	}
	id, err := add()
	if err != nil {
		return "", err
	}
	m.note(*number, asked{digest, id})
	return id, nil
}

func (m *model[C]) note(number int64, a asked) {
	m.asked[number] = a
	if m.numbers = append(m.numbers, number); len(m.numbers) > maxSequence {
		delete(m.asked, m.numbers[0])
		m.numbers = m.numbers[1:]
	}
}

// Digest is that of the body of a request, by which a repetition is recognised.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Restore adds a model of a server before this one, with its session.
func (t *Table[C]) Restore(name, id, token string, c C) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[id] = &session{token, t.now()}
	t.running[name] = &model[C]{session: id, create: c, asked: map[int64]asked{}}
}

// Note notes the request that was made to such a model under a number, with the digest of its body and the identifier
// of its future.
func (t *Table[C]) Note(name string, number int64, digest, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.running[name]; m != nil {
		m.note(number, asked{digest, id})
	}
}

// Sample begins a sampling session of a token with the weights at a path; "": those of the base model.
func (t *Table[C]) Sample(token, path string) (id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id = NewID("sampler")
	t.samplers[id] = sampler{token, path}
	order := append(t.order[token], id)
	if len(order) > max(minSessions, maxSamplers/t.tokens) {
		delete(t.samplers, order[0])
		order = order[1:]
	}
	t.order[token] = order
	return id
}

// Sampler returns the path of the weights of a sampling session of a token.
func (t *Table[C]) Sampler(id, token string) (path string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.samplers[id]
	if !ok || s.token != token {
		return "", unknown("SAMPLER_UNKNOWN", "sampling session")
	}
	return s.path, nil
}
