// Package simulate plays a job file on the simulated network of package sim, and writes what comes of it as a run
// folder. It opens no socket and reads no clock.
package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/reward"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/catalog"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/link"
	"github.com/starling-network/starling/sim/workload"
	"github.com/starling-network/starling/web/report"
)

// Options say on what network a job is played.
type Options struct {
	Job   *job.Job
	Seed  uint64      // of latencies, losses and whatever else is drawn
	Links []link.Link // of the workers in turn; the first is everybody else's, too
	// speeds of the workers in turn, 10^9 floating-point operations a second; the first is everybody else's, too
	Gflops     []float64
	Verifiers  int // in addition to those that the job asks for
	Validators int // at least 1
	BlockTime  time.Duration
	Acts       map[string]string // what those do who break the rules (catalog.Named), by party
	Faults     []sim.Fault
	// something small stands in for the mathematics: there are no losses, and no state root
	Modelled bool
	Threads  int                                       // for the mathematics; results do not depend on it
	Events   func(line string)                         // everything that happens; nil: nowhere
	Progress func(round, rounds int, at time.Duration) // after every round; nil: nowhere
}

// Simulation is what came of a job under virtual time. All seconds are virtual.
type Simulation struct {
	rundir.Summary
	Conditions  Conditions    `json:"conditions"`
	Modelled    bool          `json:"modelled,omitempty"` // no loss and no state root is known
	Utilisation float64       `json:"utilisation"`        // share of the time of all workers that went into accepted units
	Blocks      int64         `json:"blocks"`
	Halted      string        `json:"halted,omitempty"` // why, if the run ended before its last round
	Parties     []PartyResult `json:"parties"`
	Events      canon.Digest  `json:"events"`              // digest of everything that happened
	Overrides   []string      `json:"overrides,omitempty"` // changes to the job file
	// those of them that tell it from the other simulations of a sweep
	Sweep []string `json:"sweep,omitempty"`

	ending ending.State
	told   *report.Report // nil: it was not asked for yet
}

// PartyResult is what a party of a simulation did and got.
type PartyResult struct {
	Name          string  `json:"name"`
	BytesUp       uint64  `json:"bytes_up"` // of blobs
	BytesDown     uint64  `json:"bytes_down"`
	JobBytes      uint64  `json:"job_bytes"`      // from the consumer, not counted in bytes_down
	WorkedSeconds float64 `json:"worked_seconds"` // at units, its own and those that it audited
	PaidUzen      uint64  `json:"paid_uzen"`
	SlashedUzen   uint64  `json:"slashed_uzen"`
	Act           string  `json:"act,omitempty"`         // how it broke the rules
	Out           string  `json:"out,omitempty"`         // why it had to leave the run
	OutSeconds    float64 `json:"out_seconds,omitempty"` // when that was, after the match
}

// simulationBlocks is after how many blocks a simulation counts as stuck.
const simulationBlocks = 1_000_000

