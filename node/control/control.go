// Package control lets the owner of a running process ask for its status and tell it to drain: HTTP over a socket in
// the process's folder, which only the owner may open.
//
// The process defines the content of a status and the meaning of draining.
package control

import (
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
)

const (
	fileSocket = "control.sock"
	maxPath    = 100     // bytes of a socket's path that every system takes
	maxStatus  = 1 << 20 // bytes

	// patience is how long a process that ends waits for those that it answers.
	patience = time.Second
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

// Serve answers for a process until stop is called. The caller holds the lock of the folder: a socket that is there was
// left by a process that is gone.
func Serve(dir string, p Process) (stop func() error, err error) {
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.Status()) // fails when the asker is gone
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, _ *http.Request) {
		p.Drain()
		w.WriteHeader(http.StatusNoContent)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(l) }() // ends with Close
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = server.Shutdown(ctx) // who waits longer is cut off by Close
		return server.Close()
	}, nil
}

// Status asks the process that runs over a folder for its status and decodes it into a pointer.
func Status(ctx context.Context, dir string, into any) error {
	body, err := ask(ctx, dir, http.MethodGet, "/status")
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
	c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", name)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, method, "http://process"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(r)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || ended(err):
		return nil, fmt.Errorf("%w: %s", ErrNotRunning, dir)
	case err != nil:
		return nil, err
	case answer.StatusCode >= 300:
		return nil, errors.Join(fmt.Errorf("control: %s answers %s", name, answer.Status), answer.Body.Close())
	}
	return answer.Body, nil
}

// ended reports whether the process at the other end went away in the middle.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

func socket(dir string) (string, error) {
	path := filepath.Join(dir, fileSocket)
	if len(path) > maxPath {
		return "", fmt.Errorf("%w: %s has %d bytes, at most %d", ErrLongPath, path, len(path), maxPath)
	}
	return path, nil
}
