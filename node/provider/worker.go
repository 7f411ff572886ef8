package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/node/control"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/fleet/head"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/hours"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/member/draft"
	"github.com/starling-network/starling/node/member/retention"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/pause"
	"github.com/starling-network/starling/node/provider/extra"
	"github.com/starling-network/starling/node/provider/offer"
	"github.com/starling-network/starling/node/provider/parting"
	"github.com/starling-network/starling/node/provider/peers"
	"github.com/starling-network/starling/node/release/keyring"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/torch"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/protocol/registry"
	rules "github.com/starling-network/starling/protocol/registry/fleet"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
)

// Options say how a worker or verifier takes part in a network.
type Options struct {
	Home     string           // folder of its key and blobs; made if it is not there
	RPC      string           // HTTP interface of a validator
	Class    crew.Role        // of the work that it offers
	Verifies bool             // it offers to verify, too, besides training
	Checks   uint64           // price of that, as Price
	Price    uint64           // uzen per 10^15 floating-point operations
	Prices   coins.Prices     // for operations, in other coins
	Stake    uint64           // uzen, when it registers
	Device   admission.Choice // what its units are computed on
	Hardware registry.Hardware
	Tier     string           // of uptime that it commits to: none, bronze, silver or gold
	Pool     string           // account of a pool that may offer its work with that of others
	Enrol    string           // invitation to a fleet, or the file that holds it, for a machine that is in none
	Earn     bool             // a worker without the coins of its stake earns it, where the network lets it
	Faucet   string           // URL of a faucet that is asked for the coins of the stake; "": none is
	PayTo    string           // account that is paid in its place; "": itself, or the one that it named before
	Measure  bool             // the registry may measure the machine when it has nothing else to do
	Threads  int              // of one unit
	Listen   []string         // multiaddrs; none: any port of the loopback
	Relays   bool             // it relays between other participants; it must be reachable itself
	Hidden   bool             // others cannot dial it: it is reached through relays
	Head     *head.Link       // to the head of its local network, through which it dials; nil: it dials itself
	Disk     disk.Share       // of the blobs; zero: DefaultDisk
	Keep     int              // checkpoints of the lineage that stay; 0: DefaultKeep
	Replicas int              // holders of blobs that must outlive a member; 0: replica.Factor
	Metrics  string           // host:port where Prometheus finds metrics; "": nowhere
	Version  string           // of the binary
	Act      adversary.Attack // how it breaks the rules, to see what comes of it; nil: it keeps them
	Circle   string           // folder in which it and its accomplices tell each other what they made up; "": it has none
	Torch    *torch.Options   // takes the steps of jobs that ask for PyTorch; nil: the built-in engine does
	Say      func(string)

	PauseWhen pause.Conditions // it sets its work aside under these
	GiveUp    time.Duration    // while it drains: it ends when no block has come for so long; 0: it waits
	Extra     extra.Options    // work that it takes besides runs
}

// Run takes part in a network: it registers, offers its work, and does its duties in every run that it is matched to or
// that it joins. When the context ends it drains: it withdraws its offer, leaves its runs as soon as the units under
// way are committed, and returns when none of its work can be challenged any more.
func Run(ctx context.Context, o Options) error {
	defer memory.Pace(min(o.Hardware.Memory, math.MaxInt64>>20) << 20)()
	s, err := openService(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.equip(ctx); err != nil {
		return err
	}
	ctx, s.leave = context.WithCancel(ctx)
	defer s.leave()
	switch stop, err := control.Serve(s.Home, s, s.pause); {
	case errors.Is(err, control.ErrLongPath):
		s.Say("other commands cannot ask this process: " + err.Error())
	case err != nil:
		return err
	default:
		s.closers = append(s.closers, stop)
	}
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // it may still wait for coins
	if err := s.enlist(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return s.serve(ctx)
}

// equip makes ready what units are computed with.
func (s *service) equip(ctx context.Context) (err error) {
	if s.Class == crew.Verifier {
		s.Device = admission.Choice{}
	}
	say := func(text string) { s.log.Info(text); s.Say(text) }
	s.device, err = shared.Open(ctx, admission.Options{Choice: s.Device, Say: say,
		Record: filepath.Join(s.Home, admission.FileRecord)}, s.redeclare)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.device.Close(); return nil })
	s.extra, err = extra.Open(ctx, extra.Process{Home: s.Home, Key: s.key.Account(), Chain: s.chain, Threads: s.Threads,
		Memory: s.ram, Pause: s.pause, Drain: s.drain, Busy: s.watch.Busy, Log: s.log, Say: s.Say}, s.Extra)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.extra.Close)
	return torch.CheckAsked(ctx, s.Torch, s.Say)
}

