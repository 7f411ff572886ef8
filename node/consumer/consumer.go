package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/starling-network/starling/chain/referee"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/notify"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/cut"
	"github.com/starling-network/starling/node/release"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/node/uplink"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/consumer"
	"github.com/starling-network/starling/role/hold"
)

// Consumer is the consumer's side of a run: it ships the job, and turns the lineage into the files of an output
// folder.
type Consumer struct {
	Dir       *rundir.OutDir
	Job       *prepare.CompiledJob
	Options   Options
	waits     bool // the order is not matched yet
	Chain     *client.Client
	home      string     // folder of the consumer
	Host      *peer.Host // that serves the job
	fetcher   *fetch.Fetcher
	Close     func() error // ends that the job is served
	Store     *blob.Disk   // of the job, once it is open
	eval      *cpu.Exec
	Log       *slog.Logger
	generator *textgen.Generator                        // of samples, made with the first
	writes    *generate.Batch                           // the model of the generator
	keyServer *release.Server                           // of the host
	keys      *release.Job                              // of the shards; nil: they are not encrypted
	board     *tracking.TensorBoardWriter               // of TensorBoard, if the job asks for one
	Traffic   func() (sent, received uint64)            // bytes of all workers so far
	Links     func(context.Context) ([]api.Link, error) // who fetched from whom so far, as far as it is known
	// milliseconds of the referee for the leaf of a dispute, 0 if not known
	RefereeTime func(dispute.Dispute) float64
	// those at hand without fetching; nil: what the store keeps
	Updates func(context.Context, blob.CID) ([]byte, error)
	Shared  *hold.Shared // with the other parties of this process; nil: there are none
	// Reserve asks for room on the disk for data that it puts aside, which free gives back; nil: there is enough.
	Reserve func(bytes int64) (free func(), err error)

	lines         []rundir.Line   // complete lines of the lineage
	partlyWritten bool            // the files hold more than the lines: writing them failed half-way
	dropped       map[uint32]bool // rounds of the lineage whose checkpoint is deleted
	last          *train.Checkpoint
	progress      Progress
	mark          roundStart            // of the last round collected
	marks         map[uint32]roundStart // of those before it, by round
	seen          map[string]bool       // events told to the user
	diverged      string                // why the run was given up, if it diverged
	failures      int                   // actions that failed in a row
}

// roundStart is what the next round is measured from.
type roundStart struct {
	at             time.Time
	step           int
	sent, received uint64 // bytes of all workers
}

// aside is where a consumer puts checkpoints aside.
func aside(c *Consumer) memory.Aside { return memory.Aside{Dir: c.home, Reserve: c.Reserve} }

