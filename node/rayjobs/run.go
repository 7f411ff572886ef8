package rayjobs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/internal/process"
)

// start starts the process of a job, whose output is its log.
func (h *Host) start(e *entry, args []string) error {
	dir := filepath.Join(h.dir, jobsDir, e.ID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(h.program, args...)
	cmd.Dir = h.dir
	process.Apart(cmd)
	process.Tie(cmd) // a server that is started again has no other way to its process
	bounded := &boundedWriter{to: log, left: maxLog}
	cmd.Stdout, cmd.Stderr = bounded, bounded // one writer for both: exec gives it one pipe, and one goroutine
	if err = h.save(e); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return errors.Join(err, log.Close(), os.RemoveAll(dir))
	}
	e.process = cmd.Process
	h.running.Go(func() { h.wait(e, cmd, log) })
	return nil
}

// wait notes how a job ends.
func (h *Host) wait(e *entry, cmd *exec.Cmd, log io.Closer) {
	err := cmd.Wait()
	_ = log.Close() // each line is in it already
	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(e.ended)
	e.End = time.Now().UnixMilli()
	switch {
	case e.stops:
		e.Status, e.Message = Stopped, "it was stopped"
	case err == nil:
		e.Status, e.Message = Succeeded, "the process ended"
	default:
		e.Status, e.ErrorType, e.Message = Failed, "JOB_ENTRYPOINT_COMMAND_ERROR", err.Error()+": see its log"
	}
	if err := h.save(e); err != nil {
		h.log.Error("the record of a job is not written", "job", e.ID, "why", err)
	}
}

// boundedWriter writes up to a number of bytes, says that it ends, and drops the rest. A worker keeps its whole log in
// its own folder.
type boundedWriter struct {
	to   io.Writer
	left int
}

// Write implements io.Writer.
func (w *boundedWriter) Write(b []byte) (int, error) {
	n := len(b)
	if w.left <= 0 {
		return n, nil
	}
	if n > w.left {
		b = fmt.Appendf(b[:w.left:w.left], "\nthis log is full: the rest is in the folder --home of the job\n")
	}
	w.left -= n
	_, err := w.to.Write(b)
	return n, err
}
