package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/x/beacon"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
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
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	n := &network{t: t, ctx: ctx, config: chain.Config{Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output()}}
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

func key(name string) *client.Key { return client.KeyFromSeed(canon.Sum("test", []byte(name))) }

func (n *network) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// refused checks that a message was refused by a rule, with the code of a module.
func (n *network) refused(err error, rule error, space string, code uint32) {
	n.t.Helper()
	e, ok := errors.AsType[*client.Error](err)
	if !ok || !errors.Is(err, rule) || e.Space != space || e.Code != code || e.Fix == "" {
		n.t.Errorf("got %v, want %s %d: %v", err, space, code, rule)
	}
}

func (n *network) enlist(name string, role run.Role, price uint64) {
	n.t.Helper()
	c := n.clients[name]
	n.must(c.Register(n.ctx, []run.Role{role}, "peer-"+name, []string{"/ip4/127.0.0.1/tcp/4001"}, "test", stake))
	n.must(c.Offer(n.ctx, role, price, 1))
}

func terms(job string) run.Terms {
	return run.Terms{
		Job: job, Spec: canon.Sum("spec"), SpecCID: "spec-cid",
		Genesis: run.Checkpoint{Root: canon.Sum("genesis"), CID: "genesis-cid"},
		Rounds:  2, Units: 4, Segments: 2, UnitFlops: 1_000_000_000_000_000, AuditPPM: 100_000,
		Deadlines: run.Deadlines{Train: 200, Audit: 200, Attest: 200},
	}
}

