package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer/fetch"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/loop/curve"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/web/access"
)

// Terms are what an order of a session asks of a network.
type Terms struct {
	Budget    uint64 // in uzen, for all steps
	PriceCap  uint64 // in uzen per 10^15 floating-point operations
	Workers   uint32 // least and wanted number; a step is the work of one
	Verifiers uint32
	AuditPPM  uint32
	Idle      int64 // blocks for which the run waits for the data of a step
}

// EndedError says that the run of a session is over, or its order.
type EndedError struct{ Why string }

// Error implements error.
func (e *EndedError) Error() string { return "loop: the run of the session is over: " + e.Why }

// Session leads one run. It is for one goroutine, until End.
type Session struct {
	ID      string
	account *account.Account
	chain   *client.Client
	work    *order.Work
	ledger  Ledger
	log     *slog.Logger
	record  record.Record // of which those rounds after a verdict are named again that are in Fed

	store  *blob.Disk
	dir    string
	into   *fetch.Fetcher
	detach func()
	rounds atomic.Int64 // that have data
	mu     sync.Mutex   // of the record and of pruned, after End
	pruned int          // rounds after which the checkpoint is deleted
	ended  func()       // is called when the run is over, and what it cost is known
}

// open opens the store of a session.
func open(a *account.Account, w *order.Work, r record.Record, o Options) (*Session, error) {
	s := &Session{ID: r.Order, account: a, chain: a.Chain, work: w, ledger: o.Ledger, log: o.Log, record: r,
		dir: filepath.Join(Folder(a), r.Order), ended: func() {}}
	s.rounds.Store(int64(len(r.Fed)))
	var err error
	if s.store, err = blob.OpenDisk(filepath.Join(s.dir, blobFolder)); err != nil {
		return nil, err
	}
	unlock, err := folder.Lock(s.dir)
	if err != nil {
		return nil, err
	}
	var detach func()
	s.into, _, detach = a.Attach(s.store)
	s.detach = func() {
		detach()
		if err := unlock(); err != nil {
			s.log.Warn("the folder of a session stays locked", "folder", s.dir, "err", err)
		}
	}
	return s, nil
}

// reopen is the session of a record without its work, whose program Engine.Resume adds.
func reopen(a *account.Account, r record.Record, o Options) (*Session, error) {
	return open(a, &order.Work{Shape: r.Shape, Adam: r.Adam}, r, o)
}

// Begin orders the run of some work, which a caller pays, for a model with as many steps. It does not wait until the
// order is matched. Named is called once the folder has what is needed to find the run again, before it is ordered.
func Begin(ctx context.Context, a *account.Account, w *order.Work, o Options, by access.Caller, steps uint32,
	named func(order string) error) (*Session, error) {
	spec := w.Task.Spec
	r := record.Record{Order: record.Prefix + spec.Digest().String()[:16], Token: by.Token, Budget: o.Budget,
		Shape: w.Shape, Adam: w.Adam, Numerics: spec.Numerics, Program: spec.Program, Frozen: spec.Frozen, First: steps}
	if err := o.Ledger.Reserve(by, r.Order, r.Budget); err != nil {
		return nil, err
	}
	s, err := open(a, w, r, o)
	if err != nil {
		nothing := uint64(0)
		o.Ledger.Note(by.Token, r.Order, r.Budget, &nothing)
		return nil, err
	}
	if sent, err := s.order(ctx, o.Terms, named); err != nil {
		s.abandon(ctx, sent, err)
		return nil, err
	}
	return s, nil
}

// leastOpen is how many blocks an order waits for members, at least.
const leastOpen = 100

