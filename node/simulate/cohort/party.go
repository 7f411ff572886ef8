package cohort

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated/owner"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/sim/clock"
	"github.com/starling-network/starling/sim/link"
)

// Party is what an owner did, in all its processes.
type Party struct {
	Name          string  `json:"name"`
	Act           string  `json:"act,omitempty"`
	BytesUp       uint64  `json:"bytes_up"`
	BytesDown     uint64  `json:"bytes_down"`
	WorkedSeconds float64 `json:"worked_seconds"`
	Failed        string  `json:"failed,omitempty"` // why it has left for good
}

// member is an owner of the world, and the transport of its requests.
type member struct {
	Party
	world   *world
	data    string
	home    string
	link    link.Link
	work    time.Duration // of a unit
	routine *clock.Routine
	key     *owner.Home // of the process that runs
}

// start begins a process of the owner.
func (m *member) start(ctx context.Context) {
	m.routine = m.world.clock.Start(func() {
		err := m.join(ctx)
		if err != nil && !errors.Is(err, clock.ErrKilled) {
			m.Failed = err.Error()
			m.world.say(m.Name + " leaves: " + m.Failed)
		}
	})
}

func (m *member) join(ctx context.Context) (err error) {
	if m.key, err = m.world.open(m); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.key.Close()) }()
	_, err = owner.Join(ctx, owner.Options{URL: "http://coordinator", HTTP: &http.Client{Transport: m}, Home: m.key,
		Data: m.data, Threads: m.world.opt.Threads, Budget: owner.Budget{Unit: federated.OfOwner, Delta: owner.Delta},
		Retry: owner.Retry, Say: func(text string) { m.world.say(m.Name + ": " + text) }, Clock: virtual{&m.world.clock}})
	return err
}

// open opens the home of an owner. Its key follows from the seed, and with it the rounds that it is drawn for.
func (w *world) open(m *member) (*owner.Home, error) {
	path := filepath.Join(m.home, owner.FileKey)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		seed := sha256.Sum256(fmt.Appendf(nil, "starling sim %d %s", w.opt.Seed, m.Name))
		if err := errors.Join(os.MkdirAll(m.home, 0o700),
			os.WriteFile(path, []byte(hex.EncodeToString(seed[:])+"\n"), 0o600)); err != nil {
			return nil, err
		}
	}
	return owner.OpenHome(m.home)
}

// headers are the bytes of a request or an answer without its body, about.
const headers = 512

// maxBody bounds the body of a request: the largest vector is shorter.
const maxBody = 1 << 30

var errUnreachable = errors.New("the coordinator cannot be reached")

// RoundTrip implements http.RoundTripper: the request reaches the coordinator after the time of the link, and the
// answer takes its time, too. Before the first message of a round an owner has trained.
func (m *member) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody)); err != nil {
			return nil, err
		}
	}
	if phase := r.URL.Query().Get("phase"); r.Method == http.MethodPost && phase != "" {
		var err error
		if body, err = m.act(r, federated.Phase(phase), body); err != nil {
			return nil, err
		}
	}
	w := m.world
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	m.BytesUp += uint64(len(body) + headers)
	if err := w.clock.Sleep(w.under(m.link, &w.in, len(body), m.link.Up, w.hub.Down)); err != nil {
		return nil, err
	}
	process := w.process
	if process == nil || w.isCut(m.Name) {
		return nil, errUnreachable
	}
	a := &answer{status: http.StatusOK, header: http.Header{}}
	process.handler.ServeHTTP(a, r)
	if process != w.process || w.isCut(m.Name) {
		return nil, errUnreachable
	}
	m.BytesDown += uint64(a.body.Len() + headers)
	if err := w.clock.Sleep(w.under(m.link, &w.out, a.body.Len(), m.link.Down, w.hub.Up)); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(&a.body), Request: r,
		ContentLength: int64(a.body.Len()), ProtoMajor: 1, ProtoMinor: 1}, nil
}

// under is how long a message is under way. The coordinator's side of the link carries one after the other.
func (w *world) under(l link.Link, free *time.Duration, bytes int, rate, hub float64) time.Duration {
	bytes += headers
	begins := max(w.clock.Now, *free)
	*free = begins + link.Over(bytes, hub)
	l.Up = rate
	return max(*free-w.clock.Now, l.Delay(w.random, bytes))
}

// lasts is how long a phase waits for an owner, at most.
func (w *world) lasts(p federated.Phase) time.Duration {
	if p == federated.Keys {
		return time.Duration(w.opt.Job.Strategy.RoundTimeout)
	}
	return w.opt.Phase
}

// act is the message of a phase as the owner sends it, at its time.
func (m *member) act(r *http.Request, p federated.Phase, body []byte) ([]byte, error) {
	w := m.world
	if p == federated.Keys {
		m.WorkedSeconds += m.work.Seconds()
		if err := w.clock.Sleep(m.work); err != nil {
			return nil, err
		}
	}
	switch late, is := strings.CutPrefix(m.Act, Late); {
	case is && p == federated.Phase(late):
		return body, w.clock.Sleep(w.lasts(p) + time.Second)
	case m.Act == Garbage && p == federated.Vectors && w.process != nil:
		round, err := strconv.ParseUint(r.URL.Query().Get("round"), 10, 32)
		if err != nil {
			return nil, err
		}
		random := rand.NewChaCha8(sha256.Sum256(fmt.Appendf(nil, "garbage %d %d", w.opt.Seed, round)))
		body = make([]byte, len(body))
		_, _ = random.Read(body) // never fails
		wire.Sign(r, m.key.Key, w.process.job, string(p), uint32(round), body)
	}
	return body, nil
}

// answer is the http.ResponseWriter of a request.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
