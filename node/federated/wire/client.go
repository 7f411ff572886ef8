package wire

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/exchange/federated"
)

// Client is an owner's connection to a coordinator.
type Client struct {
	URL  string // of the server
	HTTP *http.Client
	Key  ed25519.PrivateKey
	Job  canon.Digest // once the offer is known

	retry time.Duration // how long a server that does not answer is asked again
	clock Clock
}

// New is a client of a server. It asks one that does not answer again for a time.
func New(address string, h *http.Client, key ed25519.PrivateKey, retry time.Duration, clock Clock) *Client {
	return &Client{URL: strings.TrimRight(address, "/"), HTTP: h, Key: key, retry: retry, clock: clock}
}

// Offer is what the coordinator states of its job, which the client is for from now on.
func (c *Client) Offer(ctx context.Context) (*federated.Offer, error) {
	b, err := c.ask(ctx, request{method: http.MethodGet, path: pathJob, limit: federated.MaxOffer})
	if err != nil {
		return nil, err
	}
	o, err := federated.DecodeOffer(b)
	if err == nil {
		c.Job = o.Job()
	}
	return o, err
}

// Join makes the owner one of the job.
func (c *Client) Join(ctx context.Context) error {
	_, err := c.ask(ctx, request{method: http.MethodPost, path: pathJoin, purpose: purposeJoin})
	return err
}

// Announced waits for the first round from a number on.
func (c *Client) Announced(ctx context.Context, from uint32) (federated.Announcement, error) {
	b, err := c.ask(ctx, request{method: http.MethodGet, path: pathRound, purpose: purposeRound, round: from,
		query: url.Values{"from": {strconv.Itoa(int(from))}}, limit: federated.MaxAnnouncement, wait: true})
	if err != nil {
		return federated.Announcement{}, err
	}
	return federated.DecodeAnnouncement(b)
}

// Model are the weights that a round starts from, as bytes.
func (c *Client) Model(ctx context.Context, round uint32, size int) ([]byte, error) {
	return c.ask(ctx, request{method: http.MethodGet, path: pathModel, purpose: purposeModel, round: round,
		query: url.Values{"round": {strconv.Itoa(int(round))}}, limit: size})
}

// Send sends the message of a phase.
func (c *Client) Send(ctx context.Context, round uint32, p federated.Phase, message []byte) error {
	_, err := c.ask(ctx, request{method: http.MethodPost, path: pathMessage, purpose: string(p), round: round,
		query: about(round, p), body: message})
	return err
}

// Exchange sends the message of a phase, and waits for the reply.
func (c *Client) Exchange(ctx context.Context, round uint32, p federated.Phase, message []byte) ([]byte, error) {
	if err := c.Send(ctx, round, p, message); err != nil {
		return nil, err
	}
	return c.ask(ctx, request{method: http.MethodGet, path: pathMessage, purpose: purposeReply + string(p), round: round,
		query: about(round, p), limit: p.LargestReply(), wait: true})
}

// about is the query of a request about a message.
func about(round uint32, p federated.Phase) url.Values {
	return url.Values{"round": {strconv.Itoa(int(round))}, "phase": {string(p)}}
}

// request is one of the client.
type request struct {
	method, path, purpose string
	query                 url.Values
	round                 uint32
	body                  []byte
	limit                 int  // bytes of the answer
	wait                  bool // ask again while there is no answer yet
}

// ask sends a request until it is answered.
func (c *Client) ask(ctx context.Context, q request) ([]byte, error) {
	last := c.clock.Now().Add(c.retry)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		b, status, err := c.once(ctx, q)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && status == http.StatusOK:
			return b, nil
		case err == nil && status == http.StatusNoContent && q.wait:
			last = c.clock.Now().Add(c.retry)
			pause = 50 * time.Millisecond // the server has held the request, or should have
		case err == nil && status < 500:
			return nil, refused(status, b)
		case c.clock.Now().After(last):
			return nil, errors.Join(fmt.Errorf("%w at %s (status %d)", ErrNoAnswer, c.URL, status), err)
		}
		if err := Pause(ctx, c.clock, pause); err != nil {
			return nil, err
		}
	}
}

func refused(status int, reason []byte) error {
	text := strings.TrimSpace(string(reason[:min(len(reason), maxReason)]))
	for is, code := range statuses {
		if code == status {
			return fmt.Errorf("%w: %q", is, text)
		}
	}
	return fmt.Errorf("%w: status %d: %q", ErrRefused, status, text)
}

// once sends a request, and reads at most its limit.
func (c *Client) once(ctx context.Context, q request) ([]byte, int, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, c.URL+q.path+"?"+q.query.Encode(), bytes.NewReader(q.body))
	if err != nil {
		return nil, 0, err
	}
	if q.purpose != "" {
		Sign(r, c.Key, c.Job, q.purpose, q.round, q.body)
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	limit := q.limit
	if answer.StatusCode != http.StatusOK {
		limit = maxReason
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, int64(limit)+1))
	if err == nil && len(b) > limit && answer.StatusCode == http.StatusOK {
		return nil, http.StatusConflict, nil
	}
	return b, answer.StatusCode, err
}
