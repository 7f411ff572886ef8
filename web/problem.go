package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// Failure is an error that says what to answer.
type Failure struct {
	Status   int
	Code     string // stable
	Detail   string // what, and why
	Fix      string
	Retry    time.Duration // after which it may be tried again; 0: it is of no use
	Problems []api.ProblemPlace
	Param    string // that is to blame, where the answer has OpenAI's form
}

// Error implements error.
func (f *Failure) Error() string { return f.Detail }

func fail(status int, code, detail, fix string) *Failure {
	return &Failure{Status: status, Code: code, Detail: detail, Fix: fix}
}

// known turns an error into what is answered. Of an error that it does not know, nothing is told but that it happened.
func known(err error) *Failure {
	var f *Failure
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, ErrNotFound):
		return fail(http.StatusNotFound, "NOT_FOUND", "there is no such thing here", "GET /v1/jobs lists what there is")
	case errors.As(err, &large):
		return fail(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE",
			"the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "send less; data is named by its path")
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Status: http.StatusGatewayTimeout, Code: "TIMED_OUT",
			Detail: "what was asked for did not come in time", Fix: "try again; see /v1/health", Retry: time.Second}
	}
	return fail(http.StatusInternalServerError, "INTERNAL", "the server failed to answer",
		"the log of the server has the request by its request_id")
}

// problem answers with an error.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	s.problemAs(w, r, err, openAIs(r.URL.Path))
}

// problemAs sends a failure in OpenAI's form, or as problem+json.
func (s *Server) problemAs(w http.ResponseWriter, r *http.Request, err error, openAI bool) {
	f := known(err)
	id := requestID(r)
	if f.Status >= 500 {
		s.Log.Error("request failed", "request_id", id, "method", r.Method, "path", r.URL.Path, "err", err)
	}
	kind, body := "application/problem+json",
		any(api.Problem{Type: "about:blank", Title: http.StatusText(f.Status), Status: f.Status, Code: f.Code,
			Detail: f.Detail, Fix: f.Fix, RequestID: id,
			Retryable: f.Retry > 0, Problems: f.Problems})
	if openAI {
		kind, body = "application/json", openAIError(f)
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(max(1, f.Retry.Seconds()))))
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="starling"`)
	}
	w.WriteHeader(f.Status)
	if r.Method != http.MethodHead {
		_ = encode(w, body) // the reader is gone
	}
}

// openAIs reports whether a path is one of OpenAI's interface, whose errors have its form.
func openAIs(path string) bool {
	return slices.ContainsFunc([]string{"/v1/files", "/v1/fine_tuning/", "/v1/models", "/v1/completions", "/v1/chat/"},
		func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// openAIError is a failure in OpenAI's form.
func openAIError(f *Failure) api.OpenAIError {
	text, code := f.Detail, strings.ToLower(f.Code)
	for _, p := range f.Problems {
		text += "; " + p.What + ": " + p.Why
	}
	if f.Fix != "" {
		text += ": " + f.Fix
	}
	e := api.OpenAIProblem{Message: text, Type: "invalid_request_error", Code: &code}
	switch {
	case f.Status == http.StatusTooManyRequests:
		e.Type = "rate_limit_error"
	case f.Status >= 500:
		e.Type = "server_error"
	}
	if f.Param != "" {
		e.Param = &f.Param
	}
	return api.OpenAIError{Error: e}
}

func encode(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// answer sends a value as JSON, with the digest of its bytes as its ETag.
func answer(w http.ResponseWriter, r *http.Request, v any) error {
	if body, ok := v.(raw); ok {
		return send(w, r, body.kind, body.bytes)
	}
	var b bytes.Buffer
	if err := encode(&b, v); err != nil {
		return err
	}
	return send(w, r, "application/json", b.Bytes())
}

// raw is an answer that is bytes already.
type raw struct {
	kind  string
	bytes []byte
}

// send sends bytes, unless the asker has them.
func send(w http.ResponseWriter, r *http.Request, kind string, body []byte) error {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("ETag", tag)
	h.Set("Cache-Control", "no-cache")
	for _, have := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if have = strings.TrimPrefix(strings.TrimSpace(have), "W/"); have == tag {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the reader is gone
	return nil
}