// New opens the store and the host of a collector that knows its job, its chain and its log.
func New(with Consumer, h home.Home) (*Consumer, error) {
	c := &with
	c.home = h.Dir
	b := c.Job
	store, err := blob.OpenDisk(c.Dir.File(rundir.DirBlobs))
	if err != nil {
		return nil, err
	}
	if a := c.Options.Account; a != nil {
		c.Host = a.Host
		var detach func()
		c.fetcher, c.Traffic, detach = a.Attach(store)
		c.keyServer = a.KeyServer
		c.Close = func() error { detach(); return nil }
	} else if c.Host, err = peer.New(peer.Config{Key: h.Peer(), Store: store, Listen: c.Options.Listen}); err != nil {
		return nil, err
	} else {
		c.fetcher, c.Close, c.keyServer = c.Host.Fetcher, c.Host.Close, release.NewServer(c.Host)
	}
	c.Store, c.seen, c.marks = store, map[string]bool{}, map[uint32]roundStart{}
	c.dropped = map[uint32]bool{}
	if c.Updates == nil {
		c.Updates = store.Get
	}
	_, threads := prepare.Turns(b)
	if c.eval, err = cpu.Compile(b.Eval, threads); err == nil {
		c.keys, err = Encrypted(b, c.Dir)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Shared.Task(prepare.TaskOf(b, nil))
	b.Genesis = c.Shared.Checkpoint(b.Genesis.Root(), b.Genesis, aside(c))
	if c.lines, err = c.Dir.Rewind(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.mark = roundStart{at: time.Now(), step: len(c.lines) * int(b.Spec.Steps)}
	if dir := b.Job.Tracking.Tensorboard; dir != "" {
		c.board = tracking.OpenBoard(dir, uint32(min(c.mark.step, 1)+c.mark.step), func(err error, dropped int) {
			c.Log.Warn("TensorBoard does not have all metrics", "left out", dropped, "err", err)
		})
	}
	c.progress = Progress{
		Job: b.JobID(), Step: c.mark.step, Steps: int(b.Spec.Rounds * b.Spec.Steps), Round: len(c.lines),
		Rounds: int(b.Spec.Rounds),
		Loss:   math.NaN(), EvalLoss: math.NaN(), LearningRate: math.NaN(), GradNorm: math.NaN(), TokensPerSecond: math.NaN(),
		Target: prepare.Workers(b), BudgetUzen: uint64(c.Options.Job.Budget.MaxCost), Phase: "starting",
	}
	if before, _ := c.Dir.ReadMetrics(); len(before) > 0 { // of a run that is resumed
		last := before[len(before)-1]
		c.progress.PaidUzen, c.progress.Coin = last.PaidUzen, api.CoinOf(last.Coin)
	}
	return c, nil
}

// next is the first round that is not collected: 0, the checkpoint before training, when none is.
func (c *Consumer) next() uint32 {
	if len(c.lines) == 0 {
		return 0
	}
	return uint32(len(c.lines)) + 1
}

// Order ships the job and places its order, unless the chain has the order from before a restart. If another account
// has ordered under the name of the job, even a moment before, the job gets the name that is reserved for this
// account.
func (c *Consumer) Order(ctx context.Context, o market.Order) error {
	err := c.place(ctx, o)
	if !errors.Is(err, chainmarket.ErrTaken) {
		return err
	}
	if placed, err := Placed(ctx, c.Chain, c.Job.JobID()); placed || err != nil && !errors.Is(err, chainmarket.ErrTaken) {
		return err // a transaction from before a restart was included a moment ago
	}
	c.Job.Keep("", c.Chain.Address())
	c.Dir.Run.ID = c.Job.JobID()
	if c.Options.Say != nil {
		c.Options.Say("another account has ordered a job of this name; this one is " + c.Job.JobID())
	}
	return c.place(ctx, o)
}

// Placed reports whether a chain has the order of a job from the account of the client; the error wraps
// chainmarket.ErrTaken if another account has ordered under that name.
func Placed(ctx context.Context, c *client.Client, job string) (bool, error) {
	o, err := c.Market.PlacedOrder(ctx, job)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return false, nil
	case err == nil && o.Consumer != c.Address():
		return false, fmt.Errorf("%w: %s", chainmarket.ErrTaken, o.ID)
	}
	return err == nil, err
}

func (c *Consumer) place(ctx context.Context, o market.Order) error {
	o.ID, o.Terms.Job = c.Job.JobID(), c.Job.JobID()
	var err error
	if c.Dir.Run.Pipeline, err = cut.Pipeline(c.Job.Spec, c.Job.Step); err != nil {
		return err
	}
	spec, genesis, err := c.Job.Publish(ctx, c.Store, &c.Dir.Run)
	if err != nil {
		return err
	}
	if err := c.Dir.WriteRun(); err != nil {
		return err
	}
	o.Terms.SpecCID, o.Terms.Genesis = spec, genesis
	if placed, err := Placed(ctx, c.Chain, c.Job.JobID()); placed || err != nil {
		return err
	}
	return c.Chain.Market.Order(ctx, o, referee.Opening(c.Job.Spec, c.Job.Step, c.Job.Manifest))
}

// Run collects rounds until the books are closed.
func (c *Consumer) Run(ctx context.Context) (*rundir.Summary, error) {
	h := journal.Header{Role: member.RoleConsumer, ID: c.Chain.Address(), Job: c.Job.JobID(), Version: c.Options.Version,
		Next: c.next()}
	m := journal.OpenWriter(c.home, h, c.Log)
	defer m.Close()
	defer answersAbout(c)()
	duty := consumer.New(h.Next)
	tell := func(e role.Event) []role.Action {
		actions := duty.Step(e)
		m.Note(e, actions)
		return actions
	}
	blocks, err := c.Chain.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	pulse := uplink.NewPulse(c.Options.Network, warns(c.Options))
	defer pulse.Stop()
	for {
		select {
		case <-ctx.Done():
			c.sayLocked()
			return nil, ctx.Err()
		case <-pulse.Silence():
			pulse.Silent(nil)
		case b, ok := <-blocks:
			if !ok {
				return nil, errors.Join(ctx.Err(), member.ErrClosed)
			}
			pulse.Block(b.Height)
			if c.progress.BudgetUzen == 0 { // the peer may be behind the order
				if err := price(ctx, c); err != nil && !errors.Is(err, client.ErrNotFound) {
					return nil, err
				}
			}
			s, err := c.Chain.Training.Run(ctx, c.Job.JobID())
			if errors.Is(err, client.ErrNotFound) {
				if o, err := c.Chain.Market.PlacedOrder(ctx, c.Job.JobID()); err == nil && o.Status == "ended" {
					return nil, &EndedError{Why: o.Why}
				}
				c.show("matching")
				if !c.waits || b.Height%10 == 0 {
					c.sayWhyWaiting(ctx)
				}
				continue
			}
			if err != nil {
				return nil, err
			}
			c.waits, c.progress.Waits = false, nil
			c.tell(s)
			if c.Options.Notify.Wants(notify.Paused) && s.Phase != progress.Train {
				o, err := c.Chain.Market.PlacedOrder(ctx, c.Job.JobID())
				c.Options.Notify.Pause(err == nil && o.Status == "paused", c.progress.Event("", c.Job.Job.Name))
			}
			for _, a := range tell(role.Block{Height: b.Height, Run: s}) {
				summary, err := c.act(ctx, a, s)
				if void := (*voidError)(nil); errors.As(err, &void) {
					tell(role.Failed{Action: a, Err: err})
					a, err = consumer.Rewind{Round: void.after}, c.rewind(ctx, void.after)
				}
				if err != nil && ctx.Err() == nil && c.again(a, err) {
					tell(role.Failed{Action: a, Err: err})
					continue
				}
				if err != nil || summary != nil {
					return summary, err
				}
				c.failures = 0
				tell(role.Finished{Action: a})
			}
		}
	}
}

// maxFailures is how often in a row an action may fail before the run is given up.
const maxFailures = 10

// again reports whether an action that failed is worth another try: a holder may come back, a halted run does not, nor
// does one that diverged.
func (c *Consumer) again(a role.Action, err error) bool {
	halted, diverged := (*HaltedError)(nil), (*train.DivergedError)(nil)
	if errors.As(err, &halted) || errors.As(err, &diverged) {
		return false
	}
	c.failures++
	c.Log.Warn("action failed", "action", a.Key(), "err", err, "failures", c.failures)
	return c.failures < maxFailures
}

func (c *Consumer) act(ctx context.Context, a role.Action, s run.State) (*rundir.Summary, error) {
	switch a := a.(type) {
	case consumer.Collect:
		return nil, c.collect(ctx, a.Round, s.Base.Round)
	case consumer.Rewind:
		return nil, c.rewind(ctx, a.Round)
	case consumer.Conclude:
		if err := c.current(ctx); err != nil {
			return nil, err
		}
		u, diverged := s.Diverged()
		why := &train.DivergedError{Round: s.Round, What: fmt.Sprintf("the weights of unit %d became infinite or no "+
			"numbers, which an audit confirmed", u.Index)}
		if diverged && s.Why == reason.Diverged {
			c.diverged = why.Error()
		}
		summary, err := c.finalize(ctx)
		switch {
		case err != nil || s.Phase != progress.Halted:
			return summary, err
		case c.diverged != "":
			return summary, why
		}
		return summary, &HaltedError{Why: s.Why}
	}
	return nil, fmt.Errorf("consumer: no such action: %T", a)
}

// sayWhyWaiting reports why the order of the job is not matched, whenever the reason changes. If the chain cannot be
// asked, the report is made later.
func (c *Consumer) sayWhyWaiting(ctx context.Context) {
	open, err := c.Chain.Market.Orders(ctx)
	c.waits = err == nil
	for _, o := range open {
		if why := market.Reason(o.Why).Text(); o.ID == c.Job.JobID() && why != "" {
			offers, err := c.Chain.Market.Offers(ctx)
			if err != nil {
				continue
			}
			text := waiting(o, offers, why)
			c.once(text)
			c.progress.Waits = &api.Reason{Code: o.Why, Text: text}
		}
	}
}

// waiting says what an order waits for, and what there is of it.
func waiting(o module.OrderStatus, offers []market.Offer, why string) string {
	offering := map[crew.Role]int{}
	for _, x := range offers {
		offering[x.Role]++
	}
	least := fmt.Sprint(o.Workers.Min)
	if o.Workers.Target > o.Workers.Min {
		least = fmt.Sprintf("%d to %d", o.Workers.Min, o.Workers.Target)
	}
	return fmt.Sprintf("the order waits: %s; it needs %s workers and %d verifiers, and %d and %d offer", why, least,
		o.Verifiers, offering[crew.Worker], offering[crew.Verifier])
}

// tell reports what the run is doing.
func (c *Consumer) tell(s run.State) {
	c.progress.Workers = len(s.Active(crew.Worker))
	phases := map[progress.Phase]string{progress.Assign: "assigning", progress.Train: "training",
		progress.Reduce: "combining", progress.Attest: "attesting", progress.Settle: "settling"}
	c.show(phases[s.Phase])
	for _, l := range s.All() {
		for _, u := range l.Units {
			for _, id := range u.Challengers {
				c.once(fmt.Sprintf("round %d: verifier %s disputes unit %d of worker %s; it may be a fault that the worker "+
					"planted to test verifiers, and the chain decides",
					l.Round+1, id, u.Index, u.Worker))
			}
		}
	}
	for _, m := range s.Members {
		if !m.Active && m.Why != "" {
			if c.once(fmt.Sprintf("%s is out of the run: %s", m.ID, m.Why)) && s.Phase != progress.Done {
				c.Options.Notify.Lost(m.Role.String(), m.ID, m.Why, c.progress.Workers, c.progress.Event("", c.Job.Job.Name))
			}
		}
	}
}

// once says something, and reports whether that is the first time.
func (c *Consumer) once(text string) bool {
	first := !c.seen[text]
	if first && c.Options.Say != nil {
		c.Options.Say(text)
	}
	c.seen[text] = true
	return first
}

func (c *Consumer) show(phase string) {
	c.progress.Phase = phase
	if c.Options.Progress != nil {
		c.Options.Progress(c.progress)
	}
}

// collect fetches the checkpoint after a round, measures it, and records both: all of it or, as far as later calls
// can see, nothing. If the round is so old that no member keeps its checkpoint, only the line of the lineage is
// recorded; latest is the latest round.
func (c *Consumer) collect(ctx context.Context, round, latest uint32) error {
	if round == 0 {
		return c.record(ctx, round, c.Job.Genesis, measured.UnitLogs{}, nil)
	}
	if err := c.current(ctx); err != nil {
		return err
	}
	entry, err := c.Chain.Training.Lineage(ctx, c.Job.JobID(), round)
	if err != nil {
		return err
	}
	holders, err := c.Chain.Registry.Addrs(ctx)
	if err != nil {
		return err
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return c.fetcher.Fetch(ctx, id, holders) }
	to := aside(c)
	next, err := patched(ctx, c, entry.Attestation.Checkpoint)
	if err != nil {
		next, err = bundle.LoadCheckpointEach(ctx, entry.Attestation.Checkpoint, get, checkpoint.InTurn,
			to.Room(c.Job.Size().Checkpoint()))
	}
	switch {
	case err == nil:
		next = c.Shared.Checkpoint(entry.Attestation.Checkpoint.Root, next, to)
		err = c.keepUpdates(ctx, entry, holders)
	case errors.Is(err, blob.ErrNotFound) && latest >= round+member.DefaultKeep:
		c.Log.Warn("no member keeps the checkpoint", "round", round, "err", err)
		next, err = nil, nil
	}
	if err != nil {
		return err
	}
	line := rundir.NewLine(entry)
	if err := c.record(ctx, round, next, c.hear(ctx, entry, holders), &line); err != nil {
		return err
	}
	return c.prune(ctx, int(terms.OpenRounds(c.Job.Spec.Units+c.Job.Spec.Apart().Drawing(), c.Job.Spec.Exchange.Carry)))
}

// voidError says that collected checkpoints are not in the lineage any more.
type voidError struct {
	after uint32 // round of the last one that is
}

func (e *voidError) Error() string {
	return fmt.Sprintf("the checkpoints after round %d were rolled back", e.after)
}

// current reports as a *voidError whether the last collected checkpoint was rolled back: the run may have gone on
// since, so that its state does not tell.
func (c *Consumer) current(ctx context.Context) error {
	for n := len(c.lines); n > 0; n-- {
		entry, err := c.Chain.Training.Lineage(ctx, c.Job.JobID(), uint32(n))
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue
		case err != nil:
			return err
		case entry.Attestation.Checkpoint != c.lines[n-1].AsCheckpoint():
			continue
		case n < len(c.lines):
			return &voidError{after: uint32(n)}
		}
		return nil
	}
	if len(c.lines) > 0 {
		return &voidError{}
	}
	return nil
}

