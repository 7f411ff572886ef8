package node

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
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/tracking"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/consumer"
	"github.com/starling-network/starling/role/engine"
)

// collector is the consumer's side of a run: it ships the job, and turns the lineage into the files of an output
// folder.
type collector struct {
	out       *OutDir
	b         *Blueprint
	opt       TrainOptions
	chain     *client.Client
	home      string // folder of the consumer
	host      *peer.Host
	store     *blob.Disk
	eval      *program.Exec
	log       *slog.Logger
	generator *Generator                                      // of samples, made with the first
	board     *tracking.Board                                 // of TensorBoard, if the job asks for one
	moved     func() (sent, received uint64)                  // bytes of all workers so far
	links     func(context.Context) ([]api.Link, error)       // who fetched from whom so far, as far as it is known
	took      func(dispute.Game) float64                      // milliseconds of the referee for the leaf of a dispute, 0 if not known
	updates   func(context.Context, blob.CID) ([]byte, error) // those at hand without fetching; nil: what the store keeps

	lines    []Line          // complete lines of the lineage
	torn     bool            // the files hold more than the lines: writing them failed half-way
	dropped  map[uint32]bool // rounds of the lineage whose checkpoint is deleted
	last     *train.Checkpoint
	progress Progress
	mark     mark            // of the last round collected
	marks    map[uint32]mark // of those before it, by round
	seen     map[string]bool // events told to the user
	diverged string          // why the run was given up, if it diverged
	failures int             // actions that failed in a row
}

// mark is what the next round is measured from.
type mark struct {
	at             time.Time
	step           int
	sent, received uint64 // bytes of all workers
}

// newCollector opens the store and the host of a collector that knows its job, its chain and its log.
func newCollector(with collector, h home.Home) (*collector, error) {
	c := &with
	c.home = h.Dir
	b := c.b
	store, err := blob.OpenDisk(c.out.file(dirBlobs))
	if err != nil {
		return nil, err
	}
	host, err := peer.New(peer.Config{Key: h.Peer(), Store: store, Listen: c.opt.Listen})
	if err != nil {
		return nil, err
	}
	c.host, c.store, c.seen, c.marks = host, store, map[string]bool{}, map[uint32]mark{}
	c.dropped = map[uint32]bool{}
	if c.updates == nil {
		c.updates = store.Get
	}
	if c.eval, err = program.Compile(b.Eval, 1); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	if c.lines, err = c.out.rewind(); err != nil {
		return nil, errors.Join(err, host.Close())
	}
	c.mark = mark{at: time.Now(), step: len(c.lines) * int(b.Spec.Steps)}
	if dir := b.Job.Tracking.Tensorboard; dir != "" {
		c.board = tracking.OpenBoard(dir, uint32(min(c.mark.step, 1)+c.mark.step), func(err error, dropped int) {
			c.log.Warn("TensorBoard does not have all metrics", "left out", dropped, "err", err)
		})
	}
	c.progress = Progress{
		Job: b.JobID(), Step: c.mark.step, Steps: int(b.Spec.Rounds * b.Spec.Steps), Round: len(c.lines), Rounds: int(b.Spec.Rounds),
		Loss: math.NaN(), EvalLoss: math.NaN(), LearningRate: math.NaN(), GradNorm: math.NaN(), TokensPerSecond: math.NaN(),
		Target: int(b.Spec.Units), BudgetUzen: uint64(c.opt.Job.Budget.MaxCost), Phase: "starting",
	}
	return c, nil
}

func (n *embedded) traffic() (sent, received uint64) {
	for _, p := range n.parties {
		s, r := p.host.Traffic()
		sent, received = sent+s, received+r
	}
	return sent, received
}

// stored returns a blob that a party has.
func (n *embedded) stored(ctx context.Context, id blob.CID) (b []byte, err error) {
	err = blob.ErrNotFound
	for _, p := range n.parties {
		if b, err = p.store.Get(ctx, id); err == nil {
			return b, nil
		}
	}
	return nil, err
}

// next is the first round that is not collected: 0, the checkpoint before training, when none is.
func (c *collector) next() uint32 {
	if len(c.lines) == 0 {
		return 0
	}
	return uint32(len(c.lines)) + 1
}

// order ships the job and places its order, unless the chain has it from before a restart.
func (c *collector) order(ctx context.Context, o market.Order) error {
	spec, genesis, err := c.b.publish(ctx, c.store, &c.out.Run)
	if err != nil {
		return err
	}
	if err := c.out.writeRun(); err != nil {
		return err
	}
	o.Terms.SpecCID, o.Terms.Genesis = spec, genesis
	if _, err := c.chain.Escrow(ctx, o.ID); !errors.Is(err, client.ErrNotFound) {
		return err
	}
	return c.chain.Order(ctx, o, referee.Opening(c.b.Spec, c.b.Step, c.b.Manifest))
}

