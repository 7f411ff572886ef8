package accelerator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Runner runs one program on a device, in a child of its own. It is for one goroutine at a time. After an error it is
// of no use but to be closed.
type Runner struct {
	child  *child
	layout Layout
	least  time.Duration // how long a step may take at the least
	runs   int
	slow   time.Duration // the longest time of a run after the first, in which drivers compile
}

// NewRunner compiles a program for the device at a place of List. Outputs that are carried are the inputs of the same
// names in the next run.
func NewRunner(ctx context.Context, o Options, at int, p *program.Program, carried []string) (r *Runner, err error) {
	c, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	r = &Runner{child: c, layout: LayoutOf(p), least: o.RunTimeout}
	if r.least == 0 {
		r.least = DefaultRunTimeout
	}
	if err := c.Fix(r.layout.Bytes); err != nil {
		return nil, c.wrong(CodeFailed, "there is no memory to share", err.Error())
	}
	_, err = c.ask(Question{Kind: Compile, Device: at, Program: p.Encode(), Carried: carried}, c.timeout)
	return r, err
}

// Put sets inputs.
func (r *Runner) Put(in map[string]*tensor.Tensor) error { return r.ask(Question{Kind: Put}, in, nil) }

// Run sets inputs, runs the program some times, and reads outputs.
func (r *Runner) Run(times int, in, out map[string]*tensor.Tensor) error {
	return r.ask(Question{Kind: Step, Times: times}, in, out)
}

// Get reads outputs.
func (r *Runner) Get(out map[string]*tensor.Tensor) error {
	return r.ask(Question{Kind: Get}, nil, out)
}

// ask writes tensors to the memory that is shared, and asks a question about them and those wanted.
func (r *Runner) ask(q Question, in, out map[string]*tensor.Tensor) error {
	q.Put, q.Get = slices.Sorted(maps.Keys(in)), slices.Sorted(maps.Keys(out))
	for _, name := range q.Put {
		if err := r.layout.In[name].Write(r.child.Memory, in[name]); err != nil {
			return r.child.wrong(CodeFailed, fmt.Sprintf("input %q cannot be shared", name), err.Error())
		}
	}
	began := time.Now()
	if _, err := r.child.ask(q, r.within(q)); err != nil {
		return err
	}
	if q.Kind == Step {
		if r.runs++; r.runs > 1 {
			r.slow = max(r.slow, time.Since(began)/time.Duration(max(q.Times, 1)))
		}
	}
	for _, name := range q.Get {
		if err := r.layout.Out[name].Read(r.child.Memory, out[name]); err != nil {
			return r.child.wrong(CodeFailed, fmt.Sprintf("output %q cannot be shared", name), err.Error())
		}
	}
	return nil
}

// slower is how many times as long as the slowest run so far a run may take.
const slower = 20

// within is how long a question may take: a driver that hangs must not cost the time of a whole unit.
func (r *Runner) within(q Question) time.Duration {
	if r.slow == 0 {
		return r.child.timeout
	}
	return min(r.child.timeout, max(r.least, slower*r.slow*time.Duration(max(q.Times, 1))))
}

// Close ends the child.
func (r *Runner) Close() { r.child.close() }
