package staged

import (
	"context"
	"slices"
	"sync"

	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
	"github.com/starling-network/starling/role/pipeline"
)

// A member has the memory for one stage. Where it computes others as well, their states and values lie in the pages of
// a file, which the system takes back while another one is computed.

// scratch is memory for the states and values of some stages; nil: they stay in that of the collector.
func scratch(x *Engine, of ...int) hold.Scratch {
	if x.Aside == nil {
		return nil
	}
	m, err := bundle.StagesMemory(x.Task().Spec, x.Task().Step, x.Threads)
	if err != nil {
		return nil
	}
	var bytes int64
	for _, s := range of {
		bytes += m.Step[s]
	}
	return x.Aside.Scratch(bytes)
}

// resting lets a stage rest while it waits.
type resting struct {
	pipeline.Transport
	lies hold.Scratch
}

// Receive implements pipeline.Transport.
func (r resting) Receive(from int) (pipeline.Message, error) {
	r.lies.Rest()
	return r.Transport.Receive(from)
}

// alternating lets the units of one worker compute one task at a time: a unit holds the turn while it computes, and
// gives it up while it sends, or waits for others.
type alternating struct {
	pipeline.Transport
	turn *sync.Mutex
}

// Send implements pipeline.Transport.
func (a alternating) Send(to int, m pipeline.Message) error {
	a.turn.Unlock()
	defer a.turn.Lock()
	return a.Transport.Send(to, m)
}

// Receive implements pipeline.Transport.
func (a alternating) Receive(from int) (pipeline.Message, error) {
	a.turn.Unlock()
	defer a.turn.Lock()
	return a.Transport.Receive(from)
}

// whole executes all stages of a replica, one task at a time, and returns what one of them exchanges.
func (x *Engine) whole(ctx context.Context, name terms.Checkpoint, unit uint32) (*values, error) {
	base, err := x.Base(name)
	if err != nil {
		return nil, err
	}
	stage, replica := x.stage(unit)
	v := newValues()
	turns := &turns{ctx: ctx, sent: map[[2]int][]pass.Frame{}, rest: func() {}, seen: func(from, to int, f pass.Frame) {
		if from == stage || to == stage {
			v.frame(x.plan, from, to, f)
		}
	}}
	turns.passed.L = &turns.mu
	room, all := tensor.New, make([]int, len(x.plan.Stages))
	for s := range all {
		all[s] = s
	}
	if s := scratch(x, all...); s != nil {
		room, turns.rest = s.New, s.Rest
	}
	of, t := &pipeline.Replica{Round: name.Round, Number: replica, Plan: x.plan, Orders: x.orders}, x.Task()
	begin := weights(x, base)
	return v, engine.Exclusively(x.Engine, func() error {
		var working sync.WaitGroup
		for s := range all {
			u := &pipeline.Unit{Replica: of, Stage: s, Spec: t.Spec.Unsplit(), Corpus: t.Corpus, Threads: x.Threads, Room: room}
			working.Go(func() { turns.take(u, begin) })
		}
		working.Wait()
		return turns.err
	})
}

// turns lets the stages of a replica compute in turn, and passes frames between them.
type turns struct {
	ctx  context.Context
	rest func()
	seen func(from, to int, f pass.Frame)

	mu     sync.Mutex // of the stage that computes
	passed sync.Cond  // a frame, or an error
	sent   map[[2]int][]pass.Frame
	err    error // that ended a stage
}

// take computes the unit of a stage.
func (r *turns) take(u *pipeline.Unit, weights map[string]*tensor.Tensor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.passed.Broadcast()
	defer r.rest()
	st, err := u.Open(weights)
	for step := uint32(0); err == nil && step < u.Spec.StepsOf(u.Number); step++ {
		var in map[string]*tensor.Tensor
		if in, err = u.Inputs(step); err == nil {
			_, err = st.Step(step, in, turn{r, u.Stage})
		}
	}
	if err != nil && r.err == nil {
		r.err = err
	}
}

// turn is the end of a stage, which computes. It implements pass.Wire.
type turn struct {
	*turns
	stage int
}

// Send implements pass.Wire.
func (t turn) Send(to int, f pass.Frame) error {
	t.seen(t.stage, to, f)
	f.Values = slices.Clone(f.Values)
	for i, x := range f.Values {
		f.Values[i] = x.Clone()
	}
	link := [2]int{t.stage, to}
	t.sent[link] = append(t.sent[link], f)
	t.passed.Broadcast()
	return t.ctx.Err()
}

// Receive implements pass.Wire.
func (t turn) Receive(from int, step uint32, of order.Task) (pass.Frame, error) {
	for link := [2]int{from, t.stage}; ; {
		i := slices.IndexFunc(t.sent[link], func(f pass.Frame) bool { return f.Step == step && f.Task == of })
		if i >= 0 {
			f := t.sent[link][i]
			t.sent[link] = slices.Delete(t.sent[link], i, i+1)
			return f, nil
		}
		if t.err != nil {
			return pass.Frame{}, t.err
		}
		if err := t.ctx.Err(); err != nil {
			return pass.Frame{}, err
		}
		t.rest()
		t.passed.Wait()
	}
}
