// Package request reads what clients of the API send: parameters, pages of lists, JSON bodies, and the identifier that
// the server gave the request. Invalid input becomes a failure.Error. It knows no operation.
package request

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// Param is a parameter in the query of an operation.
type Param struct{ Name, Kind, Text string }

// Query describes a parameter, of a kind that JSON Schema knows.
func Query(name, kind, text string) Param { return Param{name, kind, text} }

// BadParam refuses a parameter, of which want says what it may be.
func BadParam(name, value, want string) error {
	return failure.New(
		http.StatusBadRequest,
		"PARAMETER_INVALID",
		fmt.Sprintf("%s=%.80q is not %s", name, value, want),
		"see /openapi.json for what it may be",
	)
}

// Int reads a whole number between low and high from the query, or returns otherwise.
func Int(r *http.Request, name string, otherwise, low, high int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, BadParam(name, text, fmt.Sprintf("a whole number from %d to %d", low, high))
	}
	return n, nil
}

// Float reads a number from the query, or returns otherwise.
func Float(r *http.Request, name string, otherwise float64) (float64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x != x {
		return 0, BadParam(name, text, "a number")
	}
	return x, nil
}

// KeyHeader is the header whose value makes a submission idempotent: the same key gives the same job.
const KeyHeader = "Idempotency-Key"

// MaxKey is the most characters of an Idempotency-Key.
const MaxKey = 200

type idKey struct{}

// NewID returns a random identifier of a request.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// WithID returns a context in which ID finds the identifier.
func WithID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// ID is the identifier of a request, or "" if it has none.
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

// Buffer reads the whole body of a request into memory.
func Buffer(r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return late(err)
}

// late replaces the error of a body that did not come in time, and leaves every other error of reading one.
func late(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &failure.Error{
			Status: http.StatusRequestTimeout,
			Code:   "BODY_LATE",
			Detail: "the body of the request did not come in time",
			Fix:    "send it as soon as its header",
			Retry:  time.Second,
		}
	}
	return err
}

// Decode reads the JSON body of a request: one value, no unknown key.
func Decode(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return failure.New(
			http.StatusUnsupportedMediaType,
			"BODY_NOT_JSON",
			"the body is not application/json",
			"send JSON, with the header Content-Type: application/json",
		)
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is something behind the value")
		}
	}
	var large *http.MaxBytesError
	if err = late(err); err != nil && !errors.As(err, &large) && !errors.As(err, new(*failure.Error)) {
		return &failure.Error{
			Status: http.StatusBadRequest,
			Code:   "BODY_INVALID",
			Detail: "the body is not what is asked for: " + strings.TrimPrefix(err.Error(), "json: "),
			Fix:    "see /openapi.json for its keys",
			Param:  invalidKey(err),
		}
	}
	return err
}

// invalidKey is the key of a body that an error of decoding it is about, or "".
func invalidKey(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return kind.Field
	}
	name, err := strconv.Unquote(strings.TrimPrefix(err.Error(), "json: unknown field "))
	if err != nil {
		return ""
	}
	return name
}
