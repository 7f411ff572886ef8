// Package answer writes what handlers return: values as JSON and bytes as they are, with an ETag by which a client asks
// whether it has them already. It writes no errors, which web does, and no streams.
package answer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Types of content.
const (
	CSV    = "text/csv"
	Plain  = "text/plain"
	HTML   = "text/html"
	JSON   = "application/json"
	JSONL  = "application/jsonl"
	Octets = "application/octet-stream"
)

// TypeOfFile is the type of content of a file of a run, by its name.
func TypeOfFile(name string) string {
	switch path.Ext(name) {
	case ".json":
		return JSON
	case ".jsonl", ".log", ".md", ".yaml":
		return Plain + "; charset=utf-8"
	case ".html":
		return HTML + "; charset=utf-8"
	}
	return Octets
}

// TypesOfFiles are the types that TypeOfFile returns.
var TypesOfFiles = []string{JSON, Plain, HTML, Octets}

// Raw is an answer that is bytes already.
type Raw struct {
	Kind  string // of content
	Bytes []byte
}

// Encode writes a value as JSON, with <, > and & as they are.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Write answers with a value as JSON, or, if it is Raw, with its bytes.
func Write(w http.ResponseWriter, r *http.Request, v any) error {
	if body, ok := v.(Raw); ok {
		return Send(w, r, body.Kind, body.Bytes)
	}
	var b bytes.Buffer
	if err := Encode(&b, v); err != nil {
		return err
	}
	return Send(w, r, JSON, b.Bytes())
}

// Send answers with bytes, unless the client has them.
func Send(w http.ResponseWriter, r *http.Request, kind string, body []byte) error {
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

// Slice is the list itself, or an empty one for nil: JSON has [] for it, and not null.
func Slice[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// PerWrite returns a writer each of whose writes has a time-out of its own: a long file may take its time, and its
// reader may not stop.
func PerWrite(w http.ResponseWriter, timeout time.Duration) http.ResponseWriter {
	return perWrite{w, http.NewResponseController(w), timeout}
}

type perWrite struct {
	http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
}

func (p perWrite) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(p.timeout)) // a recorder has none
	return p.ResponseWriter.Write(b)
}
