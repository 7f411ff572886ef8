// Package scale plays a network that is too large to be played with its mathematics: the rules of runs and the roles of
// all members are those of a real network, and what a unit computes is modelled.
package scale

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/verifier"
	"github.com/starling-network/starling/role/worker"
	"github.com/starling-network/starling/sim/clock"
	"github.com/starling-network/starling/sim/forecast"
	"github.com/starling-network/starling/sim/link"
)

// Model is a network that is too large to be played with its mathematics. The rules of runs (protocol/run,
// protocol/audit) and the roles of all members are those of a real network; what a unit computes, the bytes of updates
// and signatures are modelled: they take time, and all parties are honest, but for the faults that workers plant. There
// are no accounts, and nothing is paid.
type Model struct {
	Seed      uint64
	Workers   int // in all runs
	Run       int // workers of a run, at most
	Verifiers int // of a run
	Rounds    uint32
	AuditPPM  uint32
	Link      link.Link     // of everybody
	Update    int64         // bytes of the update of a unit
	Block     time.Duration // from block to block
	Unit      time.Duration // that a unit takes; up to as much again is drawn for every member
	Combine   time.Duration // that a member takes to make the next checkpoint of the updates of a round
}

// Result sums up a network that was played to its end.
type Result struct {
	Runs, Members int
	Blocks        int64
	Steps         int // of roles: events that one of them was told
	Messages      int // that a block took
	Audits        int // that were passed
	Trained       int // units that workers executed
	// and that verifiers executed: audits, and those that a planted fault causes; second looks are not drawn
	Looked      int
	Refused     int           // messages that the rules refused
	Virtual     time.Duration // until the last run was done
	Round       time.Duration // from one attestation to the next, on average
	Utilisation float64       // share of the time of all workers that went into their units, until their run was done
	Digest      canon.Digest  // of all lineages and of the heights of their entries
}

// ErrUnplayable is wrapped by every reason why a network cannot be played to its end.
var ErrUnplayable = errors.New("sim: a crowd")

// gathering is one run of a crowd, with time, chance and blocks of its own: runs share nothing.
type gathering struct {
	of      Model
	clock   clock.Clock
	random  *rand.Rand
	height  int64
	state   run.State
	members []*participant
	inbox   []message
	worked  time.Duration
	first   int64 // height of the first attestation, and of the latest
	latest  int64
	out     Result
	digest  []byte
	err     error
}

// message is an action that a block is to take.
type message struct {
	at     time.Duration // at which it is where blocks are made
	from   *participant
	action role.Action
}

// participant is a worker or a verifier.
type participant struct {
	in      *gathering
	id      string
	step    func(role.Event) []role.Action
	unit    time.Duration
	free    time.Duration // when its computations are done
	running map[string]*bool
	answers []role.Event // that the next block brings
}

// Play lets time pass until all runs are done, or the context ends. As many are played at a time as there are
// processors, which no result depends on.
func (c Model) Play(ctx context.Context) (Result, error) {
	if c.Workers < 1 || c.Run < 1 || c.Run+c.Verifiers > terms.MaxMembers || c.Run > terms.MaxUnits {
		return Result{}, fmt.Errorf("%w of %d workers in runs of %d workers and %d verifiers: a run has 1 to %d members",
			ErrUnplayable, c.Workers, c.Run, c.Verifiers, terms.MaxMembers)
	}
	runs := make([]gathered, (c.Workers+c.Run-1)/c.Run)
	players, ctx := errgroup.WithContext(ctx)
	players.SetLimit(runtime.NumCPU())
	for i := range runs {
		players.Go(func() (err error) {
			runs[i], err = c.play(ctx, i)
			return err
		})
	}
	if err := players.Wait(); err != nil {
		return Result{}, err
	}
	o := Result{Runs: len(runs)}
	var worked, had time.Duration
	var digest []byte
	for _, r := range runs {
		o.Members, o.Steps, o.Messages = o.Members+r.out.Members, o.Steps+r.out.Steps, o.Messages+r.out.Messages
		o.Audits, o.Refused = o.Audits+r.out.Audits, o.Refused+r.out.Refused
		o.Trained, o.Looked = o.Trained+r.out.Trained, o.Looked+r.out.Looked
		o.Blocks, o.Virtual = max(o.Blocks, r.out.Blocks), max(o.Virtual, r.out.Virtual)
		o.Round += r.out.Round / time.Duration(len(runs))
		worked, had, digest = worked+r.worked, had+r.had, append(digest, r.digest...)
	}
	o.Utilisation = worked.Seconds() / max(1, had.Seconds())
	o.Digest = canon.Sum("sim/crowd/1", digest)
	return o, nil
}

