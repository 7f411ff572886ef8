package provider

import (
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
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
	gauge context.CancelFunc // ends the program of its own measurement; nil: it does not run
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
		service: s, step: registrant.New(s.chain.Address(), s.Measure && (s.Class != crew.Verifier || s.barred)),
		about: reporter.New(s.chain.Address(), reporter.Least), ended: make(chan settled),
	}
}

// run follows the chain until the context ends. It answers for others also while the service drains.
func (r *registration) run(ctx context.Context) {
	blocks, err := r.chain.Blocks(ctx)
	if err != nil {
		r.log.Warn("cannot follow the registry", "err", err)
		return
	}
	_, turned := r.pause.State()
	for {
		select {
		case <-ctx.Done():
			return
		case <-turned:
			var now pause.State
			if now, turned = r.pause.State(); now.Paused && r.gauge != nil {
				r.gauge()
			}
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
	if text := r.told.Block(v.Self.Addrs, peers.Advertised(r.host.Addrs())); text != "" {
		r.log.Warn(text)
		r.Say(text)
	}
	if v.Self.Machine.Drains {
		r.leave() // its owner lets it drain, or revoked it
	}
	r.mu.Lock()
	v.Busy = len(r.runs) > 0 || r.drains || r.pace == 0
	v.Paused = r.pause.Paused()
	runs := r.states()
	r.mu.Unlock()
	if r.about.Due(b.Height, v.Params.EpochBlocks, runs) {
		r.report(ctx, runs)
	}
	longest := min(gaugeTime, time.Duration(v.Params.MeasureBlocks)*r.pace/8)
	for _, a := range r.step.Block(v) {
		acting, stop := context.WithCancel(ctx)
		if g, ok := a.(registrant.Gauge); ok && g.Count == registry.Segments {
			r.gauge = stop
		}
		r.working.Go(func() {
			defer stop()
			results, err := r.act(acting, a, longest)
			if err != nil && !errors.Is(err, registry.ErrBeat) && acting.Err() == nil {
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
		return r.device.Segments(ctx, a, r.Threads)
	case registrant.Ask:
		r.Say("lets the registry measure this machine")
		steps, err := r.device.Steps(ctx, r.Threads, longest)
		if err != nil {
			return nil, err
		}
		return nil, r.chain.Declare(ctx, a, steps)
	}
	return nil, r.chain.Declare(ctx, a, 0)
}

// gaugeTime is the duration of a measurement: long compared with a block, of which it may miss two, and short for a
// person who waits.
const gaugeTime = 8 * time.Second
