// Package rayjobs serves the REST API of Ray Jobs, version 4.0.0 of its OpenAPI description, so that tools for Ray
// clusters start, watch and stop the workers of a host. A job is one process of this program: a worker, a verifier or
// the workers of a fleet file. The package is no Ray cluster: it runs no other programs, installs no environments and
// schedules nothing.
package rayjobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/folder"
)

// Status of a job, as Ray names it.
type Status string

// Statuses. A job that waits for nothing but its process has no time in PENDING that a client could see.
const (
	Running   Status = "RUNNING"
	Stopped   Status = "STOPPED"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
)

// Job is what a client reads of a job: JobDetails of the description. Times are Unix times in milliseconds.
type Job struct {
	Type       string            `json:"type"`
	Entrypoint string            `json:"entrypoint"`
	ID         string            `json:"submission_id"`
	Status     Status            `json:"status"`
	Message    string            `json:"message"`
	ErrorType  string            `json:"error_type,omitempty"`
	Start      int64             `json:"start_time"`
	End        int64             `json:"end_time,omitempty"`
	Metadata   map[string]string `json:"metadata"`
	Env        map[string]any    `json:"runtime_env"`
}

// Limits of a host.
const (
	MaxRunning = 64
	maxKept    = 1024 // jobs that have ended; the earliest are forgotten
	maxLog     = 64 << 20
)

// ids are the names that a client may give to a job: they are names of folders as well.
var ids = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// ErrUsed, ErrUnknown and ErrRuns say why a request about a job is refused.
var (
	ErrUsed    = errors.New("rayjobs: the submission id is used by another job")
	ErrUnknown = errors.New("rayjobs: no such job")
	ErrRuns    = errors.New("rayjobs: the job has not ended")
	ErrFull    = fmt.Errorf("rayjobs: %d jobs run already: stop one, or use starling fleet up", MaxRunning)
)

// Host runs jobs and keeps their records and logs in a folder.
type Host struct {
	program string
	dir     string
	log     *slog.Logger

	mu      sync.Mutex
	jobs    map[string]*entry
	running sync.WaitGroup
	closed  bool
}

// entry is a job and, while it runs, its process.
type entry struct {
	Job
	process *os.Process
	stops   bool          // a client asked it to end
	ended   chan struct{} // closed when it has ended
}

// recordName and logName are the files of a job in its folder.
const (
	recordName = "job.json"
	logName    = "log"
	jobsDir    = "jobs"
)

// Open reads the jobs of a folder. Those that ran when the server before this one ended have ended with it.
func Open(program, dir string, log *slog.Logger) (*Host, error) {
	h := &Host{program: program, dir: dir, log: log, jobs: map[string]*entry{}}
	if err := os.MkdirAll(filepath.Join(dir, jobsDir), 0o700); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(filepath.Join(dir, jobsDir))
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		e := &entry{ended: make(chan struct{})}
		close(e.ended)
		err := folder.ReadJSON(filepath.Join(dir, jobsDir, d.Name(), recordName), &e.Job)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		if e.Status == Running {
			e.Status, e.Message, e.End = Failed, "the server that ran it ended", time.Now().UnixMilli()
			if err := h.save(e); err != nil {
				return nil, err
			}
		}
		h.jobs[e.ID] = e
	}
	return h, nil
}

// save writes the record of a job.
func (h *Host) save(e *entry) error {
	return folder.WriteJSON(filepath.Join(h.dir, jobsDir, e.ID, recordName), e.Job)
}

// Submit starts a job and returns its id.
func (h *Host) Submit(r Request) (string, error) {
	args, err := r.arguments()
	if err != nil {
		return "", err
	}
	id := r.ID
	if id == "" {
		id = "raysubmit_" + strings.ToLower(rand.Text()[:16])
	}
	if !ids.MatchString(id) {
		return "", fmt.Errorf("%w: submission_id %q: wanted 1 to 128 letters, digits, _, . and -", ErrRequest, id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, e := range h.jobs {
		if e.Status == Running {
			n++
		}
	}
	switch {
	case h.closed:
		return "", context.Canceled
	case h.jobs[id] != nil:
		return "", fmt.Errorf("%w: %s", ErrUsed, id)
	case n >= MaxRunning:
		return "", ErrFull
	}
	if err := h.forget(); err != nil {
		return "", err
	}
	e := &entry{ended: make(chan struct{}), Job: Job{Type: "SUBMISSION", Entrypoint: r.Entrypoint, ID: id, Status: Running,
		Message: "the process runs", Start: time.Now().UnixMilli(), Metadata: r.Metadata, Env: r.Env}}
	if err := h.start(e, args); err != nil {
		return "", err
	}
	h.jobs[id] = e
	return id, nil
}

// forget drops the jobs that ended first, while there are too many.
func (h *Host) forget() error {
	for len(h.jobs) >= maxKept+MaxRunning {
		var first *entry
		for _, e := range h.jobs {
			if e.Status != Running && (first == nil || e.End < first.End) {
				first = e
			}
		}
		if err := h.drop(first); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes a job that has ended.
func (h *Host) drop(e *entry) error {
	delete(h.jobs, e.ID)
	return os.RemoveAll(filepath.Join(h.dir, jobsDir, e.ID))
}

// List returns all jobs, the latest first.
func (h *Host) List() []Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []Job{}
	for _, e := range h.jobs {
		list = append(list, e.Job)
	}
	slices.SortFunc(list, func(a, b Job) int {
		if a.Start != b.Start {
			return int(b.Start - a.Start)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// find returns a job.
func (h *Host) find(id string) (*entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.jobs[id]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// Get returns a job.
func (h *Host) Get(id string) (Job, error) {
	e, err := h.find(id)
	if err != nil {
		return Job{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return e.Job, nil
}

// Stop asks a job to end, and reports whether it ran. A worker first ends what it owes; asked a second time it ends at
// once.
func (h *Host) Stop(id string) (bool, error) {
	e, err := h.find(id)
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Status != Running {
		return false, nil
	}
	e.stops, e.Message = true, "the process ends what it owes"
	return true, process.Interrupt(e.process)
}

// Delete deletes a job that has ended.
func (h *Host) Delete(id string) error {
	e, err := h.find(id)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Status == Running {
		return fmt.Errorf("%w: %s", ErrRuns, id)
	}
	return h.drop(e)
}

// Close asks all jobs to end and returns when they have; a value from hurry asks them again.
func (h *Host) Close(hurry <-chan os.Signal) {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, j := range h.List() {
		_, _ = h.Stop(j.ID) // one that has ended needs no signal
	}
	done := make(chan struct{})
	go func() {
		h.running.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		case <-hurry:
			for _, j := range h.List() {
				_, _ = h.Stop(j.ID)
			}
		}
	}
}
