package member

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/node/member/pipes"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/staged"
)

// units computes units of a job: as compute does, or with the other workers of a replica where they are stages.
func (p *Process) units(ctx context.Context, j *bundle.Job, e *engine.Engine, blobs Served) party.Compute {
	if j.Spec.Pipeline == nil {
		return p.compute(ctx, j, e)
	}
	wires := &pipes.Pipes{ID: p.ID, Chain: p.Chain, Channels: p.Host.Channels(), Deadline: p.unitDeadline}
	return staged.New(&staged.Engine{Engine: e, Job: p.Chain.Job, Peers: blobs, Aside: p.Holding.Aside, Threads: p.Threads,
		Wires: wires})
}

// unitDeadline is how long a worker has for a unit, at the rate of the blocks so far.
func (p *Process) unitDeadline(u work.UnitID) time.Duration {
	s := p.State.Load()
	if s == nil || p.Instruments == nil {
		return 0
	}
	d, ok := s.Find(u)
	height, interval := p.Instruments.Pace()
	if !ok {
		return 0
	}
	return interval * time.Duration(max(0, d.Unit.Deadline-height))
}

// compute is what units of a job are computed with: the engine, or PyTorch where the job asks for it, its terms
// tolerate it and the owner of this process has set it up.
func (p *Process) compute(ctx context.Context, j *bundle.Job, e *engine.Engine) party.Compute {
	e.Task().Device = p.Device.For(e.Task(), func(err error) {
		p.Log.Warn("a device failed at what the processor computes", "err", err)
		if p.Notify != nil {
			p.Notify(fmt.Sprintf("%v; the processor computes", err))
		}
	})
	if j.Executor != bundle.Torch || p.Torch == nil {
		return e
	}
	o := *p.Torch
	o.Threads = max(o.Threads, p.Threads)
	p.steps = torch.New(ctx, o, e.Task())
	return engine.Tolerated{Engine: e, On: p.steps, Failed: func(unit uint32, err error) {
		p.Log.Warn("PyTorch failed at a unit, which the built-in engine computes", "unit", unit, "err", err)
		if p.Notify != nil {
			p.Notify(fmt.Sprintf("%v; the built-in engine computes unit %d", err, unit))
		}
	}}
}

// closeExecutor ends the child that takes steps.
func (p *Process) closeExecutor() {
	if p.steps != nil {
		p.steps.Close() // the next unit starts one again
	}
}
