// Package accelerator has exact work computed on devices such as GPUs: it asks the program starling-device, a child in
// a box (package confine) that loads the drivers, so that one that hangs or crashes takes nothing along, and starling
// stays linked statically. The kernels are those of compute/device.
package accelerator

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/node/boxed"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/gpu"
	"github.com/starling-network/starling/node/memory"
)

// Options are what the owner of a machine chooses.
type Options struct {
	Program string        // starling-device; "": that in the folder of this program, or that of the path
	Timeout time.Duration // of one question; 0: DefaultTimeout
	// RunTimeout is how long a run of a program may take at the least, once there was one; 0: DefaultRunTimeout
	RunTimeout time.Duration
	Box        confine.Level // "": confine.Full
}

// DefaultTimeout is how long a child may take for an answer: a driver compiles for minutes.
const DefaultTimeout = 10 * time.Minute

// DefaultRunTimeout is the same for a run of a program after the first.
const DefaultRunTimeout = time.Minute

// scratchBytes is the size of the child's scratch folder, where drivers keep what they compile.
const scratchBytes = 256 << 20

// child is a starling-device in its box.
type child struct {
	*boxed.Child
	dir     string
	timeout time.Duration
}

// find returns the path of starling-device.
func find(program string) (string, error) {
	name := "starling-device"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if program == "" {
		if self, err := os.Executable(); err == nil {
			program = filepath.Join(filepath.Dir(self), name)
		}
		if _, err := os.Stat(program); err != nil {
			if program, err = exec.LookPath(name); err != nil {
				return "", wrong(codeProgram, "there is no "+name, "it is neither in the folder of this program nor on the path")
			}
		}
	}
	if _, err := os.Stat(program); err != nil {
		return "", wrong(codeProgram, "there is no "+name, err.Error())
	}
	return filepath.Abs(program)
}

// Digest is the SHA-256 of starling-device: another one is another implementation of the kernels.
func Digest(o Options) (d canon.Digest, err error) {
	program, err := find(o.Program)
	if err != nil {
		return d, err
	}
	f, err := os.Open(program)
	if err != nil {
		return d, wrong(codeProgram, "starling-device cannot be read", err.Error())
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return d, wrong(codeProgram, "starling-device cannot be read", err.Error())
	}
	return canon.Digest(h.Sum(nil)), nil
}

// start starts starling-device.
func start(ctx context.Context, o Options) (_ *child, err error) {
	program, err := find(o.Program)
	if err != nil {
		return nil, err
	}
	c := &child{timeout: o.Timeout}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "starling-device-"); err != nil {
		return nil, err
	}
	box := confine.Sandbox{Level: o.Box, Command: []string{program}, Env: environment(), Scratch: scratchBytes,
		Compilers: true, Memory: mostMemory(),
		Read: append([]string{program, "/etc/OpenCL", "/opt/intel"}, gpu.Folders...)}
	if box.Level == "" {
		box.Level = confine.Full
	}
	if box.Devices, err = gpu.Files(); err != nil {
		return nil, err
	}
	if c.Child, err = boxed.Start(ctx, box, c.dir); err != nil {
		if errors.Is(err, confine.ErrUnavailable) {
			return nil, wrong(codeIsolation, "the child cannot be isolated here", err.Error())
		}
		return nil, wrong(codeDied, "the child cannot be started", err.Error())
	}
	return c, nil
}

// mostMemory is what a child may allocate: all that the machine has.
func mostMemory() int64 {
	if _, total, ok := memory.Available(); ok {
		return int64(total)
	}
	return 1 << 40
}

// environment is all that the child knows of its owner's.
func environment() []string {
	return slices.Concat([]string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}, gpu.Chosen(),
		gpu.Variables("OCL_ICD_VENDORS", "POCL_DEVICES", "POCL_MAX_PTHREAD_COUNT"))
}

// ask asks a question, and returns the answer of its kind.
func (c *child) ask(q Question, within time.Duration) (Answer, error) {
	q.Version = Protocol
	body, err := json.Marshal(q)
	if err != nil {
		return Answer{}, err
	}
	body, err = c.Ask(body, [2]int{MaxQuestion, MaxAnswer}, within)
	switch {
	case errors.Is(err, boxed.ErrTimeout):
		return Answer{}, c.wrong(codeTimeout, fmt.Sprintf("no answer to %q in %v", q.Kind, within), "")
	case errors.Is(err, boxed.ErrFrame):
		return Answer{}, c.wrong(codeProtocol, "the child wrote what is no answer", err.Error())
	case err != nil:
		return Answer{}, c.gone(err)
	}
	a, err := answerOf(body)
	switch {
	case err != nil:
		return Answer{}, c.wrong(codeProtocol, "the child wrote what is no answer", err.Error())
	case a.Kind == Failed:
		return Answer{}, reported(a)
	case a.Kind != q.Kind:
		return Answer{}, c.wrong(codeProtocol, "the child answers another question",
			fmt.Sprintf("asked %q, it answers %q", q.Kind, a.Kind))
	}
	return a, nil
}

// gone says why a child ended that gives no answer.
func (c *child) gone(err error) error {
	ended := c.Ended()
	if errors.Is(ended, confine.ErrUnavailable) {
		return c.wrong(codeIsolation, "the child cannot be isolated here", ended.Error())
	}
	return c.wrong(codeDied, "the child ended", errors.Join(ended, err).Error())
}

// wrong is an error with the last output of the child.
func (c *child) wrong(code, what, why string) error {
	if printed := c.Printed(maxWhy); printed != "" {
		why += "; it printed: " + printed
	}
	return wrong(code, what, why)
}

// close ends the child.
func (c *child) close() {
	if c.Child != nil {
		c.Close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// List says which devices this machine has: an *Error if it has no driver or no starling-device.
func List(ctx context.Context, o Options) ([]device.Capabilities, error) {
	c, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	a, err := c.ask(Question{Kind: Devices}, c.timeout)
	for i := range a.Devices { // the network gets to know these words
		d := &a.Devices[i]
		d.Name, d.Driver = boxed.Clip(d.Name, maxName), boxed.Clip(d.Driver, maxName)
	}
	return a.Devices, err
}

// maxName is how many characters of the name of a device are kept, and of its driver's version.
const maxName = 80

// mostCases is how many cases a child may say that the suite has.
const mostCases = 1 << 10

// Suite compares what a device computes with the portable kernels, on that many numbers of each sort, in pieces: see
// suite.New. The device is one of List that lacks nothing. progress gets what there is after each piece of a case.
func Suite(ctx context.Context, o Options, at, elements int, progress func(done, all int, r suite.Report)) (
	r suite.Report, err error) {
	c, err := start(ctx, o)
	if err != nil {
		return r, err
	}
	defer c.close()
	pieces := suite.Pieces(elements)
	for i, cases := 0, 1; i < cases; i++ {
		for piece := range pieces {
			a, err := c.ask(Question{Kind: Compare, Device: at, Elements: min(elements, suite.Piece), Case: i, Piece: piece},
				c.timeout)
			if err != nil {
				return r, err
			}
			if a.Report == nil || a.Cases < 1 || a.Cases > mostCases {
				return r, c.wrong(codeProtocol, "the child answers without a report", "")
			}
			cases = a.Cases
			r.Add(*a.Report)
			progress(i*pieces+piece+1, cases*pieces, r)
		}
	}
	return r, nil
}
