// Package torch takes the steps of work units in PyTorch: in a child process that runs the Python of the worker's
// owner, confined by package confine, over pipes and shared memory. docs/executor.md describes the protocol.
//
// Its results are close to those of the built-in engine and not equal to them, so it is for runs with a tolerance. It
// decides nothing: an executor that fails returns a code and a reason, and its caller continues without it.
package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/boxed"
	"github.com/starling-network/starling/node/confine"
	sdk "github.com/starling-network/starling/sdk/python"
)

// Options are what the owner of a worker chooses.
type Options struct {
	Python  string        // program with torch, such as python3; "": DefaultPython
	Module  string        // file of the owner's with a function step; "": the program of the job, operator by operator
	Device  string        // as torch calls it: cpu, cuda, cuda:1; "": cpu
	Threads int           // of torch
	MiB     uint64        // that the child may allocate; 0: DefaultMiB
	Timeout time.Duration // of one request, such as a step; 0: DefaultTimeout
	Box     confine.Level // "": confine.Full
}

// Defaults of Options.
const (
	DefaultPython  = "python3"
	DefaultDevice  = "cpu"
	DefaultMiB     = 16 << 10
	DefaultTimeout = 5 * time.Minute
)

// scratchBytes is the size of the child's scratch folder.
const scratchBytes = 256 << 20