// order orders the run, and reports whether the order may have been sent.
func (s *Session) order(ctx context.Context, t Terms, named func(order string) error) (sent bool, err error) {
	spec, step := s.work.Task.Spec, s.work.Task.Step
	of := bundle.Terms(s.ID, spec, parts.Flops(step), bundle.Checks{AuditPPM: t.AuditPPM})
	of.Led = t.Idle
	of.SpecCID, _, of.Genesis, err = bundle.Ship(ctx, s.store, s.ID, s.work.Task, s.work.Genesis, "", nil)
	if err != nil {
		return false, err
	}
	head, err := s.chain.Ledger.Head(ctx)
	if err != nil {
		return false, err
	}
	s.record.Genesis, s.record.Last, s.record.Until = of.Genesis, of.Genesis, head.Height+max(t.Idle, leastOpen)
	if err := errors.Join(s.save(), curve.Begin(s.dir, s.ID, spec.Numerics)); err != nil {
		return false, err
	}
	if err := named(s.ID); err != nil {
		return false, err
	}
	if err := s.account.Enlist(ctx); err != nil {
		return false, err
	}
	// A model has no other work meanwhile: the order is not open for long.
	return true, s.chain.Market.Order(ctx, market.Order{ID: s.ID, Budget: t.Budget, PriceCap: t.PriceCap,
		Deadline:  s.record.Until,
		Workers:   market.Workers{Min: t.Workers, Target: t.Workers, Max: t.Workers},
		Verifiers: t.Verifiers, Terms: of}, referee.Opening(spec, step, s.work.Manifest))
}

// abandon forgets a session without an order. An order that was sent, and that the network has or may take later, keeps
// its budget counted until it is over, or can come in no more.
func (s *Session) abandon(ctx context.Context, sent bool, why error) {
	_, refused := errors.AsType[*transaction.Error](why)
	if sent && !refused && !errors.Is(why, client.ErrLost) {
		s.End(ctx)
		return
	}
	nothing := uint64(0)
	s.ledger.Note(s.record.Token, s.ID, s.record.Budget, &nothing)
	s.detach()
	if err := os.RemoveAll(s.dir); err != nil {
		s.log.Warn("blobs of a session stay on the disk", "folder", s.dir, "err", err)
	}
}

// Outcome is what came of a step.
type Outcome struct {
	Checkpoint *train.Checkpoint
	// how many steps before this one were done again, with the data that they had, after a verdict against one of them
	Redone uint32
	Blocks int64 // from the first block that was seen to the one after which the checkpoint was attested
}

// Step has the network take a step on data, which are tensors by the names of tokenloss.Given, and returns the
// checkpoint after it, once it is attested. A verdict may still take the run back; then the next step says so. A step
// that had says is not taken again: it returns what came of that.
func (s *Session) Step(ctx context.Context, id string, data map[string]*tensor.Tensor) (*Outcome, error) {
	fed := s.record.Fed
	round := uint32(len(fed))
	switch n := len(fed); {
	case s.had(id, data):
		round--
	case n > 0 && fed[n-1].After == "":
		return nil, &EndedError{"whether it has taken the step before is not known"}
	case round >= s.work.Steps:
		return nil, &EndedError{fmt.Sprintf("it has had the %d steps that it was ordered for", round)}
	default:
		f, err := s.publish(ctx, round, data)
		if err != nil {
			return nil, err
		}
		f.By = id
		s.record.Fed = append(fed, f)
		if err := s.save(); err != nil { // the run knows nothing of these data
			s.record.Fed = fed
			return nil, err
		}
		s.rounds.Store(int64(round) + 1)
	}
	out, err := s.follow(ctx, round)
	if ended := (*EndedError)(nil); err != nil && !errors.As(err, &ended) && ctx.Err() == nil {
		// The run may take the step all the same, and a later one would begin after it.
		return nil, &EndedError{"whether it has taken the step is not known: " + err.Error()}
	}
	return out, err
}

// pending reports whether no result of the latest step was told.
func (s *Session) pending() bool {
	n := len(s.record.Fed)
	return n > 0 && s.record.Fed[n-1].After == ""
}

// had reports whether the latest step was asked for under an identifier, or, if its result was not told, with the same
// data: they have the number of the step in them.
func (s *Session) had(id string, data map[string]*tensor.Tensor) bool {
	n := len(s.record.Fed)
	if n == 0 || id != "" && s.record.Fed[n-1].By == id {
		return n > 0
	}
	if data == nil || !s.pending() {
		return false
	}
	_, _, root := s.given(data)
	return s.record.Fed[n-1].Root == root
}

