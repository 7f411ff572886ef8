// Package cpu runs programs on the processor. Run computes the steps of a plan (compute/lower) with the kernels of
// compute/kernel, on memory that lasts from run to run; Trace shows every intermediate value; Eval computes one
// operator with the portable kernels. All three yield the bits that the program specifies, on every machine and at any
// number of threads.
//
// It plans nothing, and does not decide whose programs are run: see compute/admit.
package cpu

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"github.com/starling-network/starling/compute/cpu/spare"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/mapped"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Exec runs one program again and again on the same memory. It is for one goroutine at a time.
type Exec struct {
	p       *program.Program
	shown   *program.Program // by Trace: p, before it was made to recompute
	plan    *lower.Plan
	path    kernel.Path // 0 is the active path at the time of a run
	steps   []boundStep
	inputs  map[string]int      // operator of each input
	shares  sync.Map            // what Shares has said, by the names of input and output
	memory  [][]byte            // by store; those of inputs and outputs are set during a run
	workers []worker            // one a thread
	block   *mapped.Block       // what lasts from run to run; nil: nothing does yet
	stop    func() bool         // nil: runs are not stopped
	kept    spare.Spares[*Exec] // operators of shown, for Trace
}

// A worker is the state of one thread of a group.
type worker struct {
	scratch   []byte
	registers [][]byte
	operands  [][]byte
}

// Compile plans a program for up to the given number of threads, which is not more than the machine has processors if
// wisely chosen and never changes a result. It checks the rules of program.Check, but no limits. Memory for
// intermediate values is allocated by the first run.
func Compile(p *program.Program, threads int) (*Exec, error) { return compile(p, threads, 0) }

// CompileLean is Compile for less memory and more time: lower.Recompute. The bits are those of Compile.
func CompileLean(p *program.Program, threads int) (*Exec, error) {
	if err := p.Check(program.Unlimited); err != nil {
		return nil, err
	}
	x, err := compile(lower.Recompute(p), threads, 0)
	if err == nil {
		x.shown = p
	}
	return x, err
}

func compile(p *program.Program, threads int, path kernel.Path) (*Exec, error) {
	if err := p.Check(program.Unlimited); err != nil {
		return nil, err
	}
	shown, p := p, lower.Fresh(p)
	x := &Exec{p: p, shown: shown, plan: lower.Program(p), path: path, inputs: map[string]int{},
		workers: make([]worker, max(threads, 1))}
	x.steps = bindAll(x.plan, elementary.Math{Path: path, Version: p.Numerics})
	for _, in := range p.Inputs() {
		x.inputs[in.Name] = int(in.Value)
	}
	return x, nil
}

func bindAll(pl *lower.Plan, m elementary.Math) []boundStep {
	steps := make([]boundStep, len(pl.Steps))
	for i := range pl.Steps {
		steps[i] = bind(pl, &pl.Steps[i], m)
	}
	return steps
}

// Threads is the number of threads that the program is compiled for.
func (x *Exec) Threads() int { return len(x.workers) }

