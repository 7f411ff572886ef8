package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/node/confine"
)

// child is a Python in its box.
type child struct {
	process *confine.Child
	dir     string // of the sources
	asks    *os.File
	answers *os.File
	memory  *os.File // shared
	output  *tail
	timeout time.Duration
}

// start starts a Python in its box, and asks it to make ready.
func start(ctx context.Context, o Options) (_ *child, v Version, err error) {
	python, err := find(ctx, o.Python)
	if err != nil {
		return nil, Version{}, err
	}
	if o.Module != "" {
		if o.Module, err = filepath.Abs(o.Module); err == nil {
			_, err = os.Stat(o.Module)
		}
		if err != nil {
			return nil, Version{}, wrong(codeModule, "cannot read the module", err.Error())
		}
	}
	c := &child{output: &tail{}, timeout: o.Timeout}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if err := c.launch(ctx, o, python); err != nil {
		if errors.Is(err, confine.ErrUnavailable) {
			return nil, Version{}, wrong(codeIsolation, "the child cannot be isolated here", err.Error())
		}
		return nil, Version{}, wrong(codeDied, "the child cannot be started", err.Error())
	}
	r, err := c.ask(request{Type: "hello", Version: protocol, Device: o.Device, Threads: max(1, o.Threads),
		Module: o.Module}, "ready")
	if err != nil {
		return nil, Version{}, err
	}
	if r.Version != protocol {
		return nil, Version{}, wrong(codeProtocol, "the child speaks another version",
			fmt.Sprintf("%d, this program speaks %d", r.Version, protocol))
	}
	return c, Version{clip(r.Torch, 100), clip(r.Device, 100)}, nil
}

// launch starts the process with its three files.
func (c *child) launch(ctx context.Context, o Options, python interpreter) (err error) {
	if c.dir, err = os.MkdirTemp("", "starling-executor-"); err != nil {
		return err
	}
	if err := source(c.dir); err != nil {
		return err
	}
	var theirs [2]*os.File
	if theirs[0], c.asks, err = os.Pipe(); err != nil {
		return err
	}
	defer theirs[0].Close()
	if c.answers, theirs[1], err = os.Pipe(); err != nil {
		return err
	}
	defer theirs[1].Close()
	if c.memory, err = shared(c.dir); err != nil {
		return err
	}
	box := confine.Sandbox{
		Level: o.Box, Command: []string{python.program, "-s", "-B", "-m", "starling.executor"},
		Env:  environment(append([]string{c.dir}, python.imports...), o),
		Read: append(python.folders, c.dir), Files: []*os.File{theirs[0], theirs[1], c.memory}, Memory: int64(o.MiB << 20),
		Scratch: scratchBytes, Output: c.output,
	}
	if o.Module != "" {
		box.Read = append(box.Read, o.Module)
	}
	if !strings.HasPrefix(o.Device, "cpu") {
		if box.Devices, err = accelerators(); err != nil {
			return err
		}
		box.Read = append(box.Read, "/sys/bus/pci", "/sys/class/drm", "/sys/module/nvidia", "/etc/nvidia", "/opt/rocm")
	}
	c.process, err = confine.Start(ctx, box)
	return err
}

// environment is all that the child knows of its owner's.
func environment(imports []string, o Options) []string {
	env := []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONPATH=" + strings.Join(imports, ":"),
		fmt.Sprintf("OMP_NUM_THREADS=%d", max(1, o.Threads)),
		"CUBLAS_WORKSPACE_CONFIG=:4096:8", // so that products on GPUs are the same again
	}
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// ask sends a request and waits for its reply, of the type that is wanted.
func (c *child) ask(r request, want string) (reply, error) {
	deadline := time.Now().Add(c.timeout)
	if err := errors.Join(c.asks.SetWriteDeadline(deadline), c.answers.SetReadDeadline(deadline)); err != nil {
		return reply{}, c.wrong(codeDied, "the child cannot be asked", err)
	}
	refused := writeRequest(c.asks, r) // it may have said why before it ended
	got, err := readReply(c.answers)
	switch {
	case err == nil && got.Type == "error":
		return reply{}, reported(got.Code, got.Message)
	case err == nil && got.Type == want:
		return got, nil
	case err == nil:
		return reply{}, c.wrong(codeProtocol, fmt.Sprintf("the child answers %q", clip(got.Type, 40)),
			fmt.Errorf("to %q it is to answer %q", r.Type, want))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return reply{}, c.wrong(codeTimeout, fmt.Sprintf("no answer to %q in %v", r.Type, c.timeout), nil)
	case errors.Is(err, errReply):
		return reply{}, c.wrong(codeProtocol, "the child wrote what is no answer", err)
	}
	return reply{}, c.gone(errors.Join(refused, err))
}

// gone says why a child ended that gives no answer.
func (c *child) gone(err error) *Error {
	c.process.Kill()
	ended := c.process.Wait()
	if errors.Is(ended, confine.ErrUnavailable) {
		return c.wrong(codeIsolation, "the child cannot be isolated here", ended)
	}
	return c.wrong(codeDied, "the child ended", errors.Join(ended, err))
}

// wrong is an error with the last output of the child.
func (c *child) wrong(code, what string, err error) *Error {
	why := ""
	if err != nil {
		why = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if printed := clip(c.output.String(), maxWhy); printed != "" {
		why = strings.TrimPrefix(why+"; it printed: "+printed, "; ")
	}
	return wrong(code, what, why)
}

// close ends the child and forgets what it had.
func (c *child) close() {
	if c.process != nil {
		c.process.Kill()
	}
	for _, f := range []*os.File{c.asks, c.answers, c.memory} {
		if f != nil {
			_ = f.Close() // there is nothing left to lose
		}
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// tail keeps the end of the written data.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is how many bytes it keeps.
const maxTail = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b[max(0, len(b)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(b), nil
}

// String returns it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
