// Package cohort plays a federated job under virtual time: the coordinator and the owners of node/federated, with
// training and secure sums as they are, over links that are simulated. It is not the simulator of networks: there is no
// chain, no order and no pay (node/simulate).
package cohort

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	protocol "github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/federated"
	"github.com/starling-network/starling/node/federated/wire"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/sim/clock"
	"github.com/starling-network/starling/sim/link"
)

// Acts of owners that do not keep to the rules.
const (
	Garbage = "garbage" // sends random bytes in place of its vector, and signs them
	Late    = "late-"   // and a phase: sends its message of the phase when that is over
)

// Acts are all of them.
func Acts() []string {
	all := []string{Garbage}
	for _, p := range protocol.Phases {
		all = append(all, Late+string(p))
	}
	return all
}

// Coordinator is the name of the party that owners connect to. They are owner-0, owner-1 and so on.
const Coordinator = "coordinator"

// Fault is something that breaks, and is whole again later.
type Fault struct {
	At, For time.Duration // from the start
	Who     string        // crashes and restarts; or, with From, cannot reach From
	From    string        // the coordinator
}

// Options of a simulation.
type Options struct {
	Job     *job.Job
	Data    []string // a folder for each owner
	Dir     string   // of the run, and of the homes of owners
	Seed    uint64
	Links   []link.Link // of owners, in turn; the first is the coordinator's, too
	Gflops  []float64   // of owners, in turn
	Phase   time.Duration
	Threads int
	Acts    map[string]string // by party
	Faults  []Fault
	Events  func(line string) // nil: none are wanted
}

// Simulation is what came of a job.
type Simulation struct {
	*federated.Report
	Seconds float64 `json:"seconds"` // of virtual time, until the model was there
	Parties []Party `json:"parties"`
}

// ErrParty is returned for acts and faults of parties that are not there.
var ErrParty = errors.New("there is no such party")

// ErrStalled is returned where no round ends any more: too few owners are left for a sum.
var ErrStalled = errors.New("no round has ended for a long time, as too few owners answer")

// world is a simulation under way.
type world struct {
	opt      Options
	clock    clock.Clock
	random   *rand.Rand
	hub      link.Link     // of the coordinator
	in, out  time.Duration // when its link is free
	blue     *prepare.CompiledJob
	members  []*member
	process  *process // that runs; nil: none
	cuts     map[string]int
	progress time.Duration // when a round ended last
	report   *federated.Report
	seconds  float64
	err      error
}

// process is one of the coordinator.
type process struct {
	routine *clock.Routine
	handler http.Handler
	job     canon.Digest
}

// Run plays a job.
func Run(ctx context.Context, opt Options) (*Simulation, error) {
	b, err := prepare.New(opt.Job)
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // files that are read only
	w := &world{opt: opt, random: rand.New(rand.NewPCG(opt.Seed, 0)), hub: opt.Links[0], blue: b, cuts: map[string]int{}}
	for i, data := range opt.Data {
		name := fmt.Sprintf("owner-%d", i)
		w.members = append(w.members, &member{Party: Party{Name: name, Act: opt.Acts[name]}, world: w, data: data,
			home: filepath.Join(opt.Dir, "owners", name), link: opt.Links[i%len(opt.Links)],
			work: time.Duration(float64(b.UnitFlops()) / opt.Gflops[i%len(opt.Gflops)])})
	}
	if err := errors.Join(w.plan(ctx), os.MkdirAll(w.run(), 0o755)); err != nil {
		return nil, err
	}
	w.coordinate(ctx)
	for _, m := range w.members {
		m.start(ctx)
	}
	defer w.end()
	for !w.over() && w.clock.Step() {
		if err := errors.Join(w.err, ctx.Err()); err != nil {
			return nil, err
		}
		if w.clock.Now-w.progress > time.Hour+2*w.lasts(protocol.Keys)+5*opt.Phase {
			return nil, ErrStalled
		}
	}
	if w.report == nil {
		return nil, errors.Join(ErrStalled, w.err)
	}
	s := &Simulation{Report: w.report, Seconds: w.seconds}
	for _, m := range w.members {
		s.Parties = append(s.Parties, m.Party)
	}
	return s, nil
}

// run is the folder of the coordinator.
func (w *world) run() string { return filepath.Join(w.opt.Dir, "run") }

// over reports whether there is a model, and all parties have ended.
func (w *world) over() bool {
	return w.report != nil && w.process == nil && !slices.ContainsFunc(w.members, func(m *member) bool {
		return !m.routine.Over()
	})
}

// end ends all that still runs.
func (w *world) end() {
	for _, m := range w.members {
		if !m.routine.Over() {
			m.routine.Kill()
		}
	}
	if w.process != nil {
		w.process.routine.Kill()
	}
}

// coordinate begins a process of the coordinator. It continues what is in its folder.
func (w *world) coordinate(ctx context.Context) {
	c, err := federated.New(w.blue, federated.Options{Dir: w.run(), Phase: w.opt.Phase,
		Threads: w.opt.Threads, Clock: virtual{&w.clock}, Say: func(text string) {
			w.progress = w.clock.Now
			w.say(Coordinator + ": " + text)
		}})
	if err != nil {
		w.err = err
		return
	}
	p := &process{handler: wire.Handler(c, c.Job(), virtual{&w.clock}), job: c.Job()}
	w.process = p
	p.routine = w.clock.Start(func() {
		r, err := c.Run(ctx)
		if err == nil {
			w.report, w.seconds = r, w.clock.Now.Seconds()
			c.Linger(ctx, federated.Lingers)
		}
		if !errors.Is(err, clock.ErrKilled) {
			w.process, w.err = nil, errors.Join(w.err, err)
		}
	})
}

// plan plans the faults.
func (w *world) plan(ctx context.Context) error {
	for name := range w.opt.Acts {
		if w.named(name) == nil {
			return fmt.Errorf("%w: %s", ErrParty, name)
		}
	}
	for _, f := range w.opt.Faults {
		m := w.named(f.Who)
		switch {
		case f.From != "" && f.From == Coordinator && m != nil:
			w.clock.After(f.At, func() { w.cuts[f.Who]++ })
			w.clock.After(f.At+f.For, func() { w.cuts[f.Who]-- })
		case f.From != "":
			return fmt.Errorf("%w: owners connect to the coordinator alone, and %s/%s is no such pair", ErrParty, f.Who,
				f.From)
		case f.Who == Coordinator:
			w.clock.After(f.At, func() {
				if w.process != nil && w.report == nil {
					w.say(Coordinator + " crashes")
					w.process.routine.Kill()
					w.process = nil
					w.clock.After(f.For, func() { w.coordinate(ctx) })
				}
			})
		case m != nil:
			w.clock.After(f.At, func() {
				if !m.routine.Over() {
					w.say(f.Who + " crashes")
					m.routine.Kill()
					w.clock.After(f.For, func() { m.start(ctx) })
				}
			})
		default:
			return fmt.Errorf("%w: %s", ErrParty, f.Who)
		}
	}
	return nil
}

func (w *world) named(name string) *member {
	for _, m := range w.members {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func (w *world) isCut(name string) bool { return w.cuts[name] > 0 }

func (w *world) say(text string) {
	if w.opt.Events != nil {
		w.opt.Events(fmt.Sprintf("%10.3fs %s", w.clock.Now.Seconds(), strings.TrimSpace(text)))
	}
}
