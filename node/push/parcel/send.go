package parcel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Client sends requests. It follows no redirects: a signature or a token is for one host.
type Client struct {
	Stall time.Duration // longest time without progress; 0: a minute
	http  *http.Client
}

const (
	stall     = time.Minute
	maxAnswer = 16 << 20
)

// NewClient returns a client with connections of its own.
func NewClient() *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ForceAttemptHTTP2 = true
	return &Client{http: &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Answer is what a server answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // at most 16 MiB
}

// OK reports a status of 200 to 299.
func (a *Answer) OK() bool { return a.Status/100 == 2 }

// Text is the beginning of the body, for an error.
func (a *Answer) Text() string {
	text := strings.Join(strings.Fields(string(a.Body[:min(len(a.Body), 300)])), " ")
	return strings.ToValidUTF8(text, "")
}

// Busy reports whether the status says that the same request may succeed later.
func (a *Answer) Busy() bool {
	return a.Status >= 500 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout
}

// Do sends a request, and reads its answer. moved is called with the number of bytes of the body whenever some of
// them are sent; it may be nil. A request that makes no progress ends. The error names the host alone: the address of
// a request may hold a credential.
func (c *Client) Do(ctx context.Context, r *http.Request, body io.Reader, bytes int64,
	moved func(n int64)) (*Answer, error) {
	limit := c.Stall
	if limit == 0 {
		limit = stall
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(limit, func() { cancel(errStalled) })
	defer idle.Stop()
	var failed atomic.Value // of the body
	r = r.WithContext(ctx)
	if body != nil {
		r.Body = io.NopCloser(&watched{body, func(n int, err error) {
			idle.Reset(limit)
			if moved != nil && n > 0 {
				moved(int64(n))
			}
			if err != nil && err != io.EOF {
				failed.Store(err)
			}
		}})
		if r.ContentLength = bytes; bytes == 0 {
			r.Body = http.NoBody
		}
	}
	answer, err := c.http.Do(r)
	if err == nil {
		defer answer.Body.Close()
		a := &Answer{Status: answer.StatusCode, Header: answer.Header}
		idle.Reset(limit)
		a.Body, err = io.ReadAll(io.LimitReader(&watched{answer.Body, func(int, error) { idle.Reset(limit) }}, maxAnswer))
		if err == nil {
			return a, nil
		}
	}
	if disk, ok := failed.Load().(error); ok {
		return nil, OnDisk(disk)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, Away(r.URL.Host, err)
}

var errStalled = errors.New("no byte moved for too long")

// Away is the error of a host that does not answer.
func Away(host string, err error) *Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &Error{Code: Unreachable, What: "no answer from " + host, Err: err,
		Fix: "check the connection and the address of the endpoint; what is sent stays, and the next try continues"}
}

// Overloaded is the error of a host that asks to try again.
func Overloaded(host string, a *Answer) *Error {
	return &Error{Code: Unreachable, What: fmt.Sprintf("%s answers %d", host, a.Status), Err: said(a),
		Fix: "the same push continues when the server works again"}
}

// Refusal is the error of a host that refuses.
func Refusal(host string, a *Answer) *Error {
	return &Error{Code: Refused, What: fmt.Sprintf("%s answers %d", host, a.Status), Err: said(a),
		Fix: "see what the server says"}
}

func said(a *Answer) error {
	if text := a.Text(); text != "" {
		return errors.New(text)
	}
	return nil
}

// watched tells of every read.
type watched struct {
	io.Reader
	read func(n int, err error)
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	w.read(n, err)
	return n, err
}