func order(job string) market.Order {
	return market.Order{
		ID: job, Terms: terms(job), Budget: 10_000_000, PriceCap: 1000,
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
		s, err := c.Run(n.ctx, job)
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
func commitment(round, unit uint32) run.Commitment {
	at := fmt.Appendf(nil, "%d/%d", round, unit)
	return run.Commitment{
		Segments: []canon.Digest{canon.Sum("s0", at), canon.Sum("s1", at), canon.Sum("s2", at)},
		Update:   canon.Sum("update", at), UpdateCID: "update-" + string(at), Bytes: 1000, Loss: 2_500_000,
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
		s, err := c.Run(ctx, job)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		n.must(err)
		if m, _ := s.Member(c.Address()); !m.Active || s.Phase == run.Done || s.Phase == run.Halted {
			return
		}
		for _, u := range s.Work(c.Address()) {
			n.must(c.Commit(ctx, job, s.Round, u.Index, u.Attempt, commitment(s.Round, u.Index)))
		}
		for _, u := range s.Audits(c.Address()) {
			if u.Worker == n.liar {
				n.must(c.Challenge(ctx, job, s.Round, u.Index, 0, []byte("opening")))
				n.must(c.Move(ctx, job, s.Round, u.Index, dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}))
				break // the verdict changed the other duties
			}
			n.must(c.Pass(ctx, job, s.Round, u.Index, canon.Sum("seal", []byte(name))))
		}
		if s.Phase == run.Attest && !s.Voted(c.Address()) {
			next := run.Checkpoint{Round: s.Round + 1, Root: canon.Sum("root", []byte{byte(s.Round)}), CID: "checkpoint"}
			err := c.Attest(ctx, s.Attestation(next))
			if !errors.Is(err, run.ErrStale) && !errors.Is(err, run.ErrHalted) { // the quorum was faster
				n.must(err)
			}
		}
	}
}

func TestRunFromOrderToReceipts(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", run.Worker, 500)
	n.enlist("w1", run.Worker, 600)
	n.enlist("v0", run.Verifier, 400)
	consumer := n.clients["consumer"]
	n.must(consumer.Order(n.ctx, order("job")))
	placed, err := consumer.PlacedOrder(n.ctx, "job")
	n.must(err)
	if placed.Consumer != consumer.Address() || placed.At == 0 {
		t.Errorf("placed: %+v", placed)
	}
	members := []string{"w0", "w1", "v0"}
	s := n.finish(members...)
	n.checkLineage(consumer, s)
	n.checkMoney(consumer, members)
}

// finish lets the members do their duties until the run is done.
func (n *network) finish(members ...string) run.State {
	n.t.Helper()
	done := make(chan struct{})
	for _, name := range members {
		go func() {
			defer func() { done <- struct{}{} }()
			n.play(name, "job")
		}()
	}
	for range members {
		<-done
	}
	s, err := n.clients[members[0]].Run(n.ctx, "job")
	n.must(err)
	if s.Phase != run.Done {
		n.t.Fatalf("the run is in phase %d: %s", s.Phase, s.Why)
	}
	return s
}

// ruling is a referee that knows the answer.
type ruling bool

func (r ruling) Judge(dispute.Claim, []byte) (dispute.Ruling, error) {
	return dispute.Ruling{Right: bool(r), What: "as the test wants it"}, nil
}

func (ruling) Config(s run.State, unit uint32, blocks int64) (dispute.Config, error) {
	u := s.Units[unit]
	return dispute.Config{
		Job: s.Terms.Job, Round: s.Round, Unit: unit, Attempt: u.Attempt, Asserter: u.Worker, Challenger: u.Verifier,
		Base: s.Base.Root, Segments: u.Commit.Segments, Update: u.Commit.Update,
		Steps: []uint32{1, 1}, Operators: 1, Parameters: 1, MoveBlocks: blocks,
	}, nil
}

func (r ruling) open(spec canon.Digest, opening []byte) (training.Case, error) {
	if string(opening) != "opening" || spec != terms("").Spec {
		return nil, errors.New("not an opening")
	}
	return r, nil
}

func TestLiarIsConvicted(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(ruling(false))
	n.liar = key("w0").Address()
	n.enlist("w0", run.Worker, 500)
	n.enlist("w1", run.Worker, 500)
	n.enlist("v0", run.Verifier, 500)
	consumer := n.clients["consumer"]
	n.must(consumer.Order(n.ctx, order("job")))
	n.finish("v0", "w0", "w1")
	games, err := consumer.Disputes(n.ctx, "job")
	n.must(err)
	left := uint64(stake)
	for _, g := range games {
		if g.Loser() != n.liar {
			t.Errorf("a dispute that the liar does not lose: %+v", g)
		}
		left -= left / 2
	}
	p, err := consumer.Participant(n.ctx, n.liar)
	n.must(err)
	if len(games) == 0 || !p.Jailed || p.Stake != left || p.Slashed != stake-left {
		t.Errorf("the liar after the verdict: %+v", p)
	}
	n.balance("w0", funds-stake)
	n.checkMoney(consumer, []string{"w0", "w1", "v0"})
	n.refused(n.clients["w0"].Offer(n.ctx, run.Worker, 1, 1), chainmarket.ErrRole, "market", 4)
}

func TestFalseChallenge(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(ruling(true))
	n.liar = key("w0").Address()
	n.enlist("w0", run.Worker, 500)
	n.enlist("w1", run.Worker, 500)
	n.enlist("v0", run.Verifier, 500)
	consumer := n.clients["consumer"]
	n.must(consumer.Order(n.ctx, order("job")))
	s := n.until(consumer, "job", func(s run.State) bool {
		for _, name := range []string{"w0", "w1"} {
			for _, u := range s.Work(key(name).Address()) {
				n.must(n.clients[name].Commit(n.ctx, "job", s.Round, u.Index, u.Attempt, commitment(s.Round, u.Index)))
			}
		}
		return len(s.Audits(key("v0").Address())) > 0
	})
	v0, unit := n.clients["v0"], s.Audits(key("v0").Address())[0]
	n.refused(v0.Challenge(n.ctx, "job", 0, unit.Index, 0, []byte("nonsense")), training.ErrOpening, "training", 16)
	n.refused(v0.Challenge(n.ctx, "job", 0, unit.Index, 99, []byte("opening")), dispute.ErrConfig, "training", 18)
	n.must(v0.Challenge(n.ctx, "job", 0, unit.Index, 0, []byte("opening")))
	leaf := dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}
	n.refused(n.clients["w0"].Move(n.ctx, "job", 0, unit.Index, leaf), dispute.ErrNotYours, "training", 20)
	n.refused(v0.Move(n.ctx, "job", 0, unit.Index, dispute.Move{Pick: &dispute.Pick{}}), dispute.ErrMove, "training", 22)
	n.must(v0.Move(n.ctx, "job", 0, unit.Index, leaf))
	p, err := v0.Participant(n.ctx, v0.Address())
	n.must(err)
	if !p.Jailed || p.Stake != stake/2 {
		t.Errorf("the false challenger after the verdict: %+v", p)
	}
	n.refused(v0.Move(n.ctx, "job", 0, unit.Index, leaf), training.ErrNoDispute, "training", 17)
	// It was the only verifier of a run that wants audits.
	n.refused(v0.Pass(n.ctx, "job", 0, unit.Index, canon.Sum("seal")), run.ErrHalted, "training", 4)
	e, err := consumer.Escrow(n.ctx, "job")
	n.must(err)
	if e.Remaining() != 0 || e.Refunded != e.Budget {
		t.Errorf("escrow of the halted run: %+v", e)
	}
}

