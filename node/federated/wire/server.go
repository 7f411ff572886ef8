package wire

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/federated"
)

// Coordinator answers owners. Names are those that signed the requests.
type Coordinator interface {
	Offer() []byte
	Join(name ed25519.PublicKey) error
	// Announced is the announcement of the first round from a number on, once it is there.
	Announced(ctx context.Context, name ed25519.PublicKey, from uint32) ([]byte, error)
	Model(name ed25519.PublicKey, round uint32) ([]byte, error)
	// Limit is the largest message that an owner may send in a phase of a round now.
	Limit(name ed25519.PublicKey, round uint32, p federated.Phase) (int, error)
	Take(name ed25519.PublicKey, round uint32, p federated.Phase, body []byte) error
	// Reply waits until the phase has ended.
	Reply(ctx context.Context, name ed25519.PublicKey, round uint32, p federated.Phase) ([]byte, error)
}

// hold is how long a request waits for what is not there yet. The client asks again.
const hold = 20 * time.Second

// Handler serves a coordinator of a job.
func Handler(c Coordinator, job canon.Digest, clock Clock) http.Handler {
	s := server{c, job, clock}
	m := http.NewServeMux()
	m.HandleFunc("GET "+pathJob, s.answer(func(*http.Request) ([]byte, error) { return c.Offer(), nil }))
	m.HandleFunc("POST "+pathJoin, s.answer(s.join))
	m.HandleFunc("GET "+pathRound, s.answer(s.round))
	m.HandleFunc("GET "+pathModel, s.answer(s.model))
	m.HandleFunc("POST "+pathMessage, s.answer(s.take))
	m.HandleFunc("GET "+pathMessage, s.answer(s.reply))
	return m
}

// Offered serves the offer of a job alone: of a job whose rounds are on a network.
func Offered(offer []byte) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET "+pathJob, server{}.answer(func(*http.Request) ([]byte, error) { return offer, nil }))
	return m
}

type server struct {
	Coordinator
	job   canon.Digest
	clock Clock
}

// answer writes what a request is answered with.
func (s server) answer(of func(r *http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := of(r)
		if errors.Is(err, context.DeadlineExceeded) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if err != nil {
			status := http.StatusConflict
			for is, code := range statuses {
				if errors.Is(err, is) {
					status = code
				}
			}
			reason := err.Error()
			http.Error(w, reason[:min(len(reason), maxReason)], status)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(body) // an owner that is gone asks again
	}
}

func (s server) join(r *http.Request) ([]byte, error) {
	name, _, err := signer(r, s.job, purposeJoin, 0)
	if err != nil {
		return nil, err
	}
	return nil, s.Join(name)
}

func (s server) round(r *http.Request) ([]byte, error) {
	from, err := number(r, "from")
	if err != nil {
		return nil, err
	}
	name, _, err := signer(r, s.job, purposeRound, from)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.clock.Within(r.Context(), hold)
	defer cancel()
	return s.Announced(ctx, name, from)
}

func (s server) model(r *http.Request) ([]byte, error) {
	round, err := number(r, "round")
	if err != nil {
		return nil, err
	}
	name, _, err := signer(r, s.job, purposeModel, round)
	if err != nil {
		return nil, err
	}
	return s.Model(name, round)
}

// phase are the phase and the round of a request about a message.
func phase(r *http.Request) (federated.Phase, uint32, error) {
	p := federated.Phase(r.URL.Query().Get("phase"))
	if !slices.Contains(federated.Phases, p) {
		return p, 0, ErrRefused
	}
	round, err := number(r, "round")
	return p, round, err
}

func (s server) take(r *http.Request) ([]byte, error) {
	p, round, err := phase(r)
	if err != nil {
		return nil, err
	}
	name, digest, err := signer(r, s.job, string(p), round)
	if err != nil {
		return nil, err
	}
	limit, err := s.Limit(name, round, p)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, int64(limit)+1))
	if err != nil || len(body) > limit || federated.Body(body) != digest {
		return nil, ErrRefused
	}
	return nil, s.Take(name, round, p, body)
}

func (s server) reply(r *http.Request) ([]byte, error) {
	p, round, err := phase(r)
	if err != nil {
		return nil, err
	}
	name, _, err := signer(r, s.job, purposeReply+string(p), round)
	if err != nil {
		return nil, err
	}
	ctx, cancel := s.clock.Within(r.Context(), hold)
	defer cancel()
	return s.Reply(ctx, name, round, p)
}