const FileWorkerLog = "worker.log" // in the folder of a worker or verifier, about its work

// service is a worker or verifier with all its runs.
type service struct {
	Options
	log     *slog.Logger
	watch   *instrument.Instruments
	leave   context.CancelFunc // begins to drain
	work    context.Context    // of all that it does, once it serves
	since   time.Time
	key     home.Home
	chain   *client.Client
	host    *peer.Host
	weights *weights.Exchange
	store   *quota.Store
	room    *member.Budget
	ram     *member.Budget // for runs
	past    *retention.Store
	told    peers.Told

	barred    bool // the account was convicted, or its owner ended its work: it makes no offer
	unoffered bool // it was paused when it enlisted, and makes its offer later

	pause *pause.Pauser
	drain chan struct{} // closed when it drains

	mu      sync.Mutex
	runs    map[string]*member.Process // that it works in
	refused map[string]string          // runs that it left at once, and why
	device  *shared.Device             // once it is equipped
	hours   *hours.Follower            // notes why it works or does not
	spare   *spareWatch
	extra   *extra.Work // once it is equipped

	drains  bool
	working sync.WaitGroup

	closers []func() error // in the order of opening
}

func openService(ctx context.Context, o Options) (*service, error) {
	h, made, err := home.Open(o.Home)
	if err != nil {
		return nil, err
	}
	if o.Disk == (disk.Share{}) {
		o.Disk = member.DefaultDisk
	}
	if o.Keep == 0 {
		o.Keep = member.DefaultKeep
	}
	if made {
		o.Say("made a key in " + o.Home + ": write its backup down with starling worker identity --home " + o.Home +
			" --phrase; it is not encrypted, unless --encrypt says so there")
	}
	s := &service{Options: o, key: h, drain: make(chan struct{}), runs: map[string]*member.Process{},
		refused: map[string]string{}, since: time.Now()}
	s.spare = &spareWatch{service: s, failed: map[string]bool{}}
	s.watch = instrument.New(o.Version, roles(s)[0].String())
	if err := s.open(ctx, h); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens what the service needs; also what was opened before an error is to be closed.
func (s *service) open(ctx context.Context, h home.Home) error {
	unlock, err := folder.Lock(s.Home)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, unlock)
	log, file, err := folder.OpenLog(filepath.Join(s.Home, FileWorkerLog))
	if err != nil {
		return err
	}
	s.log, s.closers = log, append(s.closers, file.Close)
	if s.pause, err = pause.Open(s.Home, s.PauseWhen, time.Now); err != nil {
		return err
	}
	s.closers = append(s.closers, s.pause.Watch(pause.ThisMachine(os.DirFS("/"), os.Getpid()), func(now pause.State) {
		text := now.String()
		if !now.Paused {
			text = "resumed"
		}
		s.log.Info(text)
		s.Say(text)
	}, func(err error) {
		s.log.Warn("cannot read the state of the machine: conditions of a pause stay as they are", "err", err)
	}))
	s.chain, err = uplink.Connect(ctx, s.Say, func() (*client.Client, error) { return client.Connect(s.RPC, h.Account()) })
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { s.chain.Close(); return nil })
	if s.store, err = member.OpenStore(ctx, filepath.Join(s.Home, rundir.DirBlobs), s.Disk); err != nil {
		return err
	}
	s.room = member.NewDiskBudget(s.store.Usage().Quota, "--disk is "+s.Disk.Words())
	s.ram = member.NewMemoryBudget(s.Hardware.Memory)
	if s.past, err = retention.Open(s.Home, s.store, time.Now()); err != nil {
		return err
	}
	config := s.reach(s.chain, s.works)
	config.Key, config.Store = h.Peer(), s.store
	if s.host, err = peer.New(config); err != nil {
		return err
	}
	s.weights = weights.New(s.host, s.store, s.host.FetchWithin)
	s.closers = append(s.closers, s.host.Close, func() error { s.weights.Close(); return nil })
	return s.expose(ctx)
}

