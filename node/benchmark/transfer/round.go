package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/workload"
)

// failure is how a worker fails while rounds are played: in every so many rounds it crashes and is back after a while.
type failure struct {
	every uint32
	away  time.Duration
}

// played is what Play measures.
type played struct {
	utilisation float64
	received    float64 // bytes of a worker in a round
}

// play plays rounds of one kind under virtual time, with the unchanged protocol and roles, reduced in the given
// number of slices, and measures from the end of the first round to that of the last. A small model replaces the real
// one: its units take as long, and its links are slower in proportion to its shorter updates.
func play(ctx context.Context, r forecast.Round, rounds uint32, slices uint32,
	fails failure) (p played, small *workload.Job, err error) {
	if r.Update < 1 {
		return p, nil, fmt.Errorf("benchmark: updates of %d bytes say nothing about links", r.Update)
	}
	small, err = workload.New(workload.Size{Rounds: rounds, Units: uint32(r.Workers), Steps: 10, Segment: 3})
	if err != nil {
		return p, nil, err
	}
	packed, err := update.Pack(small.Task.Spec.Exchange.Codec, 0, 0, small.Genesis.Params)
	if err != nil {
		return p, nil, err
	}
	link, scale := r.Link, float64(len(packed.Encode()))/float64(r.Update)
	link.Up, link.Down = link.Up*scale, link.Down*scale
	c := sim.Config{
		Seed: 1, Job: small, Workers: r.Workers, Verifiers: r.Verifiers, Validators: 1, Slices: slices, BlockTime: r.Block,
		Deadline: 600,
		Link:     link, Unit: r.Inner + r.Finish, Combine: r.Combine, Machines: map[string]sim.Machine{}, MaxBlocks: 1 << 20,
	}
	for _, name := range c.Names() {
		c.Machines[name] = sim.Machine{Link: link, Unit: c.Unit}
	}
	o := &Pacer{Ctx: ctx, fails: fails, unit: c.Unit}
	w, err := sim.New(c, o)
	if err != nil {
		return p, nil, err
	}
	o.Network = w
	if _, err := w.Play(); err != nil {
		return p, nil, err
	}
	n := len(o.Ends)
	if n != int(rounds) {
		return p, nil, fmt.Errorf("benchmark: %d of %d rounds were attested", n, rounds)
	}
	first, last := o.Ends[0], o.Ends[n-1]
	p.utilisation = r.Inner.Seconds() * float64(n-1) / (last.At - first.At).Seconds()
	p.received = float64(last.received-first.received) / float64((n-1)*r.Workers)
	return p, small, nil
}

// Pacer notes when rounds are attested, and lets the first worker fail in the middle of a unit, each time a bit later
// in it. It implements check.Checker.
type Pacer struct {
	Ctx     context.Context
	Network *sim.Network // that it watches
	Ends    []end

	fails failure
	unit  time.Duration
	next  uint32 // round in which it fails
	times int
}

// end of a round.
type end struct {
	At       time.Duration
	received uint64 // by all workers so far, bytes
}

// moments are the shares of a unit after which a worker fails, in turn, each in the middle between two drafts: the
// worker loses the average amount of work.
var moments = []float64{1. / 4, 3. / 4, 1. / 2}

// Block implements check.Checker.
func (o *Pacer) Block(check.World) error {
	w := o.Network
	if err := o.Ctx.Err(); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil {
		return nil // not matched yet
	}
	workers := s.Active(crew.Worker)
	for len(o.Ends) < int(s.Base.Round) {
		e := end{At: w.Now()}
		for _, id := range workers {
			e.received += w.Usage(w.Name(id)).Received
		}
		o.Ends = append(o.Ends, e)
	}
	if o.fails.every > 0 && s.Phase == progress.Train && s.Round == o.next+1 {
		after := time.Duration(moments[o.times%len(moments)]*float64(o.unit)).Truncate(sim.DraftEvery) + sim.DraftEvery/2
		w.Inject(sim.Fault{Who: w.Name(workers[0]), At: after, For: o.fails.away})
		o.next += o.fails.every
		o.times++
	}
	return nil
}

// End implements check.Checker.
func (o *Pacer) End(check.World) error { return nil }
