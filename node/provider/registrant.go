package provider

import (
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/gauge"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/registrant"
	"github.com/starling-network/starling/role/reporter"
)

// registration does the duties of a service towards the registry, outside of its runs. One goroutine gives its step
// function blocks and the results of its actions; long actions run in goroutines of their own.
type registration struct {
	*service
	step  *registrant.Registrant
	about *reporter.Reporter // the members of its runs
	ended chan settled
	last  client.Block
	pace  time.Duration // between the last two blocks
}

// settled is what came of an action.
type settled struct {
	action  role.Action
	results []canon.Digest
	err     error
}

func newRegistration(s *service) *registration {
	return &registration{
		service: s, step: registrant.New(s.chain.Address(), s.Measure && (!s.Verifies || s.barred)),
		about: reporter.New(s.chain.Address(), reporter.Least),
		ended: make(chan settled),
	}
}

// run follows the chain until the context ends. It answers for others also while the service drains.
func (r *registration) run(ctx context.Context) {
	blocks, err := r.chain.Blocks(ctx)
	if err != nil {
		r.log.Warn("cannot follow the registry", "err", err)
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.ended:
			r.step.Ended(e.action, e.results, e.err)
		case b, ok := <-blocks:
			if !ok {
				return
			}
			r.block(ctx, b)
		}
	}
}

func (r *registration) block(ctx context.Context, b client.Block) {
	if r.last.Height > 0 && b.Height > r.last.Height {
		r.pace = b.Time.Sub(r.last.Time) / time.Duration(b.Height-r.last.Height)
	}
	r.last = b
	v, err := r.chain.Registration(ctx, b.Height)
	if err != nil {
		r.log.Warn("cannot read the registry", "height", b.Height, "err", err)
		return
	}
	r.mu.Lock()
	v.Busy = len(r.runs) > 0 || r.drains || r.pace == 0
	runs := r.states()
	r.mu.Unlock()
	if r.about.Due(b.Height, v.Params.EpochBlocks, runs) {
		r.report(ctx, runs)
	}
	longest := min(gaugeTime, time.Duration(v.Params.MeasureBlocks)*r.pace/8)
	for _, a := range r.step.Block(v) {
		r.working.Go(func() {
			results, err := r.act(ctx, a, longest)
			if err != nil && !errors.Is(err, registry.ErrBeat) && ctx.Err() == nil {
				r.log.Warn("cannot do what the registry asks for", "action", a.Key(), "err", err)
			}
			select {
			case r.ended <- settled{a, results, err}:
			case <-ctx.Done():
			}
		})
	}
}

// act runs a program, or says something on the chain. A measurement that it asks for takes a time.
func (r *registration) act(ctx context.Context, a role.Action, longest time.Duration) ([]canon.Digest, error) {
	switch a := a.(type) {
	case registrant.Gauge:
		if a.Count == registry.Segments { // of its own measurement
			if results, ok, err := r.device.Measure(ctx, a.Seed, a.Steps); ok {
				return results, err
			}
		}
		return gauged(ctx, a, r.Threads)
	case registrant.Ask:
		r.Say("lets the registry measure this machine")
		steps, err := r.steps(ctx, longest)
		if err != nil {
			return nil, err
		}
		return nil, r.chain.Declare(ctx, a, steps)
	}
	return nil, r.chain.Declare(ctx, a, 0)
}

// gauged runs segments.
func gauged(ctx context.Context, g registrant.Gauge, threads int) (results []canon.Digest, err error) {
	for i := range g.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		results = append(results, gauge.Segment(g.Seed, g.First+i, g.Steps, threads))
	}
	return results, nil
}

// gaugeTime is the duration of a measurement: long compared with a block, of which it may miss two, and short for a
// person who waits.
const gaugeTime = 8 * time.Second

// steps is how many steps a segment is to have so that all of them take a time on what computes the units here.
func (r *registration) steps(ctx context.Context, all time.Duration) (uint32, error) {
	const sampleSteps = 16                         // steps
	gauge.Segment(canon.Digest{}, 0, 1, r.Threads) // what is done once
	begin := time.Now()
	gauge.Segment(canon.Digest{}, 0, sampleSteps, r.Threads)
	step := max(time.Since(begin)/sampleSteps, time.Microsecond)
	n := all / (registry.Segments * step)
	onDevice, ok, err := r.device.Pace(ctx)
	if err != nil {
		return 0, err
	}
	if ok { // a checker computes its samples on a processor, perhaps on one like this
		n = min(all/onDevice, checkTimes*all/(registry.Samples*step))
	}
	return uint32(min(max(1, n), registry.MaxSteps)), nil
}

// checkTimes is how many times as long as the measurement the samples of a checker may take. A measurement takes an
// eighth of the time that a checker has, or less.
const checkTimes = 4