// referee restarts the chain with a referee.
func (n *network) referee(r ruling) {
	n.t.Helper()
	n.validator.Stop()
	n.config.Referee = r.open
	var names []string
	for name := range n.clients {
		names = append(names, name)
	}
	n.open(names...)
}

// checkLineage verifies every signature of every attested checkpoint, as somebody without the chain would.
func (n *network) checkLineage(c *client.Client, s run.State) {
	n.t.Helper()
	for round := uint32(1); round <= s.Terms.Rounds; round++ {
		e, err := c.Lineage(n.ctx, "job", round)
		n.must(err)
		if len(e.Votes) < 3 || len(e.Workers) != int(s.Terms.Units) {
			n.t.Errorf("round %d: %d votes, %d workers", round, len(e.Votes), len(e.Workers))
		}
		for _, v := range e.Votes {
			n.must(client.Verify(v.Member, v.PublicKey, e.Attestation.Digest(), v.Signature))
			if client.Verify(v.Member, v.PublicKey, canon.Sum("other"), v.Signature) == nil {
				n.t.Error("a signature over something else is taken")
			}
		}
	}
	if _, err := c.Lineage(n.ctx, "job", s.Terms.Rounds+1); !errors.Is(err, client.ErrNotFound) {
		n.t.Errorf("a checkpoint after the last: %v", err)
	}
	seals, err := c.Seals(n.ctx, "job", 0)
	n.must(err)
	if len(seals) != int(s.Terms.Units) {
		n.t.Errorf("%d seals of round 0, where every unit is audited", len(seals))
	}
}

// checkMoney compares receipts, escrow and balances to the last uzen.
func (n *network) checkMoney(c *client.Client, members []string) {
	n.t.Helper()
	escrow, err := c.Escrow(n.ctx, "job")
	n.must(err)
	if escrow.Remaining() != 0 || escrow.Paid == 0 || escrow.Fee == 0 || escrow.Refunded == 0 {
		n.t.Errorf("escrow %+v", escrow)
	}
	receipts, err := c.Receipts(n.ctx, "job")
	n.must(err)
	earned := map[string]uint64{}
	var fee uint64
	for i, r := range receipts {
		if r.Seq != uint64(i) {
			n.t.Errorf("receipt %d has number %d", i, r.Seq)
		}
		if r.Kind != reward.Slash {
			earned[r.Who] += r.Amount
		}
		fee += r.Fee
	}
	last := receipts[len(receipts)-1]
	if last.Kind != reward.Refund || last.Amount != escrow.Refunded || fee != escrow.Fee {
		n.t.Errorf("last receipt %+v, fees %d, escrow %+v", last, fee, escrow)
	}
	for _, name := range members {
		n.balance(name, funds-stake+earned[key(name).Address()])
	}
	n.balance("consumer", funds-escrow.Paid-escrow.Fee)
}

func (n *network) balance(name string, want uint64) {
	n.t.Helper()
	got, err := n.clients[name].Balance(n.ctx, key(name).Address())
	n.must(err)
	if got != want {
		n.t.Errorf("%s has %d uzen, want %d", name, got, want)
	}
}