// works reports whether an account is a member of a run that this one works in.
func (s *service) works(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.runs {
		if state := p.State.Load(); state != nil &&
			slices.ContainsFunc(state.Members, func(m crew.Member) bool { return m.ID == account }) {
			return true
		}
	}
	return false
}

// roles are those that a service registers for. The first is that of its class.
func roles(s *service) []crew.Role {
	if s.Verifies {
		return []crew.Role{s.Class.Registered(), crew.Verifier}
	}
	return []crew.Role{s.Class.Registered()}
}

// roleIn is the role in which a service works in a run: that of its seat there, or of its class.
func roleIn(s *service, state run.State) crew.Role {
	if m, ok := state.Member(s.chain.Address()); ok {
		return m.Role
	}
	return s.Class.Registered()
}

// close closes everything that is open, the latest first. Errors have no effect any more.
func (s *service) close() {
	for _, c := range slices.Backward(s.closers) {
		_ = c()
	}
}

// serve joins runs as they come.
func (s *service) serve(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	s.work = work
	defer s.working.Wait()
	defer s.extra.Wait()
	defer end()
	blocks, err := s.chain.Blocks(work)
	if err != nil {
		return err
	}
	s.working.Go(func() { s.told.Publish(work, s.host, s.chain.Registry.UpdateAddresses, s.log) })
	s.working.Go(func() { newRegistration(s).run(work) })
	s.working.Go(func() { s.provideBlobs(work) })
	s.working.Go(func() { s.hours.Run(work) })
	s.working.Go(func() { keyring.Tidy(work, s.chain.Training, s.Home, s.chain.Address(), s.log) })
	s.extra.Begin(work)
	s.Say(fmt.Sprintf("%s offers its work at %s ZEN per PFLOP", s.chain.Address(), quantity.Amount(s.Price)))
	if len(s.Listen) == 0 && !s.Hidden {
		s.Say("it listens on the loopback alone: other machines cannot fetch from it; give --listen, or --behind-nat")
	}
	leaving, draining := ctx.Done(), false
	set := func(slots uint32) error { return asked(s).Make(work, slots) }
	withheld := func() bool { // for another reason than a pause
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.barred || s.Pool != "" || len(s.refused) > 0
	}
	paused := offer.NewPaused(s.pause, !s.unoffered, set, s.log)
	offer := offer.NewWithdrawal(func() error {
		if err := set(0); !errors.Is(err, rules.ErrMachine) { // a revoked machine has no offer
			return err
		}
		return nil
	})
	pulse := uplink.NewPulse(s.RPC, s.Say)
	defer pulse.Stop()
	for {
		select {
		case <-pulse.Silence():
			pulse.Silent(s.Head.Cut())
		case <-pulse.Gone():
			return s.unsettled(pulse.Without(), !offer.Made)
		case <-leaving:
			leaving, draining = nil, true
			pulse.GiveUp(s.GiveUp)
			s.mu.Lock()
			s.drains = true
			s.mu.Unlock()
			close(s.drain)
			s.spare.stop()
			s.Say("draining: it leaves its runs when the units under way are committed; the next Ctrl-C stops at once")
			offer.Begin(&s.working)
		case <-paused.Turned:
			if paused.Turn(); !draining {
				paused.Step(withheld(), &s.working)
			}
		case err := <-paused.Tried:
			paused.End(err)
		case err := <-offer.Tried:
			if _, refused := errors.AsType[*transaction.Error](err); refused {
				return err
			}
			if offer.End(err); err != nil {
				s.log.Warn("cannot take the offer back: tries again at the next block", "err", err)
			}
		case b, ok := <-blocks:
			if !ok {
				return member.ErrClosed
			}
			pulse.Block(b.Height)
			s.watch.Block(b.Height, b.Time)
			if err := s.past.Expire(time.Now()); err != nil {
				s.log.Warn("cannot let go of runs that are over", "err", err)
			}
			if draining {
				offer.Again(&s.working)
				break
			}
			paused.Step(withheld(), &s.working)
			if err := s.join(work); err != nil {
				s.log.Warn("cannot follow the chain", "err", err)
			}
		}
		if offer.Made && s.idle() && s.extra.Idle() {
			s.Say("drained")
			return nil
		}
	}
}

// unsettled is the error of a process that drains and ends too early.
func (s *service) unsettled(why string, offers bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return parting.NewUnsettled(why, offers, s.runs)
}

func (s *service) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) == 0
}