// run collects rounds until the books are closed.
func (c *collector) run(ctx context.Context) (*Summary, error) {
	defer c.board.Close()
	h := journal.Header{Role: roleConsumer, ID: c.chain.Address(), Job: c.b.JobID(), Version: c.opt.Version, Next: c.next()}
	m := takeMinutes(c.home, h, c.log)
	defer m.close()
	duty := consumer.New(h.Next)
	tell := func(e role.Event) []role.Action {
		actions := duty.Step(e)
		m.note(e, actions)
		return actions
	}
	blocks, err := c.chain.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case b, ok := <-blocks:
			if !ok {
				return nil, errors.Join(ctx.Err(), errClosed)
			}
			s, err := c.chain.Run(ctx, c.b.JobID())
			if errors.Is(err, client.ErrNotFound) {
				c.show("matching")
				continue
			}
			if err != nil {
				return nil, err
			}
			c.tell(s)
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

// again reports whether an action that failed is worth another try: a holder may come back, a halted run does not, nor does
// one that diverged.
func (c *collector) again(a role.Action, err error) bool {
	halted, diverged := (*HaltedError)(nil), (*train.DivergedError)(nil)
	if errors.As(err, &halted) || errors.As(err, &diverged) {
		return false
	}
	c.failures++
	c.log.Warn("action failed", "action", a.Key(), "err", err, "failures", c.failures)
	return c.failures < maxFailures
}

func (c *collector) act(ctx context.Context, a role.Action, s run.State) (*Summary, error) {
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
		why := &train.DivergedError{Round: s.Round, What: fmt.Sprintf("the weights of unit %d come to be infinite or no numbers, which an audit confirmed", u.Index)}
		if diverged && s.Why == run.WhyDiverged {
			c.diverged = why.Error()
		}
		summary, err := c.conclude(ctx)
		switch {
		case err != nil || s.Phase != run.Halted:
			return summary, err
		case c.diverged != "":
			return summary, why
		}
		return summary, &HaltedError{Why: s.Why}
	}
	return nil, fmt.Errorf("node: no such action: %T", a)
}

// tell reports what the run is doing.
func (c *collector) tell(s run.State) {
	c.progress.Workers = len(s.Active(run.Worker))
	phases := map[run.Phase]string{run.Assign: "assigning", run.Train: "training", run.Reduce: "combining", run.Attest: "attesting", run.Settle: "settling"}
	c.show(phases[s.Phase])
	for _, l := range s.All() {
		for _, u := range l.Units {
			for _, id := range u.Challengers {
				c.once(fmt.Sprintf("round %d: verifier %s disputes unit %d of worker %s", l.Round+1, id, u.Index, u.Worker))
			}
		}
	}
	for _, m := range s.Members {
		if !m.Active && m.Why != "" {
			c.once(fmt.Sprintf("%s is out of the run: %s", m.ID, m.Why))
		}
	}
}

func (c *collector) once(text string) {
	if !c.seen[text] && c.opt.Say != nil {
		c.opt.Say(text)
	}
	c.seen[text] = true
}

func (c *collector) show(phase string) {
	c.progress.Phase = phase
	if c.opt.Progress != nil {
		c.opt.Progress(c.progress)
	}
}

// collect fetches the checkpoint after a round, measures it, and records both: all of it or, as far as later calls can
// see, nothing. Of a round that is so long ago that nobody keeps its checkpoint any more, the line of the lineage is recorded; latest
// is the latest round.
func (c *collector) collect(ctx context.Context, round, latest uint32) error {
	if round == 0 {
		return c.record(ctx, round, c.b.Genesis, heard{}, nil)
	}
	if err := c.current(ctx); err != nil {
		return err
	}
	entry, err := c.chain.Lineage(ctx, c.b.JobID(), round)
	if err != nil {
		return err
	}
	holders, err := c.holders(ctx)
	if err != nil {
		return err
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return c.host.Fetch(ctx, id, holders) }
	next, err := engine.LoadCheckpoint(ctx, entry.Attestation.Checkpoint, get)
	switch {
	case err == nil:
		err = c.keepUpdates(ctx, entry, holders)
	case errors.Is(err, blob.ErrNotFound) && latest >= round+DefaultKeep:
		c.log.Warn("nobody keeps the checkpoint", "round", round, "err", err)
		next, err = nil, nil
	}
	if err != nil {
		return err
	}
	line := newLine(entry)
	if err := c.record(ctx, round, next, c.hear(ctx, entry, holders), &line); err != nil {
		return err
	}
	return c.prune(ctx, int(run.Window(c.b.Spec.Units, c.b.Spec.Exchange.Carry)))
}

