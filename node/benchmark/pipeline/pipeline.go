// Package pipeline measures models in stages, all of which are in this process: whether they end with the bits of the
// whole model, what it costs to hash and sign what they exchange, how much memory a stage takes, and whether liars are
// convicted. No network takes part. It is the engine of starling bench pipeline.
package pipeline

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/routing"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/role/pipeline"
)

// Options say what is measured.
type Options struct {
	Steps     int // of a unit
	Sequences int // of 128 tokens, of the step whose time is measured
	Repeats   int // of that measurement, of which the least counts

	Boundaries int // steps of models whose stages exchange fewer bytes
	Threads    int // of the whole model
	Progress   func(string)
}

// Cut is a model in stages.
type Cut struct {
	Model        string  `json:"model"`
	Stages       int     `json:"stages"`
	Microbatches int     `json:"microbatches"`
	Steps        int     `json:"steps"`
	Differ       int     `json:"differ"`         // tensors of the last state with other bits than those of the whole model
	Bytes        int64   `json:"bytes"`          // that the stages send in a step
	Idle         float64 `json:"idle"`           // share of a step in which a stage waits, if all stages take equal times
	InFlight     int     `json:"in_flight"`      // microbatches that the first stage has at a time
	LargestShare float64 `json:"memory_largest"` // memory of the largest stage, of that of the whole step
}

// Cost is the processor time of a step of all stages.
type Cost struct {
	Stages  int     `json:"stages"`
	Plain   float64 `json:"plain_ms"`  // neither hashed nor signed
	Signed  float64 `json:"signed_ms"` // with the roots of all values and states, and all signatures
	Percent float64 `json:"percent"`   // of the signed step
}

// Report is the outcome.
type Report struct {
	Cuts       []Cut             `json:"cuts"`
	Cost       Cost              `json:"cost"`
	Six        Cut               `json:"six"` // a model four times as large as a stage may be
	Boundaries []Boundary        `json:"boundaries"`
	Paces      []Pace            `json:"paces"` // of Late.Faster
	Late       []Late            `json:"late"`
	Routing    []routing.Setting `json:"routing"`
	Attacks    Attacks           `json:"attacks"`
	Bars       []benchmark.Bar   `json:"bars"`
}

// Limits of the bars.
const (
	mostCost   = 0.05
	mostMemory = 0.25
	mostGap    = 0.02

	mostLateGap = 0.03
	leastFaster = 1.6
)

