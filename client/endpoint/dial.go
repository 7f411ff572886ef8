// Package endpoint is a connection to the HTTP interface of a validator, or to the first of several that answers:
// questions and events continue with another validator when one is gone. Package client gives them their meaning.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
)

// Limits after which a validator counts as gone. A host that lost its power or its link closes no connection: without
// them a question to it would wait for as long as the system sends its packets again, a quarter of an hour.
const (
	dialTimeout  = 5 * time.Second
	ReplyTimeout = 20 * time.Second // from the end of the question to the first byte of the answer
)

// ErrAddress is returned for what is not the address of an HTTP interface.
var ErrAddress = errors.New("client: not the address of a validator")

// Unreachable is the error of Dial when no validator answers, or only one that is stopped: then it wraps a *Stopped.
type Unreachable struct {
	Network string // the addresses
	Err     error  // of the last one
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("client: cannot reach %s: %v: is a validator running there?", u.Network, u.Err)
}

func (u *Unreachable) Unwrap() error { return u.Err }

// Dial connects to the HTTP interface of a validator, such as http://127.0.0.1:26657, or, with several addresses that
// are separated by commas, to the first of these that answers; when it is gone later, the next is asked. The caller
// stops the connection.
func Dial(addresses string) (rpcclient.Client, error) {
	f, err := places(addresses)
	if err != nil {
		return nil, err
	}
	c, err := newConnection(f)
	if err != nil {
		return nil, fmt.Errorf("client: %s: %w", addresses, err)
	}
	ctx, cancel := context.WithTimeout(c.life, time.Duration(len(f.places))*(dialTimeout+ReplyTimeout))
	defer cancel()
	if _, err := c.Status(ctx); err != nil {
		c.stop()
		return nil, &Unreachable{addresses, err}
	}
	return c, c.Start()
}

// NewTransport carries requests to the HTTP interface of the first of several validators that answers, whichever host
// their URLs name. Addresses are those of Dial.
func NewTransport(addresses string) (http.RoundTripper, error) { return places(addresses) }

// places reads addresses of validators.
func places(addresses string) (*failover, error) {
	f := &failover{transport: &http.Transport{
		DialContext: (&net.Dialer{
			Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: dialTimeout,
				Interval: dialTimeout, Count: 3},
		}).DialContext,
		ResponseHeaderTimeout: ReplyTimeout,
	}}
	for address := range strings.SplitSeq(addresses, ",") {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%w: %q: give one such as http://127.0.0.1:26657", ErrAddress, address)
		}
		f.places = append(f.places, u)
	}
	return f, nil
}

// failover sends every request to the place that answered last, and if it does not any more, or says that it is
// stopped, to the next that does.
type failover struct {
	transport *http.Transport
	places    []*url.URL
	at        atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (f *failover) RoundTrip(r *http.Request) (*http.Response, error) {
	first := int(f.at.Load())
	for i := 0; ; i++ {
		at := (first + i) % len(f.places)
		attempt := r.Clone(r.Context())
		attempt.URL.Scheme, attempt.URL.Host, attempt.Host = f.places[at].Scheme, f.places[at].Host, f.places[at].Host
		if i > 0 && r.Body != nil {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			attempt.Body = body
		}
		answer, err := f.transport.RoundTrip(attempt)
		if err == nil {
			if err = stopped(answer); err != nil {
				_ = answer.Body.Close()
			}
		}
		if err == nil {
			f.at.Store(int32(at))
			return answer, nil
		}
		if i == len(f.places)-1 || r.Context().Err() != nil || r.Body != nil && r.GetBody == nil {
			return nil, err
		}
	}
}