// price that every member of a run asks for.
const price = 1_000_000_000

// gathered sums up a run that was played to its end.
type gathered struct {
	out         Result
	worked, had time.Duration // of its workers
	digest      []byte
}

// play plays the run with an index to its end.
func (c Model) play(ctx context.Context, index int) (gathered, error) {
	g, err := c.gather(index, min(c.Run, c.Workers-index*c.Run))
	if err != nil {
		return gathered{}, err
	}
	g.clock.After(c.Block, g.block)
	for g.state.Phase != progress.Done && g.err == nil && g.clock.Step() {
		g.err = cmp.Or(g.err, ctx.Err())
	}
	g.out.Blocks, g.out.Virtual = g.height, g.clock.Now
	if c.Rounds > 1 {
		g.out.Round = time.Duration(g.latest-g.first) * c.Block / time.Duration(c.Rounds-1)
	}
	had := time.Duration(g.state.Since) * c.Block * time.Duration(len(g.state.Active(crew.Worker)))
	return gathered{g.out, g.worked, had, g.digest}, g.err
}

// gather begins the run with an index, of the given number of workers.
func (c Model) gather(index, workers int) (*gathering, error) {
	g := &gathering{of: c, random: rand.New(rand.NewPCG(c.Seed, uint64(index)))}
	job := "job-" + strconv.Itoa(index)
	spec := &train.Spec{Rounds: c.Rounds, Units: uint32(workers), Steps: 1, Segment: 1}
	terms := bundle.Terms(job, spec, 1, bundle.Checks{AuditPPM: c.AuditPPM, Screen: terms.ScreenOff})
	terms.SpecCID, terms.Genesis = "spec", combined(job, 0)
	var members []crew.Member
	for i := range workers + c.Verifiers {
		p := &participant{in: g, id: job + "/worker-" + strconv.Itoa(i),
			unit: c.Unit + time.Duration(g.random.Float64()*float64(c.Unit)), running: map[string]*bool{}}
		m := crew.Member{
			ID:     p.id,
			Role:   crew.Worker,
			Price:  price,
			Passed: 31,
		} // known for long: audits are drawn at the floor
		if i >= workers {
			p.id = job + "/verifier-" + strconv.Itoa(i-workers)
			m.ID, m.Role = p.id, crew.Verifier
			p.step = verifier.New(p.id, canon.Sum("sim/watch", []byte(p.id))).Step
		} else {
			p.step = worker.NewWithPlantedFaults(p.id, canon.Sum("sim/plant", []byte(p.id))).Step
		}
		g.members, members = append(g.members, p), append(members, m)
	}
	var err error
	g.state, err = run.New(terms, members, 0)
	g.out.Members = len(members)
	return g, err
}

// combined is the checkpoint after the given number of rounds. All members that combine the updates of a round get it.
func combined(job string, round uint32) terms.Checkpoint {
	return terms.Checkpoint{Round: round,
		Root: canon.Sum("sim/crowd/checkpoint", []byte(job), binary.BigEndian.AppendUint32(nil, round)), CID: "checkpoint"}
}

