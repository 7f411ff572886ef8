package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Limits after which a process is asked for its stacks and ended, so that a test that waits for it says why.
const (
	lifetime = 15 * time.Minute
	silence  = 4 * time.Minute // while a test waits for a line
)

// command is the program as a process, which is not started.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGQUIT) }
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// news starts the program and returns the lines of its standard error, which are read whether the test asks for them or
// not: a pipe that is full would stop the program.
func news(t *testing.T, c *exec.Cmd) *bufio.Scanner {
	t.Helper()
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = to
	err = c.Start()
	_ = to.Close()
	if err != nil {
		t.Fatal(err)
	}
	n := &backlog{quit: func() { _ = c.Process.Signal(syscall.SIGQUIT) }}
	n.changed.L = &n.mu
	go func() {
		_, _ = io.Copy(n, from)
		_ = from.Close()
		n.end()
	}()
	return bufio.NewScanner(n)
}

// backlog is what a process wrote and a test has not read yet.
type backlog struct {
	quit func()

	mu      sync.Mutex
	changed sync.Cond
	text    []byte
	ended   bool
}

func (n *backlog) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, b...)
	n.changed.Broadcast()
	return len(b), nil
}

func (n *backlog) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	n.changed.Broadcast()
}

// Read waits until there is something to read, and ends a process that is silent for long.
func (n *backlog) Read(b []byte) (int, error) {
	late := time.AfterFunc(silence, n.quit)
	defer late.Stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.text) == 0 && !n.ended {
		n.changed.Wait()
	}
	if len(n.text) == 0 {
		return 0, io.EOF
	}
	size := copy(b, n.text)
	n.text = n.text[size:]
	return size, nil
}