// Run plays a job under virtual time: the chain application, the roles, the training and the exchange that Train runs,
// with simulated links, machines and clocks. The books are checked after every block.
func Run(ctx context.Context, opt Options) (*Simulation, error) {
	defer memory.Pace(0)()
	b, err := prepare.New(opt.Job)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	order, err := b.LocalOrder()
	if err != nil {
		return nil, err
	}
	if opt.Modelled && b.Spec.Rollout != nil {
		return nil, fmt.Errorf("%w: it draws answers apart, and a model of a job trains alone", ErrSurrogate)
	}
	trained, bulk, price := b, sim.ByteScale{}, demand.LocalPrice(order)
	if opt.Modelled {
		s, err := newSurrogate(ctx, b)
		if err != nil {
			return nil, err
		}
		trained, bulk, price = s.CompiledJob, s.Bulk, s.Price
		order.PriceCap, order.Terms.Spec, order.Terms.UnitFlops = price, s.Spec.Digest(), s.UnitFlops()
	}
	exec, err := trained.Spec.Compile(trained.Step, opt.Threads)
	if err != nil {
		return nil, err
	}
	task := prepare.TaskOf(trained, exec)
	if err := task.Divide(); err != nil {
		return nil, err
	}
	c := sim.Config{
		Seed: opt.Seed, Job: workload.Of(b.JobID(), task, trained.Genesis), Order: &order,
		Workers: int(order.Workers.Target), Verifiers: int(order.Verifiers) + opt.Verifiers,
		Validators: max(1, opt.Validators),
		BlockTime:  opt.BlockTime, ByteScale: bulk, Acts: map[string]adversary.Attack{}, Faults: opt.Faults,
		MaxBlocks: simulationBlocks, Log: opt.Events,
		Machines: map[string]sim.Machine{},
	}
	order.Verifiers = uint32(c.Verifiers)
	names := c.Names()
	for i, name := range names {
		if i >= c.Workers {
			i = 0
		}
		m := machine(b, opt, i)
		m.Price = price
		c.Machines[name] = m
	}
	first := machine(b, opt, 0)
	c.Link, c.Unit = first.Link, first.Unit
	for name, act := range opt.Acts {
		if err := known(name, names); err != nil {
			return nil, err
		}
		if c.Acts[name], err = actNamed(act); err != nil {
			return nil, err
		}
	}
	for _, f := range opt.Faults {
		for _, name := range []string{f.Who, f.From} {
			if err := known(name, append([]string{"", "consumer"}, names...)); err != nil {
				return nil, err
			}
		}
	}
	watch := &observer{ctx: ctx, rounds: int(b.Spec.Rounds), members: names, workers: c.Workers, modelled: opt.Modelled,
		progress: opt.Progress, out: map[string]time.Duration{}}
	w, err := sim.New(c, watch, check.CoinsConserved{}, &check.PaidOnce{Guilty: slices.Sorted(maps.Keys(opt.Acts))})
	if err != nil {
		return nil, err
	}
	watch.network = w
	digest, err := w.Play()
	if err != nil {
		return nil, err
	}
	s, err := watch.result(ctx, b, w, digest)
	if err != nil {
		return nil, err
	}
	s.Conditions = opt.conditions()
	for i := range s.Parties {
		s.Parties[i].Act = opt.Acts[s.Parties[i].Name]
	}
	return s, nil
}

// machine is that of a worker, counted from 0.
func machine(b *prepare.CompiledJob, opt Options, worker int) sim.Machine {
	speed := opt.Gflops[worker%len(opt.Gflops)]
	return sim.Machine{Link: opt.Links[worker%len(opt.Links)], Unit: time.Duration(float64(b.UnitFlops()) / speed)}
}

func actNamed(name string) (adversary.Attack, error) {
	if a, ok := catalog.Named(name); ok {
		return a, nil
	}
	return nil, fmt.Errorf("%w: %q; acts are %s", ErrNoAct, name, strings.Join(catalog.Names(), ", "))
}

func known(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("%w: %q; there are %v", ErrNoParty, name, names)
}

// observer sees when each round was attested, and what all had moved by then. It implements check.Checker.
type observer struct {
	ctx      context.Context
	network  *sim.Network // that is observed
	rounds   int
	members  []string // workers, then verifiers
	workers  int
	modelled bool
	progress func(round, rounds int, at time.Duration)
	attested []moment // by round, of those that are in the lineage
	began    moment   // the moment of the match
	started  bool
	out      map[string]time.Duration // of those who had to leave, by address: when that was first seen
}

// moment is a virtual time, and the totals of all members at it.
type moment struct {
	at             time.Duration
	sent, received uint64 // bytes
	paid           uint64 // uzen
}

// Block implements check.Checker.
func (o *observer) Block(check.World) error {
	w := o.network
	if err := o.ctx.Err(); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil {
		return nil // not matched yet
	}
	now := moment{at: w.Now()}
	for _, name := range o.members {
		u := w.Usage(name)
		now.sent, now.received = now.sent+u.Sent, now.received+u.Received
	}
	if escrow, err := w.Chain().Market.Escrow(o.ctx, s.Terms.Job); err == nil {
		now.paid = escrow.Paid + escrow.Fee
	}
	if !o.started {
		o.began, o.started = now, true
	}
	for _, m := range s.Members {
		if _, known := o.out[m.ID]; !known && !m.Active {
			o.out[m.ID] = now.at - o.began.at
		}
	}
	n := int(s.Base.Round)
	o.attested = o.attested[:min(n, len(o.attested))]
	for len(o.attested) < n {
		o.attested = append(o.attested, now)
		if o.progress != nil {
			o.progress(len(o.attested), o.rounds, now.at)
		}
	}
	return nil
}

// End implements check.Checker.
func (o *observer) End(check.World) error { return nil }

