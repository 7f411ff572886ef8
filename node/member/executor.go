package member

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// CheckTorch finds out whether PyTorch can take steps here, before anything is promised: a *torch.Error if it cannot.
// nil options ask for nothing.
func CheckTorch(ctx context.Context, o *torch.Options, say func(string)) error {
	if o == nil {
		return nil
	}
	v, err := torch.Check(ctx, *o)
	if err == nil && say != nil {
		say(fmt.Sprintf("PyTorch %s on %s takes the steps of jobs that ask for it", v.Torch, v.Device))
	}
	return err
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