// voidError says that collected checkpoints are not in the lineage any more.
type voidError struct {
	after uint32 // round of the last one that is
}

func (e *voidError) Error() string {
	return fmt.Sprintf("the checkpoints after round %d were rolled back", e.after)
}

// current reports as a *voidError whether the last collected checkpoint was rolled back: the run may have gone on since, so
// that its state does not tell.
func (c *collector) current(ctx context.Context) error {
	for n := len(c.lines); n > 0; n-- {
		entry, err := c.chain.Lineage(ctx, c.b.JobID(), uint32(n))
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue
		case err != nil:
			return err
		case entry.Attestation.Checkpoint != c.lines[n-1].checkpoint():
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
func (c *collector) rewind(ctx context.Context, round uint32) error {
	kept, void := c.lines[:min(int(round), len(c.lines))], c.lines[min(int(round), len(c.lines)):]
	if len(void) == 0 {
		return nil
	}
	c.torn = true
	if err := c.out.keep(kept, int(round)); err != nil {
		return err
	}
	c.torn = false
	c.board.Restart(round*c.b.Spec.Steps + 1)
	c.lines, c.last = kept, nil
	maps.DeleteFunc(c.dropped, func(r uint32, _ bool) bool { return int(r) > len(kept) })
	c.mark = c.marks[round]
	if c.mark.at.IsZero() { // collected before a restart
		c.mark = mark{at: time.Now(), step: int(round * c.b.Spec.Steps)}
	}
	c.progress.Step, c.progress.Round = c.mark.step, int(round)
	if c.opt.Say != nil {
		c.opt.Say(fmt.Sprintf("a verdict took the run back to the checkpoint of round %d", round))
	}
	names := c.names(kept)
	for _, l := range void {
		if err := dropCheckpoint(ctx, c.store, l.checkpoint(), names); err != nil {
			return err
		}
	}
	return nil
}

// record measures a checkpoint, unless it is nil, and appends what is known about its round to the files, the line of the lineage last: without
// it the rest is dropped when a later call, or process, tries again.
func (c *collector) record(ctx context.Context, round uint32, ckpt *train.Checkpoint, units heard, line *Line) error {
	metrics, after, err := c.measure(ctx, round, ckpt, units)
	if err != nil {
		return err
	}
	samples, err := c.sample(ctx, metrics[len(metrics)-1], ckpt)
	if err != nil {
		return err
	}
	if c.torn {
		if err := c.out.keep(c.lines, int(round)-1); err != nil {
			return err
		}
	}
	c.torn = true
	if err := errors.Join(appendRecords(c.out, fileMetrics, metrics), appendRecords(c.out, fileSamples, samples)); err != nil {
		return err
	}
	if line != nil {
		if err := c.out.append(fileLineage, line.Encode()); err != nil {
			return err
		}
		c.lines = append(c.lines, *line)
	}
	c.torn, c.last = false, ckpt
	c.board.Add(tracked(metrics))
	c.mark, c.marks[round] = after, after
	c.advanceProgress(metrics[len(metrics)-1])
	return nil
}

// tracked are metrics as package tracking writes them.
func tracked(metrics []Metric) []api.Metric {
	out := make([]api.Metric, len(metrics))
	for i, m := range metrics {
		out[i] = api.Metric(m)
	}
	return out
}

func (c *collector) holders(ctx context.Context) ([]string, error) {
	participants, err := c.chain.Participants(ctx)
	if err != nil {
		return nil, err
	}
	var addrs []string
	for _, p := range participants {
		addrs = append(addrs, p.Addrs...)
	}
	return addrs, nil
}

// names are the checkpoints of lines, and the first of all, which is never deleted: a later one may have blobs of it.
func (c *collector) names(lines []Line) []run.Checkpoint {
	names := []run.Checkpoint{{CID: c.out.Run.Blobs.Genesis}}
	for _, l := range lines {
		names = append(names, l.checkpoint())
	}
	return names
}

// prune deletes checkpoints. The last of the lineage stay, so many as are open, since rounds may be rolled back, and the last
// keep_last of those after a multiple of every_steps steps.
func (c *collector) prune(ctx context.Context, open int) error {
	keeps := c.b.Job.Checkpoint
	every, saved := max(1, keeps.EverySteps/int(c.b.Spec.Steps)), keeps.KeepLast
	var kept, drop []Line
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
	names := c.names(kept)
	for _, l := range drop {
		if err := dropCheckpoint(ctx, c.store, l.checkpoint(), names); err != nil {
			return err
		}
		c.dropped[l.Round] = true
	}
	return nil
}