// result reads the chain of a simulation that is over, and measures the checkpoints of its lineage.
func (o *observer) result(ctx context.Context, b *prepare.CompiledJob, w *sim.Network,
	events canon.Digest) (*Simulation, error) {
	k, err := ending.Read(ctx, w.Chain(), b.JobID())
	if err != nil {
		return nil, err
	}
	e := ending.State{CompiledJob: b, Books: k, Root: k.Run.Base.Root,
		RefereeTime: func(dispute.Dispute) float64 { return 0 }}
	worked, err := o.measure(ctx, &e, w)
	if err != nil {
		return nil, err
	}
	s := &Simulation{Summary: *e.Summary(), Overrides: b.Job.Overrides, Modelled: o.modelled, Blocks: w.Height(),
		Halted: k.Run.Why, Events: events}
	if o.modelled { // what was trained is not the job
		e.Lines, s.StateRoot = nil, canon.Digest{}
	}
	s.ending = e
	if n := len(o.attested); n > 0 {
		spent := (o.attested[n-1].at - o.began.at).Seconds() * float64(o.workers)
		s.Utilisation = worked.Seconds() / spent
	}
	paid, slashed := map[string]uint64{}, map[string]uint64{}
	for _, r := range k.Receipts {
		switch r.Kind {
		case reward.Slash:
			slashed[r.Who] += r.Amount
		case reward.Work, reward.Audit:
			paid[r.Who] += r.Amount
		}
	}
	for _, name := range o.members {
		u, id := w.Usage(name), w.ID(name)
		p := PartyResult{Name: name, BytesUp: u.Sent, BytesDown: u.Received, JobBytes: u.Job,
			WorkedSeconds: u.Worked.Seconds(), PaidUzen: paid[id], SlashedUzen: slashed[id]}
		if m, ok := k.Run.Member(id); ok && !m.Active {
			p.Out, p.OutSeconds = m.Why, o.out[id].Seconds()
		}
		s.Parties = append(s.Parties, p)
	}
	return s, nil
}

// measure lists the lines of the lineage and the metrics of its rounds, and returns how long their workers took for its
// units.
func (o *observer) measure(ctx context.Context, e *ending.State,
	w *sim.Network) (worked time.Duration, err error) {
	var eval *cpu.Exec // of the trained model
	if !o.modelled {
		if eval, err = cpu.Compile(e.Eval, 1); err != nil {
			return 0, err
		}
		if e.Metrics, err = measured.Metrics(e.CompiledJob, eval, 0, e.Genesis, measured.UnitLogs{}, o.workers); err != nil {
			return 0, err
		}
	}
	before := o.began
	for i, now := range o.attested {
		entry, err := w.Chain().Training.Lineage(ctx, e.JobID(), uint32(i+1))
		if err != nil {
			return 0, err
		}
		for unit, id := range entry.Workers {
			worked += w.Machine(w.Name(id)).Unit * time.Duration(e.Spec.StepsOf(uint32(unit))) / time.Duration(e.Spec.Steps)
		}
		var ckpt *train.Checkpoint
		var units measured.UnitLogs
		if !o.modelled {
			if ckpt, units, err = heardIn(ctx, e, entry, w); err != nil {
				return 0, err
			}
		}
		ms, err := measured.Metrics(e.CompiledJob, eval, uint32(i+1), ckpt, units, o.workers)
		if err != nil {
			return 0, err
		}
		m := &ms[len(ms)-1]
		m.Seconds = (now.at - before.at).Seconds()
		m.TokensPerSecond = float64(e.Tokens(int(e.Spec.Steps))) / m.Seconds
		m.BytesUp, m.BytesDown, m.PaidUzen = now.sent-before.sent, now.received-before.received, now.paid
		e.Metrics, e.Lines, before = append(e.Metrics, ms...), append(e.Lines, rundir.NewLine(entry)), now
	}
	return worked, nil
}

// heardIn is the checkpoint of an entry of the lineage, and what its workers said of their units.
func heardIn(ctx context.Context, e *ending.State, entry progress.Entry,
	w *sim.Network) (*train.Checkpoint, measured.UnitLogs, error) {
	ckpt, err := bundle.LoadCheckpoint(ctx, entry.Attestation.Checkpoint, w.Blob)
	if err != nil {
		return nil, measured.UnitLogs{}, err
	}
	units := measured.MeanLogs(e.Spec, entry, func(cid string) ([]byte, error) {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil, err
		}
		return w.Blob(ctx, id)
	}, func(int, error) {})
	units.Agreement = bundle.Agreement(e.Spec, e.Genesis, entry,
		func(id blob.CID) ([]byte, error) { return w.Blob(ctx, id) })
	return ckpt, units, nil
}