// follow names the data of rounds until the checkpoint after one is attested, and loads it.
func (s *Session) follow(ctx context.Context, round uint32) (*Outcome, error) {
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, err := s.chain.Blocks(following)
	if err != nil {
		return nil, err
	}
	out := &Outcome{}
	var first int64
	for {
		state, done, err := s.move(ctx, round)
		switch {
		case err != nil:
			return nil, err
		case state.Round < round && state.Terms.Led > 0:
			out.Redone = max(out.Redone, round-state.Round)
		case done:
			out.Checkpoint, err = s.arrive(ctx, round, state)
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case b, ok := <-blocks:
			if !ok {
				return nil, errors.Join(ctx.Err(), client.ErrClosed)
			}
			if first == 0 {
				first = b.Height
			}
			out.Blocks = b.Height - first
		}
	}
}

// arrive loads the checkpoint after a round, and notes it.
func (s *Session) arrive(ctx context.Context, round uint32, state run.State) (*train.Checkpoint, error) {
	c, err := s.load(ctx, state.Base)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Fed[round].After, s.record.Last = state.Base.CID, state.Base
	if err := errors.Join(s.save(), s.prune(ctx, state)); err != nil {
		s.log.Warn("the folder of a session is not as it should be", "job", s.ID, "err", err)
	}
	return c, nil
}

// came is what came of the latest step of a run that is over, or that ends; nil: it was not taken, nor paid.
func (s *Session) came(ctx context.Context) (*train.Checkpoint, error) {
	if !s.pending() {
		return s.load(ctx, s.record.Last)
	}
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, err := s.chain.Blocks(following)
	if err != nil {
		return nil, order.Unreachable(err)
	}
	for {
		state, err := s.chain.Training.Run(ctx, s.ID)
		switch _, over := order.Settled(ctx, s.chain, s.ID, s.record.Until); {
		case errors.Is(err, client.ErrNotFound) && over:
			return nil, nil
		case errors.Is(err, client.ErrNotFound):
		case err != nil:
			return nil, order.Unreachable(err)
		case int(state.Round) == len(s.record.Fed):
			return s.arrive(ctx, state.Round-1, state)
		case state.Over():
			return nil, nil
		}
		if _, ok := <-blocks; !ok {
			return nil, order.Unreachable(errors.Join(ctx.Err(), client.ErrClosed))
		}
	}
}

// given are data in the order in which a step reads them, and the root under which a run names them.
func (s *Session) given(data map[string]*tensor.Tensor) (names []string, given map[string]*tensor.Tensor,
	root canon.Digest) {
	var list []*tensor.Tensor
	names, given = parts.Given(s.work.Task.Step), map[string]*tensor.Tensor{}
	for _, n := range names {
		given[n] = data[strings.TrimPrefix(n, tokenloss.DataOf)]
		list = append(list, given[n])
	}
	return names, given, train.CarriedRoot(train.Roots(list))
}

// publish stores data under a root and an address.
func (s *Session) publish(ctx context.Context, round uint32, data map[string]*tensor.Tensor) (record.Feed, error) {
	names, given, root := s.given(data)
	id, err := checkpoint.Save(ctx, s.store, checkpoint.Manifest{Job: s.ID, Round: round, StateRoot: root}, names, given)
	return record.Feed{Root: root, CID: id.String()}, err
}

// move does the next thing that a run needs of its consumer, and reports whether the checkpoint after a round is there.
func (s *Session) move(ctx context.Context, round uint32) (run.State, bool, error) {
	state, err := s.chain.Training.Run(ctx, s.ID)
	if errors.Is(err, client.ErrNotFound) {
		if o, err := s.chain.Market.PlacedOrder(ctx, s.ID); err == nil && o.Status == "ended" {
			return state, false, &EndedError{o.Why}
		}
		return state, false, nil
	}
	switch {
	case err != nil:
		return state, false, err
	case state.Round == round+1:
		return state, true, nil
	case state.Round > round: // of data that this session has not named
		return state, false, &EndedError{fmt.Sprintf("it is in round %d, after %d steps", state.Round, round+1)}
	case state.Over():
		return state, false, &EndedError{state.Why}
	case state.Phase != progress.Assign || len(state.From) > 0:
		return state, false, nil
	}
	f := s.record.Fed[state.Round]
	err = s.chain.Market.FeedJob(ctx, s.ID, state.Round, f.Root, f.CID)
	for _, known := range []error{refusal.ErrStale, refusal.ErrDuplicate, refusal.ErrWrongPhase} {
		if errors.Is(err, known) { // the run has gone on
			err = nil
		}
	}
	return state, false, err
}

