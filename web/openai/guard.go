package openai

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// refusal is an error in OpenAI's shape.
type refusal struct {
	status  int
	Message string
	Type    string
	Param   string
	Code    string
}

func (r *refusal) Error() string { return r.Message }

// body is what is sent: null where there is nothing to say.
func (r *refusal) body() any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	kind := r.Type
	switch {
	case kind != "":
	case r.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case r.status >= 500:
		kind = "server_error"
	default:
		kind = "invalid_request_error"
	}
	return map[string]any{"error": map[string]any{"message": r.Message, "type": kind, "param": orNull(r.Param),
		"code": orNull(r.Code)}}
}

// invalid refuses a parameter.
func invalid(param, code, message string) *refusal {
	return &refusal{status: http.StatusBadRequest, Param: param, Code: code, Message: message}
}

// refused turns an error into an answer. The details of an error of this server are not sent.
func refused(err error) *refusal {
	var r *refusal
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &large):
		return &refusal{status: http.StatusRequestEntityTooLarge, Code: "request_too_large",
			Message: "The request is too large: at most 1 MiB."}
	case errors.Is(err, ErrModel):
		return &refusal{status: http.StatusNotFound, Param: "model", Code: "model_not_found", Message: err.Error()}
	case errors.Is(err, ErrBusy):
		return &refusal{status: http.StatusTooManyRequests, Code: "queue_full",
			Message: "Too many requests wait. Try again later."}
	case errors.Is(err, ErrTooLong):
		return invalid("messages", "context_length_exceeded", err.Error())
	case errors.Is(err, ErrRequest):
		return invalid("", "invalid_value", err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusServiceUnavailable, Code: "timeout", Message: "The text took too long."}
	}
	return &refusal{status: http.StatusInternalServerError, Code: "internal_error",
		Message: "The model failed to continue the text."}
}

// Refusal is an error of a Model that is answered with a status of HTTP and a body of its own, as JSON.
type Refusal interface {
	error
	Refuse() (status int, body any)
}

func refuse(w http.ResponseWriter, err error) {
	if own := Refusal(nil); errors.As(err, &own) {
		status, body := own.Refuse()
		reply(w, status, body)
		return
	}
	r := refused(err)
	switch r.status {
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	reply(w, r.status, r.body())
}

// admit refuses requests without the token, and those that a page of another site makes a browser send: with a name for
// the loopback that is not one of its own, or with another Origin.
func (s *Server) admit(r *http.Request) error {
	// who looks whether it is well needs no token
	if s.config.Token != "" && !(s.config.Watch && r.URL.Path == "/health") {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(s.config.Token))
		if !ok || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			return &refusal{status: http.StatusUnauthorized, Code: "invalid_api_key",
				Message: "Incorrect API key provided: send the server's token as a bearer token."}
		}
	}
	if host := hostname(r.Host); !s.known(host) {
		return &refusal{status: http.StatusMisdirectedRequest, Code: "unknown_host",
			Message: "The server does not go by the name " + host + "."}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); (err != nil || u.Host != r.Host) && !s.welcomes(origin) {
			return &refusal{status: http.StatusForbidden, Code: "cross_site",
				Message: "The request comes from a page of another site, which the server is not told to answer."}
		}
	}
	return nil
}

// known reports whether the server goes by a name. Addresses it goes by: a name can be pointed at one, not the reverse.
func (s *Server) known(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return s.config.Public || slices.Contains(s.config.Hosts, host) || s.config.Hosts == nil && s.config.Token != ""
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		hostport = host
	}
	return strings.ToLower(strings.Trim(hostport, "[]"))
}
