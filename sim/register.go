package sim

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/compute/gauge"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/registrant"
	"github.com/starling-network/starling/role/reporter"
)

// register does after a block what the participant owes the registry.
func (p *process) register(ctx context.Context, height int64) error {
	v, err := p.chain.Registration(ctx, height)
	if errors.Is(err, client.ErrNotFound) {
		return nil // it is about to register
	}
	if err != nil {
		return err
	}
	if v.Busy, err = seated(ctx, p, height); err != nil {
		return err
	}
	if p.registrant == nil {
		p.registrant = registrant.New(p.key.Address(), p.machine.Rate > 0)
	}
	step := p.registrant
	for _, a := range step.Block(v) {
		p.spawn(func(ctx context.Context) {
			results, err := p.declare(ctx, a)
			p.world.trace("registers", p.name, a.Key(), err)
			step.Ended(a, results, err)
		})
	}
	return nil
}

// seated reports whether a party is or was a member of the run. Others open the job, too, as they may join.
func seated(ctx context.Context, p *process, height int64) (bool, error) {
	b, err := p.world.observe(ctx, p.chain, height)
	if b == nil || err != nil || p.party == nil {
		return false, err
	}
	_, member := b.Run.Member(p.key.Address())
	return member, nil
}

// declare runs the program of a measurement in the time that it takes on the machine, or says something on the chain.
func (p *process) declare(ctx context.Context, a role.Action) (results []canon.Digest, err error) {
	g, ok := a.(registrant.Gauge)
	if !ok {
		return nil, p.chain.Declare(ctx, a, p.gaugeSteps())
	}
	for i := range g.Count {
		results = append(results, gauge.Segment(g.Seed, g.First+i, g.Steps, 1))
	}
	flops := float64(g.Count) * float64(g.Steps) * registry.StepFlops
	return results,
		p.world.clock.Sleep(time.Duration(flops / float64(cmp.Or(p.machine.Rate, processorRate)) * float64(time.Second)))
}

// gaugeSteps lets a measurement take four blocks.
func (p *process) gaugeSteps() uint32 {
	flops := float64(p.machine.Rate) * (4 * p.world.config.BlockTime).Seconds()
	return uint32(max(1, flops/(registry.Segments*registry.StepFlops)))
}

// processorRate is what a machine that is not measured computes, in operations a second.
const processorRate = 1_000_000_000

// leastReport is how many bytes of a peer are worth a report: the models of a simulation are small.
const leastReport = 1 << 10

// report says on the chain what the participant measured of the others in its run.
func (p *process) report(ctx context.Context, height int64, s run.State) error {
	params, err := p.chain.Registry.Params(ctx)
	if err != nil {
		return err
	}
	v := reporter.View{Runs: []run.State{s}}
	if !p.reporter.Due(height, params.EpochBlocks, v.Runs) {
		return nil
	}
	if v.Participants, err = p.chain.Registry.Participants(ctx); err != nil {
		return err
	}
	for name, peer := range p.delivered { // in any order: the role puts them into one
		r, trip := p.line.Read(peer), p.link.Latency+p.world.at[address(name)].link.Latency
		v.Readings = append(v.Readings, reporter.Reading{
			Peer: name, Bytes: r.Bytes, Timed: r.Timed, Micros: uint64(r.Waited.Microseconds()),
			RTT: uint32(trip.Milliseconds())})
	}
	lies, _ := p.act.(adversary.Reports)
	for _, a := range p.reporter.Report(v) {
		if lies != nil {
			a = lies.Report(a)
		}
		p.spawn(func(ctx context.Context) {
			p.world.trace("reports", p.name, a.Key(), p.chain.Reward.ReportPeer(ctx, a.Job, a.Peer, a.Link))
		})
	}
	return nil
}
