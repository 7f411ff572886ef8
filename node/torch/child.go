package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/boxed"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/gpu"
)

// child is a Python in its box.
type child struct {
	*boxed.Child
	dir     string // of the sources
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
	c := &child{timeout: o.Timeout}
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
	return c, Version{boxed.Clip(r.Torch, 100), boxed.Clip(r.Device, 100)}, nil
}

// launch starts the process with its three files.
func (c *child) launch(ctx context.Context, o Options, python interpreter) (err error) {
	if c.dir, err = os.MkdirTemp("", "starling-executor-"); err != nil {
		return err
	}
	if err := script(c.dir); err != nil {
		return err
	}
	box := confine.Sandbox{
		Level: o.Box, Command: []string{python.program, "-s", "-B", "-m", "starling.executor"},
		Env:  environment(append([]string{c.dir}, python.imports...), o),
		Read: append(python.folders, c.dir), Memory: int64(o.MiB << 20), Scratch: scratchBytes,
	}
	if o.Module != "" {
		box.Read = append(box.Read, o.Module)
	}
	if !strings.HasPrefix(o.Device, "cpu") {
		if box.Devices, err = gpu.Files(); err != nil {
			return err
		}
		box.Read = append(box.Read, gpu.Folders...)
	}
	c.Child, err = boxed.Start(ctx, box, c.dir)
	return err
}

// environment is all that the child knows of its owner's.
func environment(imports []string, o Options) []string {
	env := []string{
		"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONPATH=" + strings.Join(imports, ":"),
		fmt.Sprintf("OMP_NUM_THREADS=%d", max(1, o.Threads)),
		"CUBLAS_WORKSPACE_CONFIG=:4096:8", // so that products on GPUs are the same again
	}
	return append(env, gpu.Chosen()...)
}

// ask sends a request and waits for its reply, of a type that is wanted.
func (c *child) ask(r request, want ...string) (reply, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return reply{}, c.wrong(codeProtocol, "the request cannot be written", err)
	}
	body, err = c.Ask(body, [2]int{maxRequest, maxReply}, c.timeout)
	switch {
	case errors.Is(err, boxed.ErrTimeout):
		return reply{}, c.wrong(codeTimeout, fmt.Sprintf("no answer to %q in %v", r.Type, c.timeout), nil)
	case errors.Is(err, boxed.ErrFrame):
		return reply{}, c.wrong(codeProtocol, "the child wrote what is no answer", err)
	case err != nil:
		return reply{}, c.gone(err)
	}
	got, err := replyOf(body)
	switch {
	case err != nil:
		return reply{}, c.wrong(codeProtocol, "the child wrote what is no answer", err)
	case got.Type == "error":
		return reply{}, reported(got.Code, got.Message)
	case !slices.Contains(want, got.Type):
		return reply{}, c.wrong(codeProtocol, fmt.Sprintf("the child answers %q", boxed.Clip(got.Type, 40)),
			fmt.Errorf("to %q it is to answer %q", r.Type, want[0]))
	}
	return got, nil
}

// gone says why a child ended that gives no answer.
func (c *child) gone(err error) *Error {
	ended := c.Ended()
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
	if printed := c.Printed(maxWhy); printed != "" {
		why = strings.TrimPrefix(why+"; it printed: "+printed, "; ")
	}
	return wrong(code, what, why)
}

// close ends the child and forgets what it had.
func (c *child) close() {
	if c.Child != nil {
		c.Close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}
