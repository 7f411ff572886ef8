// Package confine starts a child process that can compute and nothing else: it has no network, reads the system's
// libraries and the files given to it, writes to a scratch folder of bounded size, cannot start processes (unless its
// sandbox says so), has bounded memory, and ends with its parent. It is for programs of the owner of this machine
// whose inputs are untrusted.
//
// On Linux that takes namespaces that an ordinary user may make, a seccomp filter and resource limits. A program that
// imports the package may be started again as the warden that prepares the child: see init.
package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Level says how much of it there has to be.
type Level string

const (
	Full Level = "full" // all of it, or an error that wraps ErrUnavailable
	// what works without namespaces: the child can read files that its user can; other systems than Linux only clean its
	// environment
	Reduced Level = "reduced"
)

// Levels are all of them.
var Levels = []Level{Full, Reduced}

// ErrUnavailable is wrapped by the reason why this machine cannot confine a child as asked.
var ErrUnavailable = errors.New("this machine cannot confine a process")

// Sandbox is what a child is and may have.
type Sandbox struct {
	Level   Level
	Command []string   // absolute path of the program, and its arguments
	Env     []string   // all of its environment but HOME and TMPDIR, which are the scratch folder
	Read    []string   // absolute paths of folders and files that it may read, besides the system's programs and libraries
	Devices []string   // device files that it may use, besides null, zero, full, random and urandom
	Files   []*os.File // that it inherits as 3, 4 and so on
	Memory  int64      // bytes that it may allocate
	// bytes of the scratch folder, which are memory where Level is Full; of one file there where it is Reduced
	Scratch int64
	// it may start programs, which stay in its box, and share memory that its limit does not count: drivers compile so
	Compilers bool
	Output    io.Writer // standard output and error
}

// Child is a process in its box.
type Child struct {
	cmd   *exec.Cmd
	dir   string
	ended chan struct{}
	err   error // of Wait, once ended
}

// Exit statuses before the child is what it is to be; its output says why.
const (
	failure = 125 // its box could not be made
	missing = 127 // there is no such program in the box
)

// outputDelay is how long what holds a child's output open is waited for, once the child has ended.
const outputDelay = 5 * time.Second

// Start starts a child, which is killed when the context ends. An error may come later from Wait, when the box turns
// out not to be possible.
func Start(ctx context.Context, b Sandbox) (*Child, error) {
	dir, err := os.MkdirTemp("", "starling-box-")
	if err != nil {
		return nil, err
	}
	c := &Child{dir: dir, ended: make(chan struct{})}
	if c.cmd, err = command(ctx, b, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles, c.cmd.WaitDelay = b.Output, b.Output, b.Files, outputDelay
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the child dies with the thread that started it
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = errors.Join(c.cmd.Wait(), os.RemoveAll(dir))
			close(c.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(unavailable(b.Level, err), os.RemoveAll(dir))
	}
	return c, nil
}

// unavailable is an error of starting a child.
func unavailable(l Level, err error) error {
	if l == Full {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// Kill ends the child.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// Wait returns when the child has ended: nil, an *exec.ExitError, or, of one whose box could not be made, an error that
// wraps ErrUnavailable.
func (c *Child) Wait() error {
	<-c.ended
	if exit, ok := errors.AsType[*exec.ExitError](c.err); ok && exit.ExitCode() == failure {
		return fmt.Errorf("%w: %w", ErrUnavailable, c.err)
	}
	return c.err
}

// scratch is the folder of a child that has no file system of its own.
func scratch(dir string) (string, error) {
	at := filepath.Join(dir, "scratch")
	return at, os.Mkdir(at, 0o700)
}

// at returns the environment of a child with its scratch folder.
func (b Sandbox) at(scratch string) []string {
	return append([]string{"HOME=" + scratch, "TMPDIR=" + scratch}, b.Env...)
}
