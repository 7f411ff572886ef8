package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/node/account"
	"github.com/starling-network/starling/node/busy"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/instrument"
	"github.com/starling-network/starling/node/journal"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/member/draft"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/node/validator"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
	"github.com/starling-network/starling/web/tinker"
)

// net is a network in this process, whose members work for one session.
type net struct {
	t       *testing.T
	ctx     context.Context
	chain   *chain.Validator
	payer   *account.Account
	homes   map[string]home.Home
	shared  *hold.Shared
	working sync.WaitGroup
	log     *slog.Logger
}

const (
	workers    = 3
	wantBudget = 1_000_000_000
)

func newNet(t *testing.T) *net {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n := &net{t: t, ctx: ctx, homes: map[string]home.Home{}, shared: hold.NewShared(1),
		log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	dir := t.TempDir()
	names := []string{"consumer", "verifier"}
	for i := range workers {
		names = append(names, fmt.Sprint("worker-", i))
	}
	var accounts []chain.Funded
	for _, name := range names {
		h, _, err := home.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n.homes[name] = h
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: validator.GenesisFunds})
	}
	rpc := porttest.Address(t)
	var err error
	n.chain, err = chain.Start(context.Background(), chain.Config{Home: filepath.Join(dir, "validator"),
		ChainID: "loop-1", Accounts: accounts, BlockTime: 100 * time.Millisecond, RPC: rpc})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.chain.Stop)
	if n.payer, err = account.Open(n.homes["consumer"], "http://"+rpc, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); n.working.Wait(); _ = n.payer.Close() })
	return n
}

// join starts the members of the run of a job, of which the first workers break the rules.
func (n *net) join(job string, liars ...adversary.Attack) {
	n.t.Helper()
	for i := range workers {
		var act adversary.Attack
		if i < len(liars) {
			act = liars[i]
		}
		n.member(fmt.Sprint("worker-", i), crew.Worker, job, act)
	}
	n.member("verifier", crew.Verifier, job, nil)
}

func (n *net) member(name string, class crew.Role, job string, act adversary.Attack) {
	n.t.Helper()
	h := n.homes[name]
	store, err := quota.New(n.ctx, blob.NewMemory(), math.MaxInt64)
	if err != nil {
		n.t.Fatal(err)
	}
	host, err := peer.New(peer.Config{Key: h.Peer(), Store: store})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = host.Close() })
	key := h.Account()
	p := &member.Process{ID: key.Address(), Threads: 1, Host: host, Store: store, Log: n.log,
		Disk: member.NewDiskBudget(math.MaxInt64, "all"), Memory: member.NewMemoryBudget(math.MaxInt64 >> 20),
		KeepLast: member.DefaultKeep, Instruments: instrument.New("test", class.String()),
		Drafts: draft.NewStore(h.Dir, job, n.log), Folder: h.Dir,
		Chain: client.Member{Client: client.New(n.chain.Client(), key), Job: job,
			Bootstrap: n.payer.Host.Addrs()}, Class: busy.Of(class, class), Adversary: act}
	step, header := member.RoleOf(h, class, false, p.ID, job, "test")
	p.Step, p.Journal = step, journal.OpenWriter(h.Dir, header, n.log)
	if err := p.Enlist(n.ctx, class, registry.DefaultStake, market.DefaultPrice); err != nil {
		n.t.Fatal(err)
	}
	n.working.Go(func() {
		if err := p.Run(n.ctx); err != nil && n.ctx.Err() == nil {
			n.t.Errorf("%s: %v", name, err)
		}
	})
}

