// Package simulate plays a job file on the simulated network of package sim, and writes what comes of it as a run
// folder. It opens no socket and reads no clock.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	dbm "github.com/cosmos/cosmos-db"
	"github.com/syndtr/goleveldb/leveldb/opt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/catalog"
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
	if err := plays(b, opt.Modelled); err != nil {
		return nil, err
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
		Generators: int(order.Generators),
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
	watch := &observer{ctx: ctx, job: b, members: names, workers: c.Workers, progress: opt.Progress,
		out: map[string]time.Duration{}}
	if !opt.Modelled {
		if watch.eval, err = cpu.Compile(b.Eval, 1); err != nil {
			return nil, err
		}
	}
	c.Forgets = true
	remove, err := onDisk(&c)
	if err != nil {
		return nil, err
	}
	defer remove()
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

// onDisk puts the state of the chain into a folder that is there until the simulation is closed: in memory it would
// grow with every block.
func onDisk(c *sim.Config) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "starling-sim-*")
	if err != nil {
		return nil, err
	}
	// Its writes need not survive a crash: the folder is removed, or left over.
	db, err := dbm.NewGoLevelDBWithOpts("application", dir, &opt.Options{NoSync: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.Database = db
	return func() { _ = errors.Join(db.Close(), os.RemoveAll(dir)) }, nil
}

// machine is that of a worker, counted from 0.
func machine(b *prepare.CompiledJob, opt Options, worker int) sim.Machine {
	speed := opt.Gflops[worker%len(opt.Gflops)]
	unit := float64(b.UnitFlops()) / float64(b.Spec.Pipeline.Stages())
	return sim.Machine{Link: opt.Links[worker%len(opt.Links)], Unit: time.Duration(unit / speed)}
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