// Measure measures everything.
func Measure(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	differ := 0
	for _, z := range []size{
		{family: "gpt2", tied: true, layers: 8, width: 32, length: 24, sequences: 4, microbatch: 1, steps: o.Steps},
		{family: "llama", layers: 8, width: 32, length: 24, sequences: 4, microbatch: 1, steps: o.Steps},
	} {
		for _, n := range []int{2, 4, 8} {
			o.Progress(fmt.Sprintf("%s in %d stages", z.family, n))
			c, err := compare(z, n, o.Threads)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return nil, err
			}
			r.Cuts, differ = append(r.Cuts, c), differ+c.Differ
		}
	}
	o.Progress("a model four times as large as a stage may be, in six stages")
	var err error
	if r.Six, err = compare(size{family: "llama", layers: 22, width: 128, length: 16, sequences: 6, microbatch: 1,
		steps: min(o.Steps, 3)}, 6, o.Threads); err != nil {
		return nil, err
	}
	o.Progress("the cost of hashing and signing")
	if r.Cost, err = cost(ctx, size{family: "gpt2", layers: 8, width: 256, length: 128, sequences: o.Sequences,
		microbatch: o.Sequences / 8}, 4, o.Repeats); err != nil {
		return nil, err
	}
	o.Progress("values between stages in fewer bytes")
	if r.Boundaries, err = boundaries(ctx, o.Boundaries, o.Threads); err != nil {
		return nil, err
	}
	o.Progress("stages that do not wait for each other")
	if r.Late, r.Paces, err = lates(ctx, o.Boundaries, o.Threads); err != nil {
		return nil, err
	}
	o.Progress("stages of workers of unequal speed")
	if r.Routing, err = routing.Shares(routing.Settings, routed(o.Threads)); err != nil {
		return nil, err
	}
	for _, x := range []size{{}, {late: 2}, {skip: 0.25}} {
		o.Progress("liars in every stage")
		j, err := newJob(size{family: "gpt2", tied: true, layers: 4, width: 16, length: 10, sequences: 4, microbatch: 2,
			steps: 3 + x.late, late: x.late, skip: x.skip}, 4, o.Threads)
		if err != nil {
			return nil, err
		}
		if err = errors.Join(j.attack(&r.Attacks), ctx.Err()); err != nil {
			return nil, err
		}
	}
	a, off := r.Attacks, int64(0)
	for _, b := range r.Boundaries {
		off, differ = off+max(b.Excess, -b.Excess), differ+b.Differ
	}
	for _, l := range r.Late {
		differ += l.Differ
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtLeast("times the throughput of 1F1B, of stages that do not wait, at 100 ms and 150 ms a microbatch",
			r.Late[1].Faster[barPace], leastFaster),
		benchmark.AtLeast("share of the ideal throughput, of three stages of three workers of speeds 3, 2 and 1, at 100 ms",
			r.Routing[routing.Barred].Least, routing.Least),
		benchmark.AtMost("tensors of models in 2, 4 and 8 stages with other bits than those of the whole model",
			float64(differ+r.Six.Differ), 0),
		benchmark.AtMost("processor time of hashing and signing, of a step in four stages", r.Cost.Percent/100, mostCost),
		benchmark.AtMost("memory of the largest of six stages, of that of the whole model", r.Six.LargestShare, mostMemory),
		benchmark.AtMost("loss of values in 4 bits, above that of float32", r.Boundaries[1].Gap, mostGap),
		benchmark.AtMost("bytes between stages that are not those of the formula", float64(off), 0),
		benchmark.AtLeast("share of lying stages that are convicted", share(a.Convicted, a.Liars), 1),
		benchmark.AtLeast("share of values that a stage denies, and has signed", share(a.Shown, a.Denials), 1),
		benchmark.AtLeast("share of withheld frames of which the right stage is named", share(a.Named, a.Withheld), 1),
		benchmark.AtMost("honest stages that are found wrong", float64(a.Wrong), 0),
		benchmark.AtLeast("share of restarts in the middle of a step after which all stages have the bits of the whole model",
			share(a.Resumed, a.Restarts), 1),
	}
	if o.Boundaries >= lossSteps {
		r.Bars = append(r.Bars, benchmark.AtMost("loss of stages that do not wait, above that of stages that do",
			r.Late[1].Gap, mostLateGap))
	}
	return r, nil
}

// lossSteps is from how many steps on losses are compared: before, the loss falls by more in a step than late gradients
// cost.
const lossSteps = 400

func share(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }

// compare computes a unit in one program and in stages.
func compare(z size, n, threads int) (c Cut, err error) {
	j, err := newJob(z, n, threads)
	if err != nil {
		return c, err
	}
	c = Cut{Model: z.family, Stages: n, Microbatches: j.plan.Micro, Steps: z.steps}
	want, err := j.task.Run(j.base, unit, nil, nil)
	if err != nil {
		return c, err
	}
	p := j.play(nil, nil, false)
	if err := errors.Join(p.errs...); err != nil {
		return c, err
	}
	ends := map[string]canon.Digest{}
	for s, r := range p.results {
		for i, x := range r.End {
			ends[j.plan.Stages[s].State[i]] = x.Root()
		}
	}
	for i, name := range train.StateNames(j.task.Step) {
		if ends[name] != want.End[i].Root() {
			c.Differ++
		}
	}
	for a := range n {
		for b := range n {
			c.Bytes += j.plan.Bytes(a, b)
		}
	}
	return c, j.schedule(&c)
}

// schedule computes the figures that follow from the plan.
func (j *job) schedule(c *Cut) error {
	orders := j.plan.Orders()
	long := func(at order.Place) float64 {
		if at.Task.Phase == order.Forward || at.Task.Phase == order.Backward {
			return 1
		}
		return 0
	}
	ends, err := order.Timed(orders, j.plan.Waits(), long, func(_, _ order.Place) float64 { return 0 })
	if err != nil {
		return err
	}
	last := 0.0
	for _, e := range ends {
		last = max(last, e)
	}
	c.Idle = benchmark.Rounded(1-float64(2*j.plan.Micro)/last, 4)
	c.InFlight = j.inFlight(orders[0])
	var largest int64
	for s := range j.plan.Stages {
		st, err := j.stage(s, orders[s])
		if err != nil {
			return err
		}
		largest = max(largest, st.Bytes())
	}
	c.LargestShare = benchmark.Rounded(float64(largest)/float64(pass.StepBytes(j.task.Exec, j.task.Step)), 4)
	return nil
}

