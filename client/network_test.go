package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

const (
	funds = 50_000_000
	stake = 2_000_000
)

// network is an embedded chain with one client for every name.
type network struct {
	t         *testing.T
	ctx       context.Context
	config    chain.Config
	validator *chain.Validator
	clients   map[string]*client.Client
	liar      string // account whose work every verifier challenges
}

func start(t *testing.T, names ...string) *network {
	t.Helper()
	return startChain(t, "test", names...)
}

func startChain(t *testing.T, chainID string, names ...string) *network {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	n := &network{t: t, ctx: ctx, config: chain.Config{Home: t.TempDir(), ChainID: chainID,
		BlockTime: 50 * time.Millisecond, Log: t.Output(), Referee: nowork.Open}}
	for _, name := range names {
		n.config.Accounts = append(n.config.Accounts, chain.Funded{Address: key(name).Address(), Amount: funds})
	}
	n.open(names...)
	t.Cleanup(func() { n.validator.Stop() })
	return n
}

func (n *network) open(names ...string) {
	n.t.Helper()
	v, err := chain.Start(n.ctx, n.config)
	if err != nil {
		n.t.Fatal(err)
	}
	n.validator, n.clients = v, map[string]*client.Client{}
	for _, name := range names {
		c := client.New(v.Client(), key(name))
		n.clients[name] = c
		n.t.Cleanup(c.Close)
	}
}

// serve starts the validator again, with an HTTP interface.
func (n *network) serve() {
	n.t.Helper()
	n.validator.Stop()
	n.config.RPC = porttest.Address(n.t)
	n.open()
}

// dial serves, and connects to the interface until the test ends.
func (n *network) dial() rpcclient.Client {
	n.t.Helper()
	n.serve()
	rpc, err := endpoint.Dial("http://" + n.config.RPC)
	n.must(err)
	n.t.Cleanup(func() { _ = rpc.Stop() })
	return rpc
}

func key(name string) *wallet.Key { return wallet.KeyFromSeed(canon.Sum("test", []byte(name))) }

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// refused checks that a message was refused by a rule, with the code of a module.
func (n *network) refused(err error, rule error, space string, code uint32) {
	n.t.Helper()
	e, ok := errors.AsType[*transaction.Error](err)
	if !ok || !errors.Is(err, rule) || e.Space != space || e.Code != code || e.Fix == "" {
		n.t.Errorf("got %v, want %s %d: %v", err, space, code, rule)
	}
}

func (n *network) enlist(name string, role crew.Role, price uint64) {
	n.t.Helper()
	c := n.clients[name]
	n.must(c.Registry.Register(n.ctx, registry.Participant{Roles: []crew.Role{role}, PeerID: "peer-" + name,
		Addrs: []string{"/ip4/127.0.0.1/tcp/4001"}, Device: "test", Stake: stake}))
	n.must(c.Market.Offer(n.ctx, role, price, 1))
}

func termsOf(job string) terms.Terms {
	return terms.Terms{
		Job: job, Spec: canon.Sum("spec"), SpecCID: "spec-cid",
		Genesis: terms.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis-cid"},
		Rounds:  2, Units: 4, Segments: 2, UnitFlops: 1_000_000_000_000_000, AuditPPM: 100_000,
		Deadlines: terms.Deadlines{Train: 200, Audit: 200, Attest: 200, Challenge: 2}, Window: 4,
	}
}

func order(job string) market.Order {
	return market.Order{
		ID: job, Terms: termsOf(job), Budget: 10_000_000, PriceCap: 1000,
		Workers: market.Workers{Min: 2, Target: 2, Max: 2}, Verifiers: 1,
	}
}

// until follows the blocks until the run of a job satisfies a condition.
func (n *network) until(c *client.Client, job string, done func(run.State) bool) run.State {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	n.must(err)
	for range blocks {
		s, err := c.Training.Run(n.ctx, job)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		n.must(err)
		if done(s) {
			return s
		}
	}
	n.t.Fatal("the blocks ended")
	return run.State{}
}

