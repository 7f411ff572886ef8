// Package control lets the owner of a running process ask for its status, pause and resume it, and tell it to drain:
// HTTP over a socket in the process's folder, which only the owner may open.
//
// The process defines the content of a status, and the meaning of draining.
package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/starling-network/starling/node/pause"
)

const (
	fileSocket = "control.sock"
	maxPath    = 100     // bytes of a socket's path that every system takes
	maxStatus  = 1 << 20 // bytes
	maxReason  = 1 << 10 // bytes

	// patience is how long a process that ends waits for those that it answers.
	patience = time.Second

	// answerTimeout bounds the time in which a process is reached, and that in which it answers.
	answerTimeout = 10 * time.Second
)

// Errors of this package.
var (
	ErrNotRunning = errors.New("control: no process runs over the folder")
	ErrLongPath   = errors.New("control: the path of the folder is too long for a socket")
)

// Process is what is controlled. Its methods are called concurrently.
type Process interface {
	Status() any // for encoding/json
	Drain()      // begins to; returns at once
}

// Serve answers for a process, which a pauser pauses, until stop is called. The caller holds the lock of the folder: a
// socket that is there was left by a process that is gone.
func Serve(dir string, p Process, q *pause.Pauser) (stop func() error, err error) {
	path, err := socket(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: routes(p, q), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx) // who waits longer is cut off by Close
		return server.Close()
	}, nil
}

// routes are what a process answers.
func routes(p Process, q *pause.Pauser) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // fails when the asker is gone
	}
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, p.Status(), nil) })
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, _ *http.Request) {
		p.Drain()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /pause", func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.FormValue("for"))
		if err != nil || d < 0 {
			http.Error(w, "for is no duration", http.StatusBadRequest)
			return
		}
		state, err := q.Pause(d)
		answer(w, state, err)
	})
	mux.HandleFunc("POST /resume", func(w http.ResponseWriter, _ *http.Request) {
		state, err := q.Resume()
		answer(w, state, err)
	})
	return mux
}

// Status asks the process that runs over a folder for its status and decodes it into a pointer.
func Status(ctx context.Context, dir string, into any) error {
	return read(ctx, dir, http.MethodGet, "/status", into)
}

// Pause pauses the process that runs over a folder for a time, 0: until Resume.
func Pause(ctx context.Context, dir string, d time.Duration) (s pause.State, err error) {
	err = read(ctx, dir, http.MethodPost, "/pause?for="+d.String(), &s)
	return s, err
}

// Resume ends a pause of the process that runs over a folder. The state says whether it is paused all the same.
func Resume(ctx context.Context, dir string) (s pause.State, err error) {
	err = read(ctx, dir, http.MethodPost, "/resume", &s)
	return s, err
}

// read asks a process and decodes its answer.
func read(ctx context.Context, dir, method, path string, into any) error {
	body, err := ask(ctx, dir, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	err = json.NewDecoder(io.LimitReader(body, maxStatus)).Decode(into)
	if ended(err) {
		return fmt.Errorf("%w: %s: it ended while it answered", ErrNotRunning, dir)
	}
	return err
}

// Drain tells the process that runs over a folder to drain.
func Drain(ctx context.Context, dir string) error {
	body, err := ask(ctx, dir, http.MethodPost, "/drain")
	if err != nil {
		return err
	}
	return body.Close()
}

func ask(ctx context.Context, dir, method, path string) (io.ReadCloser, error) {
	name, err := socket(dir)
	if err != nil {
		return nil, err
	}
	c, err := (&net.Dialer{Timeout: answerTimeout}).DialContext(ctx, "unix", name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, dir)
	} else if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = c.Close() }) // a caller that goes away waits for no answer
	answer, err := exchange(ctx, c, method, path)
	switch {
	case ended(err):
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrNotRunning, dir), c.Close())
	case err != nil:
		return nil, errors.Join(err, c.Close())
	case answer.StatusCode >= 300:
		why, _ := io.ReadAll(io.LimitReader(answer.Body, maxReason)) // what there is of it
		err = fmt.Errorf("control: %s answers %s: %s", name, answer.Status, bytes.TrimSpace(why))
		return nil, errors.Join(err, c.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{answer.Body, c}, nil
}

// exchange asks over a connection, without a client of net/http, which has no exported error for a connection that is
// closed before the question.
func exchange(ctx context.Context, c net.Conn, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://process"+path, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	if err := errors.Join(c.SetDeadline(time.Now().Add(answerTimeout)), r.Write(c)); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(c), r)
}

// ended reports whether the process at the other end went away after the connection was made.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

func socket(dir string) (string, error) {
	path := filepath.Join(dir, fileSocket)
	if len(path) > maxPath {
		return "", fmt.Errorf("%w: %s has %d bytes, at most %d", ErrLongPath, path, len(path), maxPath)
	}
	return path, nil
}
