package web

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Scopes of tokens.
const (
	ScopeRead   = "read"   // look at everything
	ScopeSubmit = "submit" // start and cancel jobs
)

// Tokens are bearer tokens and what each of them allows.
type Tokens struct{ list []bearer }

type bearer struct {
	digest [32]byte // of the token: it is compared, and kept, in no other form
	scopes []string
}

// Limits of files of tokens.
const (
	maxTokenFile   = 64 << 10
	minTokenLength = 16
)

// ReadTokens reads a file of tokens: one a line, followed by its scopes, as in "3f9c...a1 read,submit". Empty lines,
// and those that begin with #, say nothing. Nobody but its owner may be able to read the file.
func ReadTokens(path string) (*Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("web: tokens: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("web: others can read %s: run chmod 600 on it", path)
	}
	t, err := parseTokens(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return nil, fmt.Errorf("web: %s: %w", path, err)
	}
	return t, nil
}

func parseTokens(r io.Reader) (*Tokens, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(text) > maxTokenFile {
		return nil, fmt.Errorf("a file of tokens has at most %d bytes", maxTokenFile)
	}
	t, lines := &Tokens{}, bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 || len(fields[0]) < minTokenLength {
			return nil, fmt.Errorf("line %d is not a token of at least %d characters and its scopes, such as read,submit", n,
				minTokenLength)
		}
		entry := bearer{digest: sha256.Sum256([]byte(fields[0])), scopes: strings.Split(fields[1], ",")}
		for _, s := range entry.scopes {
			if s != ScopeRead && s != ScopeSubmit {
				return nil, fmt.Errorf("line %d: there is no scope %q: they are %s and %s", n, s, ScopeRead, ScopeSubmit)
			}
		}
		t.list = append(t.list, entry)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(t.list) == 0 {
		return nil, fmt.Errorf("there is no token in it")
	}
	return t, nil
}

// allow says whether a request may do what needs a scope.
func (t *Tokens) allow(r *http.Request, scope string) error {
	if t == nil || scope == "" {
		return nil
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return fail(http.StatusUnauthorized, "TOKEN_NEEDED", "the server answers to those who have a token",
			"send Authorization: Bearer TOKEN, with a token of the server's --token-file")
	}
	digest := sha256.Sum256([]byte(given))
	var found *bearer
	for i := range t.list {
		if subtle.ConstantTimeCompare(digest[:], t.list[i].digest[:]) == 1 {
			found = &t.list[i]
		}
	}
	switch {
	case found == nil:
		return fail(http.StatusUnauthorized, "TOKEN_UNKNOWN", "the server does not know the token",
			"send one of the server's --token-file")
	case !slices.Contains(found.scopes, scope):
		return fail(http.StatusForbidden, "SCOPE_MISSING", "the token does not have the scope "+scope,
			"use a token that has it, or add it to this one's line")
	}
	return nil
}

type requestKey struct{}

func requestID(r *http.Request) string {
	id, _ := r.Context().Value(requestKey{}).(string)
	return id
}

// contentPolicy lets a page load what this server has, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard stands before every handler: it numbers the request, refuses what no page of this server and no program sends,
// bounds how long may be written, and turns a panic into an answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := newID()
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, id))
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Security-Policy", contentPolicy)
		_ = http.NewResponseController(w).SetWriteDeadline(began.Add(s.Limits.Write)) // a recorder has none
		watched := &watchedWriter{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.Log.Error("panic", "request_id", id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if watched.status == 0 {
					s.problem(watched, r, fail(http.StatusInternalServerError, "INTERNAL", "the server failed to answer",
						"the log of the server has the request by its request_id"))
				}
			}
			s.stats.request(watched.status, time.Since(began))
		}()
		if err := s.stranger(r); err != nil {
			s.problem(watched, r, err)
			return
		}
		next.ServeHTTP(watched, r)
	})
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// stranger refuses requests that a page of somebody else makes the browser send: by a name that was made to point here,
// or across origins.
func (s *Server) stranger(r *http.Request) error {
	if !s.named(r.Host) {
		return fail(http.StatusMisdirectedRequest, "HOST_UNKNOWN", fmt.Sprintf("the server is not called %q", r.Host),
			"use the address that it printed, or start it with --host "+hostname(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return fail(http.StatusForbidden, "CROSS_SITE", "the request comes from a page of another origin",
				"open the page of this server, or use a program")
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") &&
		r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return fail(http.StatusForbidden, "CROSS_SITE", "the request comes from a page of another origin",
			"open the page of this server, or use a program")
	}
	return nil
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// named reports whether a Host header names this server. An address does: names can be made to point here, addresses
// not.
func (s *Server) named(hostport string) bool {
	host := strings.ToLower(strings.TrimSuffix(hostname(hostport), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(s.Hosts, host)
}

// watchedWriter remembers the status.
type watchedWriter struct {
	http.ResponseWriter
	status int
}

func (w *watchedWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watchedWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