// join begins to work in the runs that the account is a member of, or owes something in.
func (s *service) join(ctx context.Context) error {
	jobs, err := s.chain.Training.Runs(ctx, true)
	if err != nil {
		return err
	}
	if err := s.offerAgain(ctx, jobs); err != nil {
		return err
	}
	for _, job := range jobs {
		s.mu.Lock()
		known := s.runs[job] != nil
		s.mu.Unlock()
		if known {
			continue
		}
		state, err := s.chain.Training.Run(ctx, job)
		if err != nil {
			return err
		}
		if id := s.chain.Address(); !state.Removed(id) || state.Liable(id) {
			s.begin(ctx, job, roleIn(s, state), s.drain)
		}
	}
	if (s.Class == crew.Verifier || s.Verifies) && !s.pause.Paused() {
		s.spare.look(ctx, jobs)
	}
	return nil
}

// begin does the duties of a role in a run until none is left. It leaves when drain is closed.
func (s *service) begin(ctx context.Context, job string, as crew.Role, drain <-chan struct{}) {
	p := &member.Process{
		ID: s.chain.Address(), Threads: s.Threads, Chain: client.Member{Client: s.chain, Job: job}, Host: s.host,
		Store: s.store, Disk: s.room, Memory: s.ram, KeepLast: s.Keep, Replicas: s.Replicas, Adversary: s.Act,
		Circle: s.Circle, Log: s.log.With("job", job), Instruments: s.watch, Drain: drain, Torch: s.Torch, Notify: s.Say,
		Device: s.device, Pause: s.pause, Weights: s.weights, Class: busy.Of(as, s.Class), Folder: s.Home,
		Holding: engine.Holding{Aside: member.AsideIn(s.Home, s.store, s.room)}}
	p.Drafts = draft.NewStore(s.Home, job, p.Log)
	if as == crew.Verifier {
		p.Device, p.Torch = nil, nil // work is done again on the processor, by the built-in engine
	}
	step, header := s.play(as, p.ID, p.Chain.Job)
	p.Step, p.Journal = step, journal.OpenWriter(s.Home, header, p.Log)
	s.mu.Lock()
	s.runs[job] = p
	s.mu.Unlock()
	unasked := s.spare.job == job
	s.Say(map[bool]string{false: "works on ", true: "watches "}[unasked] + job)
	s.working.Go(func() {
		err := p.Run(ctx)
		if ctx.Err() == nil {
			s.release(job, p)
		}
		s.mu.Lock()
		delete(s.runs, job)
		s.mu.Unlock()
		if unasked {
			s.spare.watched(job, err)
			return
		}
		text, refuses := parting.Text(job, err, ctx.Err() != nil)
		if s.Say(text); refuses {
			s.withdraw(ctx, job, err)
		}
	})
}

// play is what the account does in a run, and the header of its journal.
func (s *service) play(as crew.Role, id, job string) (func(role.Event) []role.Action, journal.Header) {
	return member.RoleOf(s.key, as, true, id, job, s.Version)
}

// release frees what the disk holds for a run in which nothing is left to do, but for the last checkpoints.
func (s *service) release(job string, p *member.Process) {
	s.room.Release(job)
	s.ram.Release(job)
	p.Drafts.Drop()
	keyring.Tidy(s.work, s.chain.Training, s.Home, s.chain.Address(), s.log)
	if err := s.past.Keep(job, p.Replicator.Load().Checkpoints(), time.Now()); err != nil {
		s.log.Warn("cannot write down what is kept of the run", "job", job, "err", err)
	}
}

// withdraw withdraws the offer until a run is over that it cannot work in: it would be taken in again.
func (s *service) withdraw(ctx context.Context, job string, why error) {
	s.Say("no work is offered until that run is over")
	s.mu.Lock()
	s.refused[job] = why.Error()
	s.mu.Unlock()
	if err := asked(s).Make(ctx, 0); err != nil {
		s.log.Warn("cannot withdraw the offer", "err", err)
	}
}

// offerAgain offers work again when the runs that were refused are over.
func (s *service) offerAgain(ctx context.Context, open []string) error {
	s.mu.Lock()
	before := len(s.refused)
	maps.DeleteFunc(s.refused, func(job, _ string) bool { return !slices.Contains(open, job) })
	now := len(s.refused)
	s.mu.Unlock()
	if before == 0 || now > 0 || s.pause.Paused() { // it offers when it is resumed
		return nil
	}
	return asked(s).Make(ctx, 1)
}