// rewind drops what was collected after a round.
func (c *Consumer) rewind(ctx context.Context, round uint32) error {
	kept, void := c.lines[:min(int(round), len(c.lines))], c.lines[min(int(round), len(c.lines)):]
	if len(void) == 0 {
		return nil
	}
	c.partlyWritten = true
	if err := c.Dir.Keep(kept, int(round)); err != nil {
		return err
	}
	c.partlyWritten = false
	c.board.Restart(round*c.Job.Spec.Steps + 1)
	c.Options.Push.Rewind(int(round * c.Job.Spec.Steps))
	c.lines, c.last = kept, nil
	maps.DeleteFunc(c.dropped, func(r uint32, _ bool) bool { return int(r) > len(kept) })
	c.mark = c.marks[round]
	if c.mark.at.IsZero() { // collected before a restart
		c.mark = roundStart{at: time.Now(), step: int(round * c.Job.Spec.Steps)}
	}
	c.progress.Step, c.progress.Round = c.mark.step, int(round)
	if c.Options.Say != nil {
		c.Options.Say(fmt.Sprintf("a verdict took the run back to the checkpoint of round %d", round))
	}
	names := checkpoints(c.Dir.Run.Blobs.Genesis, kept)
	for _, l := range void {
		if err := checkpoint.Drop(ctx, c.Store, l.Checkpoint, names); err != nil {
			return err
		}
	}
	return nil
}

