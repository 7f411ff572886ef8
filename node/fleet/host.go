package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/starling-network/starling/internal/process"
)

// Worker is a worker of a host, as the command that runs it.
type Worker struct {
	Name string
	Args []string // of this program
}

// Limits of the pause before a worker that failed is started again. It doubles with each failure within steady.
const (
	firstPause = 5 * time.Second
	mostPause  = 5 * time.Minute
	steady     = 10 * time.Minute
)

// Host runs workers of one host, each in a process of its own, and starts one again that failed.
type Host struct {
	Program string
	Say     func(string)
	Final   func(code int) bool // whether a worker that ends with an exit code is not started again
	pause   time.Duration       // before the first restart; 0: firstPause

	mu        sync.Mutex
	processes map[*os.Process]bool
}

// Run returns when all workers have ended. When the context ends it lets them drain; a value from stop ends them at
// once. The error joins those of the workers that failed for good.
func (h *Host) Run(ctx context.Context, workers []Worker, stop <-chan os.Signal) error {
	h.processes = map[*os.Process]bool{}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-ctx.Done():
			h.interrupt()
		case <-ended:
			return
		}
		for {
			select {
			case <-stop:
				h.interrupt()
			case <-ended:
				return
			}
		}
	}()
	errs := make([]error, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() { errs[i] = h.keep(ctx, w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// interrupt asks all processes to end.
func (h *Host) interrupt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.processes {
		_ = process.Interrupt(p) // one that has ended needs no signal
	}
}

// keep runs a worker until it ends without an error, or for good.
func (h *Host) keep(ctx context.Context, w Worker) error {
	first := h.pause
	if first == 0 {
		first = firstPause
	}
	for pause := first; ctx.Err() == nil; {
		since := time.Now()
		err := h.once(ctx, w)
		code := -1
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			code = failed.ExitCode()
		}
		switch {
		case err == nil:
			h.Say(w.Name + ": ended")
			return nil
		case h.Final(code):
			return fmt.Errorf("%s: %w", w.Name, err)
		case ctx.Err() != nil:
			return nil
		}
		if time.Since(since) > steady {
			pause = first
		}
		h.Say(fmt.Sprintf("%s: %v: starts again in %s", w.Name, err, pause))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
	return nil
}

// once runs the process of a worker.
func (h *Host) once(ctx context.Context, w Worker) error {
	cmd := exec.Command(h.Program, w.Args...)
	process.Apart(cmd)
	r, out := io.Pipe()
	cmd.Stdout, cmd.Stderr = out, out
	read := make(chan struct{})
	go func() {
		defer close(read)
		h.relay(w.Name, r)
	}()
	err := h.start(ctx, cmd)
	if err == nil {
		err = cmd.Wait()
		h.mu.Lock()
		delete(h.processes, cmd.Process)
		h.mu.Unlock()
	}
	_ = out.Close() // never fails
	<-read
	return err
}

// start starts a process, unless the host is to end.
func (h *Host) start(ctx context.Context, cmd *exec.Cmd) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	h.processes[cmd.Process] = true
	return nil
}

// maxLine is the most bytes of a line of a worker that are shown in one piece.
const maxLine = 16 << 10

// relay says the lines of a worker, with its name before each.
func (h *Host) relay(name string, from io.Reader) {
	r := bufio.NewReaderSize(from, maxLine)
	for {
		line, _, err := r.ReadLine()
		if err != nil {
			return
		}
		if len(line) > 0 {
			h.Say(name + ": " + string(line))
		}
	}
}