// begun is a trainer with a model whose adapter has a rank; 0: it has none.
func begun(t *testing.T, rank int) *trainer.Trainer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, dir)
	tr, err := trainer.Open(dir, trainer.Options{Out: t.TempDir(), Context: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Create("m", tinker.Create{Rank: rank, Seed: 5, Attention: true, Feed: true}); err != nil {
		t.Fatal(err)
	}
	return tr
}

func batch(seed int) (data []tinker.Datum) {
	for row := range 2 {
		d := tinker.Datum{}
		for k := range 9 - row {
			d.Tokens = append(d.Tokens, int32((seed*31+row*7+k*3)%256))
			d.Targets = append(d.Targets, int32((seed*31+row*7+k*3+3)%256))
			d.Weights = append(d.Weights, float32(k%2+1)/2)
		}
		data = append(data, d)
	}
	return data
}

var (
	rate  = tinker.Step{Adam: tinker.Adam{Rate: 0.01, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}}
	shape = order.Shape{Rows: 3, Length: 12, Steps: 100}
	asked = Terms{Budget: wantBudget, PriceCap: market.DefaultPrice, Workers: workers, Verifiers: 1, AuditPPM: 1_000_000,
		Idle: 400}
)

// engine is one that orders from the account.
func (n *net) engine(tr *trainer.Trainer, t Terms) *Engine {
	n.t.Helper()
	e, err := New(n.ctx, tr, n.payer, Options{Shape: shape, Terms: t, Log: n.log, Kept: 8, Data: 1 << 30,
		Ledger: spending.Shared{Lock: &sync.Mutex{}, By: spending.ByToken{}}})
	if err != nil {
		n.t.Fatal(err)
	}
	return e
}

// led is an engine whose model has a session with members.
func (n *net) led(tr *trainer.Trainer, t Terms, liars ...adversary.Attack) (*Engine, *Session) {
	n.t.Helper()
	e := n.engine(tr, t)
	m := &model{}
	e.models["m"], e.patience = m, time.Millisecond
	s, err := trainer.StateOf(tr, "m")
	if err != nil {
		n.t.Fatal(err)
	}
	if err := e.begin("m", m, s, rate); err != nil {
		n.t.Fatal(err)
	}
	n.join(m.session.ID, liars...)
	return e, m.session
}

// step takes a step of the model, and returns the log-probabilities and the loss.
func step(t *testing.T, e tinker.Engine, seed int, l tinker.Loss) (*tinker.Pass, map[string]float64) {
	t.Helper()
	p, err := e.Backward("m", batch(seed), l)
	if err != nil {
		t.Fatal(err)
	}
	var ahead *tinker.Pass
	if p.Later != nil && seed%2 == 1 { // a client that waits before it asks for the step
		if ahead, err = p.Later(); err != nil {
			t.Fatal(err)
		}
	}
	metrics, err := e.Step("m", rate)
	if err != nil {
		t.Fatal(err)
	}
	if ahead != nil {
		return ahead, metrics
	}
	if p.Later != nil {
		if p, err = p.Later(); err != nil {
			t.Fatal(err)
		}
	}
	return p, metrics
}

// near compares weights and log-probabilities of the network with those of one machine: updates travel as differences,
// which are rounded, so that they differ in the last bits.
func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); d > 1e-5*max(1, math.Abs(float64(want[i]))) {
			t.Fatalf("%s %d: %v, and %v on one machine", what, i, got[i], want[i])
		}
	}
}

// otherData is a worker that computes on other data than the consumer has named.
type otherData struct{ adversary.Honest }

// lies installs such a worker.
type lies struct{}

func (lies) Install(c adversary.Setup) adversary.Step {
	c.Party.Compute = otherData{c.Honest}
	return c.Step
}

func (o otherData) Train(_ context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	base, err := o.Base(name)
	if err != nil {
		return nil, err
	}
	from, err := o.Origin(name, unit)
	if err != nil {
		return nil, err
	}
	from = slices.Clone(from)
	from[1] = from[1].Clone()
	from[1].I32()[2]++ // a target
	r, err := o.Task().Run(base, unit, from, nil)
	if err != nil {
		return nil, err
	}
	return o.NewWork(name, unit, r)
}