func (o Options) filled() Options {
	if o.Python == "" {
		o.Python = DefaultPython
	}
	if o.Device == "" {
		o.Device = DefaultDevice
	}
	if o.MiB == 0 {
		o.MiB = DefaultMiB
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Box == "" {
		o.Box = confine.Full
	}
	return o
}

// Version says what a child computes with.
type Version struct {
	Torch  string
	Device string
}

// Check starts a child and ends it: an *Error if this machine cannot do what the options say.
func Check(ctx context.Context, o Options) (Version, error) {
	c, v, err := start(ctx, o.filled())
	if err != nil {
		return Version{}, err
	}
	c.close()
	return v, nil
}

// Executor takes steps of one job. It implements train.Executor. It starts its child with the first unit, and again
// with the next one after a failure; after maxFailures in a row it does not try any more. Its errors are of type
// *Error.
type Executor struct {
	ctx     context.Context
	options Options
	task    *train.Task
	layout  layout
	graders map[int]*cpu.Exec // of the task; nil: none is asked for yet

	child    *child // nil: none is there
	failures int
	last     error
}

var _ train.Executor = (*Executor)(nil)

// maxFailures is how many units in a row a child may fail at.
const maxFailures = 3

// New returns an executor for the units of a task. Its child ends with the context.
func New(ctx context.Context, o Options, task *train.Task) *Executor {
	return &Executor{ctx: ctx, options: o.filled(), task: task, layout: layoutOf(task)}
}

// Close ends the child.
func (x *Executor) Close() {
	if x.child != nil {
		x.child.close()
		x.child = nil
	}
}

// Begin implements train.Executor.
func (x *Executor) Begin(state []*tensor.Tensor) error {
	if x.failures >= maxFailures {
		return x.last
	}
	return x.failed(x.begin(state))
}

func (x *Executor) begin(state []*tensor.Tensor) error {
	if x.child == nil {
		c, _, err := start(x.ctx, x.options)
		if err != nil {
			return err
		}
		x.child = c
		if err := x.open(); err != nil {
			return err
		}
	}
	for i, t := range state {
		if _, err := x.child.Memory.WriteAt(t.Bytes(), x.layout.State[i].Offset); err != nil {
			return x.child.wrong(codeMemory, "the state does not fit into the memory that is shared", err)
		}
	}
	_, err := x.child.ask(request{Type: "begin"}, "begun")
	return err
}

// open tells the child about the job.
func (x *Executor) open() error {
	for i, t := range x.task.Frozen {
		if _, err := x.child.Memory.WriteAt(t.Bytes(), x.layout.Frozen[i].Offset); err != nil {
			return x.child.wrong(codeMemory, "the model does not fit into the memory that is shared", err)
		}
	}
	if err := x.child.Fix(x.layout.Bytes); err != nil {
		return x.child.wrong(codeMemory, "there is no memory to share", err)
	}
	_, err := x.child.ask(request{Type: "open", Program: programOf(x.task.Step), layout: x.layout}, "opened")
	return err
}

// Step implements train.Executor.
func (x *Executor) Step(tokens []int32, dice *tensor.Tensor, lr, c1, c2 float32) (float32, error) {
	if x.child == nil {
		return 0, errNoUnit
	}
	if _, err := x.child.Memory.WriteAt(tensor.FromI32(tokens, len(tokens)).Bytes(), x.layout.Tokens.Offset); err != nil {
		return 0, x.failed(x.child.wrong(codeMemory, "a batch does not fit into the memory that is shared", err))
	}
	step := request{Type: "step", LR: &lr, C1: &c1, C2: &c2}
	if dice != nil {
		step.Dice = dice.I64()
	}
	r, err := x.stepped(step)
	return r.loss(), x.failed(err)
}

// State implements train.Executor.
func (x *Executor) State(into []*tensor.Tensor) error {
	if x.child == nil {
		return errNoUnit
	}
	if _, err := x.child.ask(request{Type: "state"}, "written"); err != nil {
		return x.failed(err)
	}
	for i, t := range into {
		if _, err := x.child.Memory.ReadAt(t.Bytes(), x.layout.State[i].Offset); err != nil {
			return x.failed(x.child.wrong(codeMemory, "the state cannot be read from the memory that is shared", err))
		}
	}
	x.failures = 0
	return nil
}

var errNoUnit = errors.New("torch: no unit was begun")

// failed ends the child after an error: it is of no use for the next unit.
func (x *Executor) failed(err error) error {
	if err != nil {
		x.Close()
		x.failures++
		x.last = err
	}
	return err
}

// interpreter is the owner's Python: the program, and the folders that it imports from.
type interpreter struct {
	program string
	folders []string // that only the owner has
	imports []string // those of them that it imports from
}

// ask is what a Python is asked about itself, outside of any box: it is the owner's.
const ask = `import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix] + sys.path))`

// askTimeout is how long a Python may take to say where it is.
const askTimeout = time.Minute

// find asks a Python where it is.
func find(ctx context.Context, python string) (interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", ask).Output()
	if err != nil {
		return interpreter{}, wrong(codePython, "cannot run "+python, err.Error())
	}
	var paths []string
	if err := json.Unmarshal(out, &paths); err != nil || len(paths) < 3 || !filepath.IsAbs(paths[0]) {
		return interpreter{}, wrong(codePython, python+" is no Python",
			"asked where it is, it says "+boxed.Clip(string(out), 200))
	}
	i := interpreter{program: paths[0]}
	for k, p := range paths[1:] {
		if !filepath.IsAbs(p) || p == "/" || p == "/usr" || strings.HasPrefix(p, "/usr/") {
			continue
		}
		i.folders = append(i.folders, p)
		if k >= 2 {
			i.imports = append(i.imports, p)
		}
	}
	return i, nil
}

// script writes the Python of the executor into a folder.
func script(dir string) error {
	if err := os.CopyFS(dir, sdk.Executor); err != nil {
		return err
	}
	// so that no other package of this name is taken
	return os.WriteFile(filepath.Join(dir, "starling", "__init__.py"), nil, 0o600)
}

// CheckAsked finds out whether PyTorch can take steps here, before anything is promised: an *Error if it cannot.
// nil options ask for nothing.
func CheckAsked(ctx context.Context, o *Options, say func(string)) error {
	if o == nil {
		return nil
	}
	v, err := Check(ctx, *o)
	if err == nil && say != nil {
		say(fmt.Sprintf("PyTorch %s on %s takes the steps of jobs that ask for it", v.Torch, v.Device))
	}
	return err
}
