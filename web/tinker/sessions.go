package tinker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// Limits of sessions.
const (
	maxSessions = 64
	maxSamplers = 4096 // sampling sessions; the oldest are dropped
	maxSequence = 1024 // requests of a model of which a repetition is recognised
	idleAfter   = 10 * time.Minute
)

// sessions are the clients of a server, with the models and the sampling sessions of each.
type sessions struct {
	models int              // at most
	now    func() time.Time // of the machine

	mu       sync.Mutex
	seen     map[string]time.Time // by session
	running  map[string]*model
	samplers map[string]sampler
	order    []string // of samplers, the oldest first
}

// A model that is trained, or is about to be.
type model struct {
	session string
	create  Create
	asked   map[int64]asked // requests by their sequence number
	numbers []int64         // of asked, in the order in which they came
}

// asked is a request that was made.
type asked struct {
	digest [sha256.Size]byte
	id     string // of its future
}

// sampler is a sampling session: weights that it continues prompts with, nil for those of the base model.
type sampler struct{ path *Path }

func newSessions(models int, now func() time.Time) *sessions {
	return &sessions{models: models, now: now, seen: map[string]time.Time{}, running: map[string]*model{},
		samplers: map[string]sampler{}}
}

// newID returns a name that no other server has given.
func newID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return kind + "-" + hex.EncodeToString(b[:])
}

func unknown(code, kind string) error {
	return failure.New(http.StatusNotFound, code, "the server has no such "+kind,
		"create it again; a server that was started again has none, and silent sessions may be ended after ten minutes")
}

// begin begins a session. It returns the models of sessions that it ends.
func (s *sessions) begin() (id string, ended []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) >= maxSessions {
		ended = s.expire()
	}
	if len(s.seen) >= maxSessions {
		return "", ended, full("SESSIONS_FULL", "sessions")
	}
	id = newID("session")
	s.seen[id] = s.now()
	return id, ended, nil
}

func full(code, kind string) error {
	return &failure.Error{Status: http.StatusTooManyRequests, Code: code, Detail: "the server has as many " + kind +
		" as it may have", Fix: "unload a model, or wait until another client is silent for ten minutes", Retry: time.Minute}
}

// expire ends silent sessions and returns their models.
func (s *sessions) expire() (ended []string) {
	for id, at := range s.seen {
		if s.now().Sub(at) < idleAfter {
			continue
		}
		delete(s.seen, id)
		for name, m := range s.running {
			if m.session == id {
				delete(s.running, name)
				ended = append(ended, name)
			}
		}
	}
	slices.Sort(ended)
	return ended
}

// touch notes that the client of a session is there.
func (s *sessions) touch(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[id]; !ok {
		return unknown("SESSION_UNKNOWN", "session")
	}
	s.seen[id] = s.now()
	return nil
}

// create adds a model to a session.
func (s *sessions) create(session string, c Create) (name string, ended []string, err error) {
	if err := s.touch(session); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) >= s.models {
		ended = s.expire()
	}
	if len(s.running) >= s.models {
		return "", ended, full("MODELS_FULL", "models")
	}
	name = newID("model")
	s.running[name] = &model{session: session, create: c, asked: map[int64]asked{}}
	return name, ended, nil
}

// forget removes a model, and reports whether there was one.
func (s *sessions) forget(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.running[name]
	delete(s.running, name)
	return ok
}

// find returns how a model was created, and notes that its client is there.
func (s *sessions) find(name string) (Create, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.running[name]
	if !ok {
		return Create{}, unknown("MODEL_UNKNOWN", "model")
	}
	s.seen[m.session] = s.now()
	return m.create, nil
}

// once makes a future of a request to a model, or returns that of the same request, made before under the same number:
// its identifier.
func (s *sessions) once(name string, number *int64, digest [sha256.Size]byte, add func() (string, error)) (string,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.running[name]
	switch {
	case !ok:
		return "", unknown("MODEL_UNKNOWN", "model")
	case number == nil:
		return add()
	}
	s.seen[m.session] = s.now()
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
	m.asked[*number] = asked{digest, id}
	if m.numbers = append(m.numbers, *number); len(m.numbers) > maxSequence {
		delete(m.asked, m.numbers[0])
		m.numbers = m.numbers[1:]
	}
	return id, nil
}

// sample begins a sampling session.
func (s *sessions) sample(path *Path) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = newID("sampler")
	s.samplers[id] = sampler{path}
	if s.order = append(s.order, id); len(s.order) > maxSamplers {
		delete(s.samplers, s.order[0])
		s.order = s.order[1:]
	}
	return id
}

// sampler returns a sampling session.
func (s *sessions) sampler(id string) (sampler, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.samplers[id]; ok {
		return found, nil
	}
	return sampler{}, unknown("SAMPLER_UNKNOWN", "sampling session")
}
