package sim

import (
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
	"github.com/starling-network/starling/role/staged"
)

// slow is what a party computes, in the time that it takes on its machine: one unit after the other, step by step.
type slow struct {
	party.Compute
	process *process
}

// draft is what a machine keeps of the unit that it computes.
type draft struct {
	base terms.Checkpoint
	unit uint32
	done time.Duration
}

// DraftEvery is how often a machine keeps it: a node does so every 10 s at most, and so seldom that it takes a
// hundredth of the time, which for ten million parameters is about this.
const DraftEvery = 12 * time.Second

// work takes the time of a unit to the end of a segment, or (0) of all of it, or of the part of that which is left
// after a crash.
func (s slow) work(ctx context.Context, base terms.Checkpoint, unit, segment uint32) error {
	p := s.process
	clock := &p.world.clock
	for p.busy {
		if err := clock.Wait(func(wake func()) { p.waiting = append(p.waiting, wake) }); err != nil {
			return err
		}
	}
	p.busy, p.since = true, clock.Now
	defer p.rest()
	if p.draft.base != base || p.draft.unit != unit {
		p.draft = draft{base: base, unit: unit}
	}
	done, begin := p.draft.done, clock.Now
	spec := p.job.Task.Spec
	whole, step := p.unit, p.unit/time.Duration(spec.Steps)
	if spec.Rollout != nil && unit >= spec.Units {
		whole = drawing(p)
		step = whole
	} else if steps := spec.StepsOf(unit); segment > 0 || steps != spec.Steps {
		if segment > 0 {
			steps = spec.StepsTo(unit, segment)
		}
		whole = whole * time.Duration(steps) / time.Duration(spec.Steps)
	}
	for left := whole - done; left > 0; left -= step {
		p.usage.Steps++
		if err := clock.Sleep(min(step, left)); err != nil {
			p.draft.done = done + (clock.Now - begin).Truncate(DraftEvery)
			return err
		}
		if err := ctx.Err(); err != nil {
			if errors.Is(context.Cause(ctx), role.ErrPaused) {
				p.draft.done = done + clock.Now - begin
			}
			return err
		}
	}
	p.draft = draft{}
	p.usage.Worked += whole - done
	return nil
}

// drawing is the time that the machine takes for a unit that draws.
func drawing(p *process) time.Duration {
	if p.machine.Draw > 0 {
		return p.machine.Draw
	}
	if p.share == 0 {
		t := p.job.Task
		p.share = float64(parts.DrawFlops(t.Step)) / float64(parts.Flops(t.Step)) / float64(t.Spec.Steps)
	}
	return time.Duration(p.share * float64(p.unit))
}

// rest lets the next unit be computed.
func (p *process) rest() {
	p.busy = false
	for _, wake := range p.waiting {
		p.world.clock.After(0, wake)
	}
	p.waiting = nil
}

// Train implements party.Compute.
func (s slow) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	return taking(ctx, s, base, unit, 0, func() (*engine.Work, error) { return s.Compute.Train(ctx, base, unit) })
}

// Measure implements party.Compute.
func (s slow) Measure(ctx context.Context, base terms.Checkpoint, unit uint32, c work.Commitment,
	update []byte) (audit.Finding, error) {
	return taking(ctx, s, base, unit, 0,
		func() (audit.Finding, error) { return s.Compute.Measure(ctx, base, unit, c, update) })
}

// Check implements party.Compute.
func (s slow) Check(ctx context.Context, base terms.Checkpoint, at audit.Subject,
	c work.Commitment) (engine.Comparison, error) {
	return taking(ctx, s, base, at.Unit, at.Segment,
		func() (engine.Comparison, error) { return s.Compute.Check(ctx, base, at, c) })
}

// taking computes something, and returns it when the time of the unit is over: what it starts from is taken when it
// begins, as engines do, and not when others have taken its place in memory.
func taking[T any](ctx context.Context, s slow, base terms.Checkpoint, unit, segment uint32,
	compute func() (T, error)) (T, error) {
	result, err := compute()
	if late := s.work(ctx, base, unit, segment); late != nil {
		var none T
		return none, late
	}
	return result, err
}

// combining is how a party gets from one checkpoint to the next, in the time that it takes on its machine.
type combining struct {
	party.Lineage
	process *process
}

// Advance implements party.Lineage.
func (c combining) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	if err := c.process.world.clock.Sleep(c.process.world.config.Combine); err != nil {
		return engine.Advanced{}, err
	}
	a, err := c.Lineage.Advance(ctx, base, units, get)
	if _, staged := c.Lineage.(*staged.Engine); staged && err == nil {
		c.process.job.Led(a.Next.Root)
	}
	return a, err
}