// block makes a block, executes what has arrived, lets the run move on, and tells everybody.
func (g *gathering) block() {
	g.height++
	env := transition.Env{
		Height: g.height,
		Beacon: canon.Sum("sim/crowd/beacon", binary.BigEndian.AppendUint64(nil, g.of.Seed),
			binary.BigEndian.AppendUint64(nil, uint64(g.height))),
	}
	slices.SortStableFunc(g.inbox, func(a, b message) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for n < len(g.inbox) && g.inbox[n].at <= g.clock.Now {
		m := g.inbox[n]
		n++
		next, events, err := g.execute(env, m)
		g.out.Messages++
		if err != nil {
			g.out.Refused++
			m.from.answers = append(m.from.answers, role.Failed{Action: m.action, Err: err})
			continue
		}
		g.state = next
		g.record(events)
		m.from.answers = append(m.from.answers, role.Finished{Action: m.action})
	}
	g.inbox = append(g.inbox[:0], g.inbox[n:]...)
	next, events := g.state.Tick(env)
	g.state = next
	g.record(events)
	if g.state.Phase == progress.Halted {
		g.err = fmt.Errorf("%w: the run of %s is halted: %s", ErrUnplayable, g.state.Terms.Job, g.state.Why)
	}
	var b role.Event = role.Block{Height: env.Height, Run: g.state}
	for _, p := range g.members {
		g.clock.After(g.of.Link.Delay(g.random, 0), func() {
			answers := p.answers
			p.answers = nil
			for _, e := range answers {
				p.tell(e)
			}
			p.tell(b)
		})
	}
	g.clock.After(g.of.Block, g.block)
}

// record counts the events of a run.
func (g *gathering) record(events []event.Event) {
	for _, e := range events {
		switch e.Kind {
		case event.RoundAttested:
			g.digest = append(g.digest, e.Entry.Attestation.Checkpoint.Root[:]...)
			g.digest = binary.BigEndian.AppendUint64(g.digest, uint64(e.Entry.Height))
			g.first, g.latest = cmp.Or(g.first, e.Entry.Height), e.Entry.Height
		case event.AuditPassed:
			g.out.Audits++
		}
	}
}

// execute is what the chain does with a message.
func (g *gathering) execute(env transition.Env, m message) (run.State, []event.Event, error) {
	s, from := g.state, m.from.id
	switch a := m.action.(type) {
	case role.Commit:
		return s.Commit(env, from, a.Work, a.Commit)
	case role.Attest:
		return s.Attest(env, a.Next.Round-1, progress.Vote{Member: from, Next: a.Next})
	case role.Pass:
		return s.Pass(env, from, a.Work, a.Seal)
	case role.Unseal:
		o, err := m.from.open(a)
		if err != nil {
			return s, nil, err
		}
		return s.Unseal(env, from, a.Work, o, sealed.RootFuncs{})
	case role.Challenge:
		return s.Challenge(env, from, a.Work)
	case role.Unmask:
		return s.RevealPlantedFault(env, from, a.Work, a.Nonce, a.Segments)
	case role.Return:
		return s.Return(env, from)
	}
	return s, nil, fmt.Errorf("%w: no member there should want %T", ErrUnplayable, m.action)
}

// tell passes an event to the role and lets what it wants happen.
func (p *participant) tell(e role.Event) {
	p.in.out.Steps++
	for _, a := range p.step(e) {
		p.perform(a)
	}
}

func (p *participant) perform(a role.Action) {
	g := p.in
	switch a := a.(type) {
	case role.Load:
		g.clock.After(g.of.Link.Delay(g.random, int(g.of.Update)), func() { p.tell(role.Loaded{Action: a}) })
	case role.Train:
		p.compute(a, func() role.Event { return role.Trained{Action: a, Commit: commitment(g.state.Terms.Job, a.Work)} })
	case role.Check:
		p.compute(a, func() role.Event {
			s := a.Work.Subject(p.id, g.state.Terms.Job, a.Segment)
			right := slices.Equal(a.Commit.Segments, commitment(g.state.Terms.Job, a.Work).Segments)
			return role.Checked{Action: a, Right: right, Seal: audit.NewSeal(s, g.end(a.Work).Trees()).Root()}
		})
	case role.Reveal:
		p.tell(role.Finished{Action: a})
	case role.Advance:
		r := forecast.Round{Workers: len(a.Units), Verifiers: g.of.Verifiers, Update: g.of.Update, Link: g.of.Link}
		g.clock.After(r.Exchange()+g.of.Combine, func() {
			p.tell(role.Advanced{Action: a, Next: combined(g.state.Terms.Job, a.Base.Round+1)})
		})
	case role.Stop:
		if stopped := p.running[a.Of]; stopped != nil {
			*stopped = true
		}
	case role.Depart:
	default:
		g.inbox = append(g.inbox, message{g.clock.Now + g.of.Link.Delay(g.random, messageBytes), p, a})
	}
}

// messageBytes is about how long a signed message to the chain is.
const messageBytes = 600

// compute takes the time of a unit, after what is computed already.
func (p *participant) compute(a role.Action, done func() role.Event) {
	g := p.in
	key, stopped := a.Key(), new(bool)
	p.running[key] = stopped
	p.free = max(p.free, g.clock.Now) + p.unit
	g.clock.After(p.free-g.clock.Now, func() {
		delete(p.running, key)
		if _, checks := a.(role.Check); checks {
			g.out.Looked++
		} else {
			g.out.Trained++
		}
		if *stopped {
			p.tell(role.Failed{Action: a, Err: clock.ErrKilled})
			return
		}
		if _, train := a.(role.Train); train {
			g.worked += p.unit
		}
		p.tell(done())
	})
}

// open answers the question about a seal.
func (p *participant) open(a role.Unseal) (audit.Opening, error) {
	g := p.in
	end := g.end(a.Work)
	return audit.NewSeal(a.Work.Subject(p.id, g.state.Terms.Job, a.Segment), end.Trees()).Open(a.Question, end)
}
