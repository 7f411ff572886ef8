// Package rest is the Go client of the REST API under /v1 (docs/api.md): of a server at an address, or of a handler in
// the same process, which then needs no port.
//
// It asks, and decodes the answers. The server computes the totals of a run.
package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// Client asks one server. It is safe for concurrent use.
type Client struct {
	base  string // without a slash at its end
	token string
	http  *http.Client

	// Every is the time between two requests for data without a stream, and the least before a stream is opened again.
	Every time.Duration
}

// Limits of answers.
const (
	maxAnswer    = 256 << 20
	maxProblem   = 1 << 20
	replyTimeout = 5 * time.Minute // until the first byte: data is tokenized for a plan
)

// New returns a client of the server at an address, such as http://127.0.0.1:7300. The token may be "".
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, &Error{Code: "ADDRESS_INVALID", What: fmt.Sprintf("%q is not the address of a server", address),
			Fix: "give one such as http://127.0.0.1:7300, as starling web prints it"}
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = replyTimeout
	return &Client{base: strings.TrimSuffix(address, "/"), token: token, http: &http.Client{Transport: t},
		Every: time.Second}, nil
}

// Examples are the files of examples that the server keeps.
func (c *Client) Examples() Examples { return Examples{c} }

// Of returns a client of a handler in this process.
func Of(h http.Handler) *Client {
	return &Client{base: "http://localhost", http: &http.Client{Transport: direct{h}}, Every: time.Second}
}

// Error is a refusal of the server, or why there is no answer.
type Error struct {
	Status    int    // of HTTP; 0: the server did not answer
	Code      string // stable
	Place     string // file:line:column, of an error in a job file
	What      string
	Why       string
	Fix       string
	Temporary bool // it may be tried again
}

// Error implements error.
func (e *Error) Error() string {
	if e.Why != "" {
		return e.What + ": " + e.Why
	}
	return e.What
}

// Explain gives the parts of the error.
func (e *Error) Explain() (code, place, what, why, fix string) {
	return e.Code, e.Place, e.What, e.Why, e.Fix
}

// do asks. The caller closes the body of the answer.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader,
	header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Error{Code: "SERVER_UNREACHABLE", What: "no answer from " + c.base, Why: err.Error(),
			Fix: "check that starling web runs there", Temporary: true}
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	return nil, errors.Join(refusal(answer), answer.Body.Close())
}

// refusal reads what a server says in place of an answer: RFC 9457, or OpenAI's form on the paths of that interface.
func refusal(answer *http.Response) error {
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem)) // as much of it as came
	var p api.Problem
	if json.Unmarshal(raw, &p) == nil && p.Code != "" {
		if len(p.Problems) == 0 {
			e := &Error{Status: answer.StatusCode, Code: p.Code, What: p.Detail, Fix: p.Fix, Temporary: p.Retryable}
			if p.Status >= http.StatusInternalServerError {
				e.Why = "the request " + p.RequestID + " failed"
			}
			return e
		}
		var all []error
		for _, x := range p.Problems {
			all = append(all, &Error{Status: answer.StatusCode, Code: x.Code, Place: x.Place, What: x.What, Why: x.Why,
				Fix: x.Fix})
		}
		return errors.Join(all...)
	}
	var o api.OpenAIError
	if json.Unmarshal(raw, &o) == nil && o.Error.Message != "" {
		e := &Error{Status: answer.StatusCode, Code: "REFUSED", What: o.Error.Message}
		if o.Error.Code != nil {
			e.Code = strings.ToUpper(*o.Error.Code)
		}
		return e
	}
	return &Error{Status: answer.StatusCode, Code: "NOT_STARLING", What: "what answers is no server of starling",
		Why: answer.Status, Fix: "give the address that starling web prints"}
}

// ask asks and decodes the answer.
func ask[T any](ctx context.Context, c *Client, method, path string, body any, header http.Header) (v T, err error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return v, err
		}
		content = bytes.NewReader(raw)
		if header == nil {
			header = http.Header{}
		}
		header.Set("Content-Type", "application/json")
	}
	answer, err := c.do(ctx, method, path, content, header)
	if err != nil {
		return v, err
	}
	if err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&v); err != nil {
		err = &Error{Status: answer.StatusCode, Code: "ANSWER_UNREADABLE",
			What: "the answer of " + c.base + " cannot be read", Why: err.Error(),
			Fix: "check that the address is that of starling web", Temporary: true}
	}
	return v, errors.Join(err, answer.Body.Close())
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return ask[T](ctx, c, http.MethodGet, path, nil, nil)
}

// list collects the pages of a list.
func list[P, T any](ctx context.Context, c *Client, path string, q url.Values,
	part func(P) (entries []T, more bool, after string)) ([]T, error) {
	all := []T{}
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", "1000")
	for {
		page, err := get[P](ctx, c, path+"?"+q.Encode())
		if err != nil {
			return nil, err
		}
		entries, more, after := part(page)
		all = append(all, entries...)
		if !more || after == "" {
			return all, nil
		}
		q.Set("after", after)
	}
}