// stage is a stage with its first state.
func (j *job) stage(s int, tasks []order.Task) (*pass.Stage, error) {
	u := &pipeline.Unit{Replica: &pipeline.Replica{Plan: j.plan}, Stage: s}
	state, err := u.Begin(j.weights)
	if err != nil {
		return nil, err
	}
	return pass.New(j.plan, s, tasks, state, 1)
}

// plain is a pass.Wire that neither hashes nor signs.
type plain struct {
	*line
	early map[order.Place]pass.Frame
}

func (w plain) Send(to int, f pass.Frame) error { return w.line.Send(to, pipeline.Message{Frame: &f}) }

func (w plain) Receive(from int, _ uint32, t order.Task) (pass.Frame, error) {
	at := order.Place{Stage: from, Task: t}
	for {
		if f, ok := w.early[at]; ok {
			delete(w.early, at)
			return f, nil
		}
		m, err := w.line.Receive(from)
		if err != nil {
			return pass.Frame{}, err
		}
		w.early[order.Place{Stage: from, Task: m.Frame.Task}] = *m.Frame
	}
}

// bare computes the unit in stages without a hash or a signature.
func (j *job) bare() error {
	n := len(j.plan.Stages)
	h, errs, orders := newHub(n), make([]error, n), j.plan.Orders()
	var all sync.WaitGroup
	for s := range n {
		st, err := j.stage(s, orders[s])
		if err != nil {
			return err
		}
		u := &pipeline.Unit{Replica: &pipeline.Replica{Number: unit, Plan: j.plan}, Stage: s, Spec: j.task.Spec,
			Corpus: j.task.Corpus}
		all.Go(func() {
			defer h.end()
			w := plain{&line{hub: h, plan: j.plan, stage: s}, map[order.Place]pass.Frame{}}
			for step := range j.task.Spec.Steps {
				var in map[string]*tensor.Tensor
				if in, errs[s] = u.Inputs(step); errs[s] != nil {
					return
				}
				if _, errs[s] = st.Step(step, in, w); errs[s] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// cost measures the processor time of a step of all stages, that by which a unit of three steps takes longer than one
// of one step, and that of all hashes and signatures of a step.
func cost(ctx context.Context, z size, n, repeats int) (c Cost, err error) {
	c.Stages = n
	extra := 0.0
	for range repeats {
		var plain [2]float64
		var j *job
		for i, steps := range []int{1, 3} {
			z.steps = steps
			if j, err = newJob(z, n, 1); err != nil {
				return c, err
			}
			plain[i], err = timed(j.bare)
			if err = errors.Join(err, ctx.Err()); err != nil {
				return c, err
			}
		}
		vouched, err := timed(j.vouch)
		if err != nil {
			return c, err
		}
		c.Plain, extra = least(c.Plain, (plain[1]-plain[0])/2), least(extra, vouched)
	}
	c.Signed = c.Plain + extra
	c.Percent = benchmark.Rounded(100*extra/c.Signed, 3)
	return c, nil
}

// vouch does all that a step of all stages does besides its computation: the sender and the receiver of each value hash
// it, the sender of a frame and the receiver of those of a link sign, each checks the other, and each stage hashes its
// state.
func (j *job) vouch() error {
	parties, link, wrong := holders(2), handover.Link{}, 0
	word := func(by handover.Side) {
		statement := handover.Statement(link, handover.Head{}, by)
		if !parties[0].Verify(statement, ed25519.Sign(key(0), statement)) {
			wrong++
		}
	}
	links, frames := map[[2]int]bool{}, map[string]bool{}
	for _, t := range j.plan.Transfers {
		x := tensor.New(t.Shape)
		if sent, received := x.Root(), x.Root(); sent != received {
			wrong++
		}
		links[[2]int{t.From, t.To}], frames[fmt.Sprint(t.From, t.To, t.After)] = true, true
	}
	for range frames {
		word(handover.Sender)
	}
	for range links {
		word(handover.Receiver)
	}
	for s := range j.plan.Stages {
		u := &pipeline.Unit{Replica: &pipeline.Replica{Plan: j.plan}, Stage: s}
		state, err := u.Begin(j.weights)
		if err != nil {
			return err
		}
		train.Roots(state)
	}
	if wrong > 0 {
		return fmt.Errorf("%d hashes or signatures are wrong", wrong)
	}
	return nil
}

// timed is the processor time of a run, in milliseconds.
func timed(run func() error) (float64, error) {
	begin, _ := benchmark.Usage()
	err := run()
	end, _ := benchmark.Usage()
	return float64((end-begin)/time.Microsecond) / 1e3, err
}

// least is the smaller of two measurements, the first of which may be missing.
func least(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return min(before, now)
}