// A loop on a network, with a liar among its workers: the liar is convicted, the steps that it took are done again, and
// the weights are those of the same loop on one machine. A client that waits for passes has log-probabilities of its
// own machine, from which those of a lie differ.
func TestLoopWithLiar(t *testing.T) {
	for name, liar := range map[string][]adversary.Attack{"honest": nil, "skips": {adversary.Skips{}},
		"other data": {lies{}}} {
		t.Run(name, func(t *testing.T) {
			n := newNet(t)
			own, net := begun(t, 4), begun(t, 4)
			e, s := n.led(net, asked, liar...)
			losses := []tinker.Loss{{Name: tinker.CrossEntropy}}
			var steps, again int
			began := time.Now()
			for steps < 4 || liar != nil && again == 0 && steps < 30 {
				want, _ := step(t, own, steps, losses[0])
				got, metrics := step(t, e, steps, losses[0])
				if liar == nil && metrics["targets_that_differ"] > 0 {
					t.Errorf("step %d: %v", steps, metrics)
				}
				again += int(metrics["steps_done_again"])
				if steps++; liar == nil {
					near(t, "log-probability", got.LogProbs[0], want.LogProbs[0])
					near(t, "loss", []float32{float32(got.Loss)}, []float32{float32(want.Loss)})
				}
				t.Logf("step %d: %v", steps, metrics)
			}
			t.Logf("%d steps in %v", steps, time.Since(began))
			mine, _ := trainer.StateOf(own, "m")
			theirs, _ := trainer.StateOf(net, "m")
			for name, x := range mine.Trained {
				near(t, name, theirs.Trained[name].F32(), x.F32())
			}
			if liar == nil {
				return
			}
			state, err := n.payer.Chain.Training.Run(n.ctx, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			lied, _ := state.Member(n.homes["worker-0"].Account().Address())
			if again == 0 || lied.Active || lied.Why != reason.Verdict {
				t.Errorf("after %d steps, %d of them done again, the liar is %+v", steps, again, lied)
			}
			receipts, err := n.payer.Chain.Training.Receipts(n.ctx, s.ID)
			if err != nil || !slices.ContainsFunc(receipts, func(r reward.Receipt) bool { return r.Kind == reward.Slash }) {
				t.Errorf("%v: no stake was slashed: %+v", err, receipts)
			}
		})
	}
}

// A session whose consumer is silent ends, and what is not spent returns.
func TestIdleSessionEnds(t *testing.T) {
	n := newNet(t)
	short := asked
	short.Idle = 10
	e, s := n.led(begun(t, 4), short)
	step(t, e, 0, tinker.Loss{Name: tinker.CrossEntropy})
	blocks, err := n.payer.Chain.Blocks(n.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		state, err := n.payer.Chain.Training.Run(n.ctx, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		if state.Over() {
			if state.Phase != progress.Halted || state.Why != reason.Idle {
				t.Errorf("the run ends as %s over %q", state.Phase, state.Why)
			}
			break
		}
	}
	if _, err := e.Backward("m", batch(1), tinker.Loss{Name: tinker.CrossEntropy}); err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), s.ended
	s.ended = func() { ended(); close(over) }
	if _, err := e.Step("m", rate); err == nil || e.models["m"].session != nil {
		t.Errorf("a step of a run that is over: %v", err)
	}
	<-over // the session writes into its folder until then
}

// Data that no member can have cost no member anything, and the consumer a fee: the round waits for others.
func TestDataThatAreWithheld(t *testing.T) {
	n := newNet(t)
	e, s := n.led(begun(t, 0), asked)
	step(t, e, 0, tinker.Loss{Name: tinker.CrossEntropy})
	root := s.record.Fed[0].Root
	root[0]++
	if err := n.payer.Chain.Market.FeedJob(n.ctx, s.ID, 1, root, s.record.Fed[0].CID); err != nil {
		t.Fatal(err)
	}
	// it names the right data when the others are dropped
	_, metrics := step(t, e, 1, tinker.Loss{Name: tinker.CrossEntropy})
	t.Log(metrics)
	state, err := n.payer.Chain.Training.Run(n.ctx, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range state.Members {
		if !m.Active || m.Missed > 0 {
			t.Errorf("%+v", m)
		}
	}
	if err := n.payer.Chain.Market.FeedJob(n.ctx, "another", 1, root, s.record.Fed[0].CID); err == nil {
		t.Error("data of no run are taken")
	}
	stranger := client.New(n.chain.Client(), n.homes["worker-0"].Account())
	err = stranger.Market.FeedJob(n.ctx, s.ID, 2, root, s.record.Fed[0].CID)
	if err == nil || errors.Is(err, client.ErrNotFound) {
		t.Errorf("data of an account that did not order the run: %v", err)
	}
}

// noRoom is a store that takes nothing.
type noRoom struct{ blob.Store }

func (noRoom) Put(context.Context, []byte) (blob.CID, error) { return blob.CID{}, blob.ErrNotFound }

func (noRoom) Assemble(context.Context, *blob.Manifest) (blob.Assembly, error) {
	return nil, blob.ErrNotFound
}

// A step whose result is not known ends its session: a client that repeats it would have the run take it twice.
func TestStepThatFailedEndsSession(t *testing.T) {
	n := newNet(t)
	e, s := n.led(begun(t, 4), asked)
	loss := tinker.Loss{Name: tinker.CrossEntropy}
	step(t, e, 0, loss)
	s.into = n.payer.Host.Into(noRoom{blob.NewMemory()})
	if _, err := e.Backward("m", batch(2), loss); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step("m", rate); err == nil || e.models["m"].session != nil {
		t.Errorf("after a checkpoint that cannot be loaded the session continues: %v", err)
	}
	if after, err := trainer.StateOf(e.Trainer, "m"); err != nil || after.Steps != 1 {
		t.Errorf("the model has %d steps, %v", after.Steps, err)
	}
}

// A step whose data find no room on the disk is refused, and the run takes the same step when there is.
func TestStepWithoutRoom(t *testing.T) {
	n := newNet(t)
	e, s := n.led(begun(t, 4), asked)
	loss := tinker.Loss{Name: tinker.CrossEntropy}
	part := filepath.Join(s.dir, record.File+".part")
	if err := os.Mkdir(part, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Backward("m", batch(0), loss); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step("m", rate); err == nil || e.models["m"].session != s || len(s.record.Fed) != 0 {
		t.Fatalf("a step that is not on the disk: %v, of %d", err, len(s.record.Fed))
	}
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	if _, metrics := step(t, e, 0, loss); metrics["round"] != 1 {
		t.Errorf("%v", metrics)
	}
	e.shelf.options.Data = shape.Bytes()
	if _, err := e.Backward("m", batch(1), loss); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Step("m", rate); code(err) != "DATA_FULL" || e.models["m"].session != s || len(s.record.Fed) != 1 {
		t.Errorf("a step beyond the bound of all data: %v", err)
	}
	full := fmt.Errorf("%w: %w", blob.ErrFull, syscall.ENOSPC)
	if got := code(e.failed(e.models["m"], full)); got != "DISK_FULL" {
		t.Errorf("a full disk is answered with %q", got)
	}
}