// Run computes the outputs from the inputs, each given by its name and of exactly the shape of the program. The outputs
// are new tensors. Errors wrap program.ErrInput or program.ErrIndex.
func (x *Exec) Run(in map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	out := make(map[string]*tensor.Tensor, len(x.p.Outputs))
	for _, o := range x.p.Outputs {
		out[o.Name] = tensor.New(x.p.Ops[o.Value].Out.Clone())
	}
	if err := x.RunInto(in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Shares reports whether one tensor may be given to RunInto as both the input and the output: when the output is
// written, nothing reads the input any more. So a step can update its state in place. It may be asked at any time.
func (x *Exec) Shares(input, output string) bool {
	v, ok := x.inputs[input]
	if !ok {
		return false
	}
	key := [2]string{input, output}
	if shares, known := x.shares.Load(key); known {
		return shares.(bool)
	}
	i := slices.IndexFunc(x.p.Outputs, func(o program.Output) bool { return o.Name == output })
	shares := i >= 0 && x.plan.MayShare(v, i)
	x.shares.Store(key, shares)
	return shares
}

// RunInto is Run with tensors of the caller's for the outputs: one for each, of its shape, sharing no memory with
// another tensor given but with an input that it Shares. After an error their contents are undefined.
func (x *Exec) RunInto(in, out map[string]*tensor.Tensor) error {
	if err := x.checkInputs(in); err != nil {
		return err
	}
	if err := x.checkOutputs(in, out); err != nil {
		return err
	}
	x.bind(in, out)
	defer x.unbind()
	intact := 0 // steps before which the run may stop
	if x.stop != nil {
		intact = x.intact(in, out)
	}
	for i := range x.steps {
		if i < intact && x.stop() {
			return ErrStopped
		}
		if err := x.steps[i].run(x); err != nil {
			return err
		}
	}
	for _, o := range x.p.Outputs {
		out[o.Name].Canonicalize()
	}
	return nil
}

func (x *Exec) checkInputs(in map[string]*tensor.Tensor) error {
	for name, v := range x.inputs {
		t, want := in[name], x.p.Ops[v].Out
		switch {
		case t == nil:
			return fmt.Errorf("%w: input %q is missing, want %s", program.ErrInput, name, want)
		case !t.Shape.Equal(want):
			return fmt.Errorf("%w: input %q is %s, want %s", program.ErrInput, name, t.Shape, want)
		case want.DType == tensor.Bool && slices.ContainsFunc(t.Bytes(), func(b byte) bool { return b > 1 }):
			return fmt.Errorf("%w: input %q holds a boolean other than 0 and 1", program.ErrInput, name)
		}
	}
	if len(in) > len(x.inputs) {
		for name := range in {
			if _, ok := x.inputs[name]; !ok {
				return fmt.Errorf("%w: the program has no input %q", program.ErrInput, name)
			}
		}
	}
	return nil
}

func (x *Exec) checkOutputs(in, out map[string]*tensor.Tensor) error {
	inputs, written := make(map[*byte][]string, len(in)), make(map[*byte]string, len(out))
	for _, i := range x.p.Inputs() {
		at := unsafe.SliceData(in[i.Name].Bytes())
		inputs[at] = append(inputs[at], i.Name)
	}
	for _, o := range x.p.Outputs {
		t, want := out[o.Name], x.p.Ops[o.Value].Out
		if t == nil || !t.Shape.Equal(want) {
			return fmt.Errorf("%w: no tensor of %s for output %q", program.ErrInput, want, o.Name)
		}
		at := unsafe.SliceData(t.Bytes())
		if other, ok := written[at]; ok {
			return fmt.Errorf("%w: outputs %q and %q share memory", program.ErrInput, o.Name, other)
		}
		for _, name := range inputs[at] {
			if in[name] != t || !x.Shares(name, o.Name) {
				return fmt.Errorf("%w: output %q and input %q share memory", program.ErrInput, o.Name, name)
			}
		}
		written[at] = o.Name
	}
	return nil
}

// allocate makes the memory that lasts from run to run.
func (x *Exec) allocate() {
	scratch, registers := needs(x.steps)
	total := tensor.AlignUp(x.plan.Arena) + len(x.workers)*tensor.AlignUp(scratch)
	for _, s := range x.plan.Stores {
		if s.Class == lower.InProgram {
			total += tensor.AlignUp(s.Bytes)
		}
	}
	if total >= swept {
		debug.FreeOSMemory()
	}
	x.block = mapped.New(total)
	rest := x.block.Bytes
	take := func(n int) []byte {
		part := rest[:n:n]
		rest = rest[tensor.AlignUp(n):]
		return part
	}
	arena := take(x.plan.Arena)
	x.memory = make([][]byte, len(x.plan.Stores))
	for i, s := range x.plan.Stores {
		switch {
		case s.Class == lower.InArena && s.Used:
			x.memory[i] = arena[s.Offset : s.Offset+s.Bytes : s.Offset+s.Bytes]
		case s.Class == lower.InProgram:
			x.memory[i] = take(s.Bytes)
			copy(x.memory[i], x.p.Ops[s.Index].Data)
		}
	}
	for i := range x.workers {
		x.workers[i] = worker{take(scratch), make([][]byte, registers), make([][]byte, maxLaneOperands)}
	}
}

// Release gives back the memory that lasts from run to run, and that of matrix products, if it is worth while: the
// next run takes it again.
func (x *Exec) Release() { x.release(worthwhile) }

// Drop is Release, however little the memory is.
func (x *Exec) Drop() { x.release(0) }

func (x *Exec) release(least int) {
	if x.block == nil || len(x.block.Bytes) < least {
		return
	}
	clear(x.workers)
	x.block.Free()
	x.block, x.memory = nil, nil
	matmul.Release()
}

const (
	worthwhile = 32 << 20  // bytes that are given back between runs: to take them again costs less than 1/1000 of a run
	swept      = 128 << 20 // bytes that the collector will not see, before which garbage leaves the process
)

// needs is what the steps need of a worker.
func needs(steps []boundStep) (scratch, registers int) {
	for _, s := range steps {
		scratch, registers = max(scratch, s.scratch), max(registers, s.registers)
	}
	return scratch, registers
}

// maxLaneOperands is the largest number of operands of an elementwise operator: those of AdamP.
const maxLaneOperands = 6

func (x *Exec) bind(in, out map[string]*tensor.Tensor) {
	if x.block == nil {
		x.allocate()
	}
	for i, s := range x.plan.Stores {
		switch s.Class {
		case lower.InInput:
			x.memory[i] = in[x.p.Ops[s.Index].Name].Bytes()
		case lower.InOutput:
			x.memory[i] = out[x.p.Outputs[s.Index].Name].Bytes()
		}
	}
}

// unbind forgets the caller's tensors.
func (x *Exec) unbind() {
	for i, s := range x.plan.Stores {
		if s.Class == lower.InInput || s.Class == lower.InOutput {
			x.memory[i] = nil
		}
	}
	for _, w := range x.workers {
		clear(w.registers)
		clear(w.operands)
	}
}

// share spreads n tasks that cost about work operations each over the threads. f gets the tasks of one thread, and its
// worker.
func (x *Exec) share(n, work int, f func(w *worker, lo, hi int)) {
	threads := min(len(x.workers), n)
	if n*work < minParallel {
		threads = 1
	}
	kernel.Parallel(threads, threads, func(lo, hi int) {
		for t := lo; t < hi; t++ {
			f(&x.workers[t], t*n/threads, (t+1)*n/threads)
		}
	})
}

// parallel spreads n results that cost about work operations each over the threads.
func (x *Exec) parallel(n, work int, f func(lo, hi int)) {
	threads := len(x.workers)
	if n*work < minParallel {
		threads = 1
	}
	kernel.Parallel(threads, n, f)
}
