// Package boxed asks a process in a box (package confine) over pipes, and shares memory with it: one question, one
// answer, each a frame, in a time that is bounded. It does not know the questions.
package boxed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/starling-network/starling/node/confine"
)

// Child is a process that answers.
type Child struct {
	Memory *os.File // shared; empty until Fix

	process *confine.Child
	asks    *os.File
	answers *os.File
	output  *tail
}

// The files that the process inherits: where it reads questions, where it writes answers, and the shared memory.
const (
	Questions = 3
	Answers   = 4
	Memory    = 5
)

// Start starts a process in a box, which gets the three files before those of the box, and whose output is kept. dir is
// a folder for files of the parent.
func Start(ctx context.Context, box confine.Sandbox, dir string) (_ *Child, err error) {
	c := &Child{output: &tail{}}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	var theirs [2]*os.File
	if theirs[0], c.asks, err = os.Pipe(); err != nil {
		return nil, err
	}
	defer theirs[0].Close()
	if c.answers, theirs[1], err = os.Pipe(); err != nil {
		return nil, err
	}
	defer theirs[1].Close()
	if c.Memory, err = shared(dir); err != nil {
		return nil, err
	}
	box.Files, box.Output = append([]*os.File{theirs[0], theirs[1], c.Memory}, box.Files...), c.output
	c.process, err = confine.Start(ctx, box)
	return c, err
}

// Fix gives the shared memory its size, for good.
func (c *Child) Fix(size int64) error { return fix(c.Memory, size) }

// ErrTimeout is wrapped by the error of Ask when there is no answer in time.
var ErrTimeout = errors.New("no answer in time")

// Ask sends a question of at most the first limit, and returns the answer of at most the second. Its errors wrap
// ErrTimeout or ErrFrame, or are of a process that ended: then Ended says why.
func (c *Child) Ask(question []byte, limits [2]int, within time.Duration) ([]byte, error) {
	deadline := time.Now().Add(within)
	if err := errors.Join(c.asks.SetWriteDeadline(deadline), c.answers.SetReadDeadline(deadline)); err != nil {
		return nil, err
	}
	refused := WriteFrame(c.asks, question, limits[0]) // it may have said why before it ended
	if errors.Is(refused, ErrFrame) {
		return nil, refused
	}
	answer, err := ReadFrame(c.answers, limits[1])
	switch {
	case err == nil || errors.Is(err, ErrFrame):
		return answer, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w: %v", ErrTimeout, within)
	}
	return nil, &EndedError{errors.Join(refused, err)}
}

// EndedError is the error of Ask when the process closed its pipes.
type EndedError struct{ err error }

// Error implements error.
func (e *EndedError) Error() string { return e.err.Error() }

// Unwrap returns the error of the pipe.
func (e *EndedError) Unwrap() error { return e.err }

// Ended ends the process, and says with which status it ended.
func (c *Child) Ended() error {
	c.process.Kill()
	return c.process.Wait()
}

// Close ends the process and forgets what it had.
func (c *Child) Close() {
	if c.process != nil {
		c.process.Kill()
	}
	for _, f := range []*os.File{c.asks, c.answers, c.Memory} {
		if f != nil {
			_ = f.Close() // there is nothing left to lose
		}
	}
}

// Printed is the end of the output, in one line of at most some characters.
func (c *Child) Printed(most int) string { return Clip(c.output.String(), most) }

// Clip returns the last characters of a text, in one line, without any that a terminal acts on.
func Clip(s string, most int) string {
	runes := []rune(strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "?"))
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '?'
		}
	}
	return string(runes[max(0, len(runes)-most):])
}
