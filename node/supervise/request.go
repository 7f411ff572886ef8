package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/starling-network/starling/node/releases"
)

const (
	fileSocket = "supervise.sock"
	maxAnswer  = 1 << 20 // bytes
	longest    = 2 * time.Hour
)

// ErrNotRunning means that no supervisor runs over a folder.
var ErrNotRunning = errors.New("supervise: no supervisor runs over the folder")

// Status is what the supervisor of a process knows.
type Status struct {
	Running   string            `json:"running"`             // version
	Ready     bool              `json:"ready"`               // its process said so
	Candidate string            `json:"candidate,omitempty"` // release that takes its place if it stays
	Latest    string            `json:"latest,omitempty"`    // for this port
	Refused   map[string]string `json:"refused,omitempty"`   // and why
	Available []releases.Notes  `json:"available,omitempty"` // latest first
	Failed    string            `json:"failed,omitempty"`    // why the version that was asked for does not run
}

// request asks for a version, "": the latest; or, with status, for none.
type request struct {
	status  bool
	version string
	answer  chan<- Status
}

// serve answers the commands of the owner of the folder.
func (s *supervisor) serve() (closed func(), err error) {
	path := filepath.Join(s.dir, fileSocket)
	_ = os.Remove(path)                // the lock of the folder is ours: it is of a process that is gone
	l, err := net.Listen("unix", path) // in a folder that only its owner may enter
	if err != nil {
		return nil, fmt.Errorf("supervise: the path of the folder may be too long for a socket: %w", err)
	}
	ask := func(w http.ResponseWriter, r *http.Request, q request) {
		answer := make(chan Status, 1)
		q.answer = answer
		select {
		case s.requests <- q:
		case <-r.Context().Done():
			return
		}
		select {
		case now := <-answer:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(now) // fails when the asker is gone
		case <-r.Context().Done():
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { ask(w, r, request{status: true}) })
	mux.HandleFunc("POST /upgrade", func(w http.ResponseWriter, r *http.Request) {
		ask(w, r, request{version: r.FormValue("version")})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	return func() { _ = server.Close() }, nil
}

// asked answers a request for the status at once, and one for a version when it runs or failed.
func (s *supervisor) asked(ctx context.Context, r request) {
	version := r.version
	if version == "" && len(s.listed) > 0 {
		version = s.listed[0].Version
	}
	there := func(n releases.Release) bool { return n.Version == version }
	switch {
	case r.status || version == "" || version == s.running() && s.state.Candidate == "":
		r.answer <- s.status("")
	case s.state.Candidate != "" || s.fetching || s.drained:
		r.answer <- s.status("another program is fetched or is a candidate, or the process is to end")
	case !slices.ContainsFunc(s.listed, there):
		r.answer <- s.status(fmt.Sprintf("%v: %s", releases.ErrNotThere, version))
	default:
		delete(s.state.Refused, version) // the owner wants it tried again
		if s.state.Pinned = r.version; version == s.listed[0].Version {
			s.state.Pinned = ""
		}
		s.waiting = &r
		s.fetch(ctx, version)
	}
}

// settle answers the request for a version that was tried.
func (s *supervisor) settle() {
	if s.waiting != nil && s.state.Candidate == "" && !s.fetching {
		s.waiting.answer <- s.status(s.verdict)
		s.waiting = nil
	}
}

func (s *supervisor) status(failed string) Status {
	now := Status{Running: s.name(s.running()), Ready: s.child.wasReady, Candidate: s.state.Candidate,
		Refused: maps.Clone(s.state.Refused), Failed: failed}
	for _, r := range s.listed {
		now.Available = append(now.Available, r.Notes)
	}
	if len(s.listed) > 0 {
		now.Latest = s.listed[0].Version
	}
	return now
}

// Ask returns the status of the supervisor that runs over a folder.
func Ask(ctx context.Context, home string) (Status, error) {
	return exchange(ctx, home, http.MethodGet, "/status")
}

// Upgrade lets the supervisor that runs over a folder switch to a version, "": the latest, and waits until it runs or
// was refused.
func Upgrade(ctx context.Context, home, version string) (Status, error) {
	return exchange(ctx, home, http.MethodPost, "/upgrade?version="+url.QueryEscape(version))
}

func exchange(ctx context.Context, home, method, path string) (now Status, err error) {
	socket := filepath.Join(home, dirName, fileSocket)
	c := http.Client{Timeout: longest, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return now, err
	}
	answer, err := c.Do(r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF) {
		return now, fmt.Errorf("%w: %s", ErrNotRunning, home)
	}
	if err != nil {
		return now, err
	}
	defer answer.Body.Close()
	return now, json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&now)
}