func (s *Session) load(ctx context.Context, name terms.Checkpoint) (*train.Checkpoint, error) {
	holders, err := s.chain.Registry.Addrs(ctx)
	if err != nil {
		return nil, err
	}
	return bundle.LoadCheckpoint(ctx, name, func(ctx context.Context, id blob.CID) ([]byte, error) {
		return s.into.Fetch(ctx, id, holders)
	})
}

// prune deletes the checkpoints of rounds that are final: no verdict takes the run back to them. The first one stays,
// as later ones may have blobs of it, and the data of all rounds: with these, the run can be executed again.
func (s *Session) prune(ctx context.Context, state run.State) error {
	open := int(state.Round)
	for _, l := range state.Stored() {
		open = min(open, int(l.Round))
	}
	return s.shorten(ctx, max(s.pruned, open-1)) // an open round begins with the checkpoint after the round before
}

// shorten deletes the checkpoints after the rounds before one.
func (s *Session) shorten(ctx context.Context, last int) error {
	keep := []string{s.record.Genesis.CID, s.record.Last.CID}
	for i, f := range s.record.Fed {
		if keep = append(keep, f.CID); i >= last {
			keep = append(keep, f.After)
		}
	}
	for ; s.pruned < last; s.pruned++ {
		after := s.record.Fed[s.pruned].After
		if after == "" { // it is not here
			continue
		}
		if err := checkpoint.Drop(ctx, s.store, after, keep); err != nil {
			return err
		}
	}
	return nil
}

// End takes back the order of the session: no further round begins, and what is not spent returns when those under way
// are final. The data of these are served until then, also by a process that is started when this one ends before.
func (s *Session) End(ctx context.Context) {
	s.record.Over = true
	if err := s.save(); err != nil {
		s.log.Warn("the folder of a session is not as it should be", "folder", s.dir, "err", err)
	}
	go func() {
		if s.ends(ctx) {
			return
		}
		if err := s.account.Enlist(ctx); err != nil { // its data may be asked for at the address of another process
			s.log.Warn("the data of a session may not be found", "job", s.ID, "err", err)
		}
		blocks, err := s.chain.Blocks(ctx)
		if err != nil {
			return
		}
		for cancelled := s.cancel(ctx); ; cancelled = cancelled || s.cancel(ctx) {
			if _, ok := <-blocks; !ok || s.ends(ctx) {
				return
			}
		}
	}()
}

// ends concludes a session that is over.
func (s *Session) ends(ctx context.Context) bool {
	spent, over := order.Settled(ctx, s.chain, s.ID, s.record.Until)
	if over {
		s.conclude(ctx, spent)
	}
	return over
}

// cancel takes back the order, and reports whether that was tried: an order that is not there may come in later.
func (s *Session) cancel(ctx context.Context) bool {
	if _, err := s.chain.Market.PlacedOrder(ctx, s.ID); errors.Is(err, client.ErrNotFound) {
		return false
	}
	if err := s.chain.Market.CancelOrder(ctx, s.ID); err != nil && !errors.Is(err, chainmarket.ErrState) {
		s.log.Warn("the order of a session stays open; the run ends when it is idle", "job", s.ID, "err", err)
	}
	return true
}

// conclude notes what a run cost that is over. Of its checkpoints the first and the last stay.
func (s *Session) conclude(ctx context.Context, spent uint64) {
	s.ledger.Note(s.record.Token, s.ID, s.record.Budget, &spent)
	s.mu.Lock()
	s.record.Spent = &spent
	if err := errors.Join(s.save(), s.shorten(ctx, len(s.record.Fed)), curve.End(s.dir)); err != nil {
		s.log.Warn("the folder of a session is not as it should be", "folder", s.dir, "err", err)
	}
	s.mu.Unlock()
	s.ended()
}