func TestRefusals(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0", "stranger")
	stranger, consumer, ctx := n.clients["stranger"], n.clients["consumer"], n.ctx
	worker := []run.Role{run.Worker}

	n.refused(stranger.Offer(ctx, run.Worker, 1, 1), chainmarket.ErrRole, "market", 4)
	n.refused(stranger.Register(ctx, worker, "", nil, "", stake), registry.ErrInvalid, "registry", 2)
	n.refused(stranger.Register(ctx, worker, "peer", nil, "", 1), registry.ErrStake, "registry", 3)
	n.refused(stranger.Register(ctx, worker, "peer", nil, "", 2*funds), chainregistry.ErrFunds, "registry", 6)
	n.refused(stranger.UpdateAddresses(ctx, "peer", nil), chainregistry.ErrUnknown, "registry", 5)
	if _, err := stranger.Participant(ctx, stranger.Address()); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a refused registration: %v", err)
	}
	n.balance("stranger", funds)

	bad := order("job")
	bad.Budget = 0
	n.refused(consumer.Order(ctx, bad), market.ErrOrder, "market", 2)
	bad = order("job/../x")
	n.refused(consumer.Order(ctx, bad), chainmarket.ErrJob, "market", 6)
	bad = order("job")
	bad.Budget = 2 * funds
	n.refused(consumer.Order(ctx, bad), chainmarket.ErrFunds, "market", 10)
	n.must(consumer.Order(ctx, order("job")))
	n.refused(stranger.Order(ctx, order("job")), chainmarket.ErrTaken, "market", 5)
	n.refused(stranger.CancelOrder(ctx, "job"), chainmarket.ErrNotYours, "market", 8)
	n.refused(stranger.CancelOrder(ctx, "other"), chainmarket.ErrNoOrder, "market", 7)
	n.balance("consumer", funds-order("job").Budget)
	n.refused(stranger.Missing(ctx, "job", 0, 0), training.ErrNoRun, "training", 2)

	n.enlist("w0", run.Worker, 1)
	n.enlist("w1", run.Worker, 1)
	n.enlist("v0", run.Verifier, 1)
	before := n.until(consumer, "job", func(s run.State) bool { return s.Phase == run.Train })
	other := "w0"
	if before.Units[0].Worker == n.clients["w0"].Address() {
		other = "w1"
	}
	n.refused(consumer.CancelOrder(ctx, "job"), chainmarket.ErrNotOpen, "market", 9)
	n.refused(stranger.Commit(ctx, "job", 0, 0, 0, commitment(0, 0)), run.ErrNotMember, "training", 5)
	n.refused(n.clients[other].Commit(ctx, "job", 0, 0, 0, commitment(0, 0)), run.ErrNotYours, "training", 10)
	n.refused(n.clients[other].Commit(ctx, "job", 1, 0, 0, commitment(0, 0)), run.ErrStale, "training", 7)
	n.refused(n.clients[other].Commit(ctx, "job", 0, 99, 0, commitment(0, 0)), run.ErrNoUnit, "training", 8)
	n.refused(n.clients["v0"].Pass(ctx, "job", 0, 0, canon.Sum("seal")), run.ErrWrongPhase, "training", 9)
	n.refused(n.clients["v0"].Attest(ctx, before.Attestation(run.Checkpoint{Round: 1, Root: canon.Sum("r"), CID: "c"})), run.ErrWrongPhase, "training", 9)
	n.refused(n.clients["v0"].Move(ctx, "job", 0, 0, dispute.Move{Pick: &dispute.Pick{}}), training.ErrNoDispute, "training", 17)
	after, err := consumer.Run(ctx, "job")
	n.must(err)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("refused messages changed the run from %+v to %+v", before, after)
	}
}

func TestAttestationNeedsTheSendersSignature(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", run.Worker, 1)
	n.enlist("w1", run.Worker, 1)
	n.enlist("v0", run.Verifier, 1)
	o := order("job")
	o.Terms.AuditPPM = 0
	n.must(n.clients["consumer"].Order(n.ctx, o))
	w0 := n.clients["w0"]
	s := n.until(w0, "job", func(s run.State) bool {
		for _, name := range []string{"w0", "w1"} {
			for _, u := range s.Work(key(name).Address()) {
				n.must(n.clients[name].Commit(n.ctx, "job", s.Round, u.Index, u.Attempt, commitment(s.Round, u.Index)))
			}
		}
		return s.Phase == run.Attest
	})
	next := run.Checkpoint{Round: 1, Root: canon.Sum("r"), CID: "c"}
	digest := s.Attestation(next).Digest()
	foreign, err := key("w1").Sign(digest[:])
	n.must(err)
	_, err = w0.Submit(n.ctx, &trainingpb.MsgAttest{
		Sender: w0.Address(), Job: "job", Root: next.Root[:], CID: next.CID, Signature: foreign,
	})
	n.refused(err, training.ErrSignature, "training", 14)
	n.must(w0.Attest(n.ctx, s.Attestation(next)))
	n.refused(w0.Attest(n.ctx, s.Attestation(next)), run.ErrDuplicate, "training", 11)
}