// commitment of a unit; nothing is computed in these tests.
func commitment(round, unit uint32) work.Commitment {
	at := fmt.Appendf(nil, "%d/%d", round, unit)
	c := work.Commitment{
		Segments: []canon.Digest{canon.Sum("s0", at), canon.Sum("s1", at), train.StateRoot(1, end(round, unit).Roots())},
		Update:   canon.Sum("update", at), UpdateCID: "update-" + string(at), Bytes: 1000, Loss: 2_500_000,
	}
	c.HiddenRoots = audit.Hide(nonce(round, unit), c.Segments)
	return c
}

// nonce hides the state roots of every worker.
func nonce(round, unit uint32) canon.Digest {
	return audit.Nonce(canon.Sum("secret"), "job", round, unit, 0)
}

// end is the state at the end of a unit.
func end(round, unit uint32) *sealed.State {
	x := tensor.New(tensor.Make(tensor.Float32, 2000))
	x.F32()[0], x.F32()[1] = float32(round), float32(unit)
	return sealed.New(1, []*tensor.Tensor{x})
}

func seal(s run.State, round uint32, u work.Unit) *audit.Seal {
	return audit.NewSeal(s.Subject(round, u), end(round, u.Index).Trees())
}

// unseal opens the seals of a verifier.
func (n *network) unseal(ctx context.Context, c *client.Client, s run.State) {
	for _, l := range s.All() {
		for _, u := range l.Units {
			if u.Status == work.Sealed && u.Verifier == c.Address() && !u.Question.IsZero() {
				o, err := seal(s, l.Round, *u).Open(u.Question, end(l.Round, u.Index))
				n.must(err)
				n.unlessOvertaken(c.Work.Unseal(ctx, s.Terms.Job, u.ID(l.Round), o))
			}
		}
	}
}

// play does every duty of a member until the run ends.
func (n *network) play(name, job string) {
	c := n.clients[name]
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	n.must(err)
	for range blocks {
		s, err := c.Training.Run(ctx, job)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		n.must(err)
		if m, _ := s.Member(c.Address()); !m.Active || s.Phase == progress.Done || s.Phase == progress.Halted {
			return
		}
		for _, u := range s.Work(c.Address()) {
			n.unlessOvertaken(c.Work.Commit(ctx, job, u.ID(s.Round), commitment(s.Round, u.Index)))
		}
		for _, d := range s.Audits(c.Address()) {
			if d.Worker == n.liar {
				n.must(c.Work.Challenge(ctx, job, d.ID(), 0, d.Commit.Digest()))
				n.must(c.Work.Move(ctx, job, d.ID(), dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}))
				break // the verdict changed the other duties
			}
			n.unlessOvertaken(c.Work.Pass(ctx, job, d.ID(), seal(s, d.Round, d.Unit).Root()))
		}
		n.unseal(ctx, c, s)
		if s.Phase == progress.Attest && !s.Voted(c.Address()) {
			next := terms.Checkpoint{Round: s.Round + 1, Root: canon.Sum("root", []byte{byte(s.Round)}), CID: "checkpoint"}
			n.unlessOvertaken(c.Work.Attest(ctx, s.Attestation(next)))
		}
	}
}

// unlessOvertaken checks what came of a message about a state that others may have changed meanwhile.
func (n *network) unlessOvertaken(err error) {
	n.t.Helper()
	for _, late := range []error{refusal.ErrStale, refusal.ErrHalted, refusal.ErrWrongPhase, refusal.ErrInactive,
		refusal.ErrNotYours} {
		if errors.Is(err, late) {
			return
		}
	}
	n.must(err)
}

// height waits for the next block.
func (n *network) height(c *client.Client) int64 {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	n.must(err)
	return (<-blocks).Height
}
