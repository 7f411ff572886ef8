// Package failure holds the errors of the API: each says which status to answer, with a stable code and what to do. It
// turns them into the two forms in which clients read errors, and writes no response itself.
package failure

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/client/api"
)

// ErrNotFound is what a source returns for what it does not know.
var ErrNotFound = errors.New("web: there is no such thing")

// ErrSubmissionOff is the answer of a server that starts no jobs and keeps no files.
var ErrSubmissionOff = New(http.StatusNotImplemented, "SUBMISSION_OFF", "this server shows runs and starts none",
	"start starling web over a folder of runs, without --read-only")

// Error is an error that says what to answer.
type Error struct {
	Status   int    // of HTTP
	Code     string // stable
	Detail   string // what, and why
	Fix      string
	Retry    time.Duration // after which it may be tried again; 0: it is of no use
	Problems []api.ProblemPlace
	Param    string // that is to blame, where the answer has OpenAI's form
}

// Error implements error.
func (e *Error) Error() string { return e.Detail }

// New returns an error without a retry, places or a parameter.
func New(status int, code, detail, fix string) *Error {
	return &Error{Status: status, Code: code, Detail: detail, Fix: fix}
}

// InvalidValue refuses the value of a parameter of OpenAI's interface.
func InvalidValue(param, detail, fix string) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "INVALID_VALUE", Detail: detail, Fix: fix, Param: param}
}

// Internal is the answer to an error whose text is written to the log only, and not sent to clients.
func Internal() *Error {
	return New(http.StatusInternalServerError, "INTERNAL", "the server failed to answer",
		"the log of the server has the request by its request_id")
}

// Of returns what is answered for an error. An error that it does not know becomes Internal.
func Of(err error) *Error {
	var e *Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ErrNotFound):
		return New(http.StatusNotFound, "NOT_FOUND", "there is no such thing here", "GET /v1/jobs lists what there is")
	case errors.As(err, &large):
		return New(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE",
			"the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes", "send less; data is named by its path")
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusGatewayTimeout, Code: "TIMED_OUT",
			Detail: "what was asked for did not come in time", Fix: "try again; see /v1/health", Retry: time.Second}
	}
	return Internal()
}

// Problem is the error as problem+json (RFC 9457), with the identifier of its request.
func (e *Error) Problem(request string) api.Problem {
	return api.Problem{Type: "about:blank", Title: http.StatusText(e.Status), Status: e.Status, Code: e.Code,
		Detail: e.Detail, Fix: e.Fix, RequestID: request, Retryable: e.Retry > 0, Problems: e.Problems}
}

// OpenAI is the error in the form that OpenAI's clients read.
func (e *Error) OpenAI() api.OpenAIError {
	text, code := e.Detail, strings.ToLower(e.Code)
	for _, p := range e.Problems {
		text += "; " + p.What + ": " + p.Why
	}
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	out := api.OpenAIProblem{Message: text, Type: "invalid_request_error", Code: &code}
	switch {
	case e.Status == http.StatusTooManyRequests:
		out.Type = "rate_limit_error"
	case e.Status >= 500:
		out.Type = "server_error"
	}
	if e.Param != "" {
		out.Param = &e.Param
	}
	return api.OpenAIError{Error: out}
}