func TestOrdersEndWithoutARun(t *testing.T) {
	n := start(t, "consumer")
	c := n.clients["consumer"]
	n.must(c.Order(n.ctx, order("cancelled")))
	o := order("expired")
	b := n.height(c)
	o.Deadline = b + 10
	n.must(c.Order(n.ctx, o))
	open, err := c.Orders(n.ctx)
	n.must(err)
	if len(open) != 2 || open[0].ID != "cancelled" || open[0].Status != "open" || open[0].Why != string(market.TooFewWorkers) {
		t.Errorf("open orders: %+v", open)
	}
	n.must(c.CancelOrder(n.ctx, "cancelled"))
	for n.height(c) <= o.Deadline {
	}
	for id, why := range map[string]string{"cancelled": chainmarket.Cancelled, "expired": chainmarket.Expired} {
		p, err := c.PlacedOrder(n.ctx, id)
		n.must(err)
		e, err := c.Escrow(n.ctx, id)
		n.must(err)
		if p.Status != "ended" || p.Why != why || e.Refunded != e.Budget {
			t.Errorf("%s: %s %s, %+v", id, p.Status, p.Why, e)
		}
	}
	n.balance("consumer", funds)
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

func TestBeaconOfEveryBlock(t *testing.T) {
	n := start(t, "consumer")
	c := n.clients["consumer"]
	seen := map[canon.Digest]bool{}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	n.must(err)
	keys := n.validator.Keys()
	for b := range blocks {
		value, err := c.Beacon(n.ctx, b.Height)
		n.must(err)
		if value.IsZero() || seen[value] {
			t.Errorf("block %d has the beacon %s", b.Height, value)
		}
		seen[value] = true
		if b.Height < 4 {
			continue
		}
		before, err := c.Beacon(n.ctx, b.Height-2)
		n.must(err)
		last, err := c.Beacon(n.ctx, b.Height-1)
		n.must(err)
		// The votes for the last block, each over the beacon of the block before it.
		alpha := beacon.Alpha("test", b.Height-1, before)
		beta, ok := beacon.Verify(keys.VRF[32:], alpha, beacon.Prove(keys.VRF, alpha))
		output := beacon.Output{Validator: keys.Consensus.PubKey().Address(), Beta: beta}
		if !ok || beacon.Combine("test", b.Height, last, []beacon.Output{output}) != value {
			t.Errorf("the beacon of block %d is not what the validator's output makes", b.Height)
		}
		if len(seen) >= 5 {
			return
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	n := start(t, "consumer")
	c := n.clients["consumer"]
	const many = 50
	var pending []*client.Pending
	for i := range many {
		o := order(fmt.Sprintf("job-%d", i))
		o.Budget = 1000
		p, err := c.SubmitAsync(n.ctx, message(c, o))
		n.must(err)
		pending = append(pending, p)
	}
	last := int64(0)
	for _, p := range pending {
		r, err := p.Wait(n.ctx)
		n.must(err)
		if r.Height < last {
			t.Errorf("block %d after block %d", r.Height, last)
		}
		last = r.Height
	}
	// Another process with the same key has used the account: the client finds the sequence again.
	other := client.New(n.validator.Client(), key("consumer"))
	defer other.Close()
	n.must(other.Order(n.ctx, order("other")))
	n.must(c.Order(n.ctx, order("again")))
	n.balance("consumer", funds-many*1000-2*order("").Budget)
}

func message(c *client.Client, o market.Order) *marketpb.MsgOrder {
	return &marketpb.MsgOrder{
		Sender: c.Address(), Terms: runpb.FromTerms(o.Terms), Budget: o.Budget, PriceCap: o.PriceCap,
		WorkersMin: o.Workers.Min, WorkersTarget: o.Workers.Target, WorkersMax: o.Workers.Max, Verifiers: o.Verifiers,
	}
}

func TestRestartContinues(t *testing.T) {
	n := start(t, "consumer", "w0")
	n.enlist("w0", run.Worker, 7)
	n.must(n.clients["consumer"].Order(n.ctx, order("job")))
	height := n.height(n.clients["w0"])
	n.validator.Stop()
	if _, err := n.clients["w0"].Blocks(n.ctx); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after the stop: %v", err)
	}
	n.open("consumer", "w0")
	if after := n.height(n.clients["w0"]); after <= height {
		t.Errorf("height %d after a restart at height %d", after, height)
	}
	offers, err := n.clients["w0"].Offers(n.ctx)
	n.must(err)
	if len(offers) != 1 || offers[0].Price != 7 {
		t.Errorf("offers after the restart: %+v", offers)
	}
	n.must(n.clients["consumer"].CancelOrder(n.ctx, "job"))
	n.balance("consumer", funds)
}

func TestHostileMessages(t *testing.T) {
	n := start(t, "consumer")
	c := n.clients["consumer"]
	m := message(c, order("job"))
	m.Terms.SpecCID = "\xff\xfe"
	if _, err := c.Submit(n.ctx, m); err == nil {
		t.Error("a string that is not UTF-8 is taken")
	}
	m = message(c, order("job"))
	m.Terms.Spec = make([]byte, 33)
	_, err := c.Submit(n.ctx, m)
	n.refused(err, runpb.ErrDigest, "market", 12)
	m = message(c, order("job"))
	m.Sender = key("somebody").Address()
	if _, err := c.Submit(n.ctx, m); err == nil {
		t.Error("a message in somebody else's name is taken")
	}
	n.must(c.Order(n.ctx, order("job")))
}

func TestOverHTTP(t *testing.T) {
	n := start(t, "consumer")
	n.validator.Stop()
	n.config.RPC = free(t)
	n.open()
	rpc, err := client.Dial("http://" + n.config.RPC)
	n.must(err)
	defer func() { _ = rpc.Stop() }()
	c := client.New(rpc, key("consumer"))
	defer c.Close()
	n.must(c.Order(n.ctx, order("job")))
	n.refused(c.Order(n.ctx, order("job")), chainmarket.ErrTaken, "market", 5)
	if _, err := c.Run(n.ctx, "job"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a run that has not begun: %v", err)
	}
}

// free is an address of the loopback where nothing listens.
func free(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestLargestLeafFits(t *testing.T) {
	n := start(t, "consumer", "w0", "v0")
	n.enlist("w0", run.Worker, 1)
	n.enlist("v0", run.Verifier, 1)
	o := order("job")
	o.Workers = market.Workers{Min: 1, Target: 1, Max: 1}
	n.must(n.clients["consumer"].Order(n.ctx, o))
	n.until(n.clients["w0"], "job", func(s run.State) bool { return s.Phase == run.Train })
	leaf := dispute.Move{Leaf: &dispute.Leaf{Payload: make([]byte, dispute.MaxLeaf)}}
	n.refused(n.clients["v0"].Move(n.ctx, "job", 0, 0, leaf), training.ErrNoDispute, "training", 17)
}

// TestTwoValidators runs a job over two validators that both have to agree on every block. Each checks the other's part of
// every beacon before it counts the vote.
func TestTwoValidators(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := &network{t: t, ctx: ctx, clients: map[string]*client.Client{}}
	names := []string{"consumer", "w0", "w1", "v0"}
	var accounts []chain.Funded
	for _, name := range names {
		accounts = append(accounts, chain.Funded{Address: key(name).Address(), Amount: funds})
	}
	seeds := [2]canon.Digest{canon.Sum("seed 0"), canon.Sum("seed 1")}
	keys := []chain.Keys{chain.NewKeys(seeds[0]), chain.NewKeys(seeds[1])}
	listen := []string{free(t), free(t)}
	doc, err := chain.Genesis("test", time.Now(), keys, accounts)
	n.must(err)
	for i := range keys {
		v, err := chain.Start(ctx, chain.Config{
			Home: t.TempDir(), BlockTime: 50 * time.Millisecond, Log: t.Output(), Seed: seeds[i][:], Genesis: doc,
			Listen: listen[i], Peers: []string{keys[1-i].NodeID() + "@" + listen[1-i]},
		})
		n.must(err)
		defer v.Stop()
		n.validator = v
		for j, name := range names {
			if j%2 == i {
				n.clients[name] = client.New(v.Client(), key(name))
				defer n.clients[name].Close()
			}
		}
	}
	for _, c := range n.clients {
		n.height(c)
	}
	n.enlist("w0", run.Worker, 1)
	n.enlist("w1", run.Worker, 1)
	n.enlist("v0", run.Verifier, 1)
	n.must(n.clients["consumer"].Order(ctx, order("job")))
	n.finish(names[1:]...)
	n.outputs(2)
}

// outputs checks how many validators have added to the beacon of the last block.
func (n *network) outputs(want int) {
	n.t.Helper()
	r, err := n.validator.Client().BlockResults(n.ctx, nil)
	n.must(err)
	for _, e := range r.FinalizeBlockEvents {
		for _, a := range e.Attributes {
			if e.Type == "starling.beacon.v1.EventBeacon" && a.Key == "outputs" {
				if a.Value != fmt.Sprint(want) {
					n.t.Errorf("%s validators are in the beacon of block %d, want %d", a.Value, r.Height, want)
				}
				return
			}
		}
	}
	n.t.Errorf("block %d has no beacon", r.Height)
}