// record measures a checkpoint, unless it is nil, and appends what is known about its round to the files, the line of
// the lineage last: without it the rest is dropped when a later call, or process, tries again.
func (c *Consumer) record(ctx context.Context, round uint32, ckpt *train.Checkpoint, units measured.UnitLogs,
	line *rundir.Line) error {
	metrics, after, err := c.measure(ctx, round, ckpt, units)
	if err != nil {
		return err
	}
	samples, err := c.sample(ctx, metrics[len(metrics)-1], ckpt)
	if err != nil {
		return err
	}
	drawn, err := drawAnswers(c, &metrics[len(metrics)-1], ckpt)
	if err != nil {
		return err
	}
	samples = append(samples, drawn...)
	if c.partlyWritten {
		if err := c.Dir.Keep(c.lines, int(round)-1); err != nil {
			return err
		}
	}
	c.partlyWritten = true
	if err := errors.Join(rundir.AppendRecords(c.Dir, rundir.FileMetrics, metrics),
		rundir.AppendRecords(c.Dir, rundir.FileSamples, samples)); err != nil {
		return err
	}
	if line != nil {
		if err := c.Dir.Append(rundir.FileLineage, line.Encode()); err != nil {
			return err
		}
		c.lines = append(c.lines, *line)
	}
	copyCheckpoint(c, round, ckpt)
	c.partlyWritten, c.last = false, ckpt
	c.board.Add(tracked(metrics))
	c.Options.MLflow.Add(tracked(metrics))
	c.mark, c.marks[round] = after, after
	paid := c.progress.PaidUzen
	c.advanceProgress(metrics[len(metrics)-1])
	c.Options.Notify.Spent(paid, c.progress.Event("", c.Job.Job.Name))
	if metrics[len(metrics)-1].EvalLoss != nil {
		c.Options.Notify.Evaluated(c.progress.Event("", c.Job.Job.Name))
	}
	return nil
}

// checkpoints are those of lines, and the first of all, which is never deleted: a later one may have blobs of it.
func checkpoints(genesis string, lines []rundir.Line) []string {
	names := []string{genesis}
	for _, l := range lines {
		names = append(names, l.Checkpoint)
	}
	return names
}

// prune deletes checkpoints. The last of the lineage stay, so many as are open, since rounds may be rolled back, and
// the last keep_last of those after a multiple of every_steps steps.
func (c *Consumer) prune(ctx context.Context, open int) error {
	every, saved := savedEvery(c.Job), c.Job.Job.Checkpoint.KeepLast
	var kept, drop []rundir.Line
	for i, l := range slices.Backward(c.lines) {
		switch after := i + 1; { // rounds
		case after%every == 0 && saved > 0:
			saved--
			kept = append(kept, l)
		case after > len(c.lines)-max(1, open):
			kept = append(kept, l)
		case !c.dropped[l.Round]:
			drop = append(drop, l)
		}
	}
	names := checkpoints(c.Dir.Run.Blobs.Genesis, kept)
	for _, l := range drop {
		if err := checkpoint.Drop(ctx, c.Store, l.Checkpoint, names); err != nil {
			return err
		}
		c.dropped[l.Round] = true
	}
	return nil
}
