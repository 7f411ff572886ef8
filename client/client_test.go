package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
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
		if s.Phase == run.Done || s.Phase == run.Halted {
			return
		}
		for _, u := range s.Work(c.Address()) {
			n.must(c.Commit(ctx, job, s.Round, u.Index, u.Attempt, commitment(s.Round, u.Index)))
		}
		for _, u := range s.Audits(c.Address()) {
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
	done := make(chan struct{})
	for _, name := range members {
		go func() {
			defer func() { done <- struct{}{} }()
			n.play(name, "job")
		}()
	}
	s := n.until(consumer, "job", func(s run.State) bool { return s.Phase == run.Done || s.Phase == run.Halted })
	for range members {
		<-done
	}
	if s.Phase != run.Done {
		t.Fatalf("the run is halted: %s", s.Why)
	}
	n.checkLineage(consumer, s)
	n.checkMoney(consumer, members)
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
		earned[r.Who] += r.Amount
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

func TestRefusalsKeepTheState(t *testing.T) {
	n := start(t, "consumer", "w0", "w1", "v0", "stranger")
	stranger, consumer := n.clients["stranger"], n.clients["consumer"]
	ctx := n.ctx
	n.refused(stranger.Offer(ctx, run.Worker, 1, 1), nil, "", 0)
	_ = consumer
	_ = registry.ErrStake
}
