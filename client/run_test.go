package client_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

func TestRunFromOrderToReceipts(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 600)
	n.enlist("v0", crew.Verifier, 400)
	consumer := n.clients["consumer"]
	n.must(consumer.Market.Order(n.ctx, order("job"), nil))
	placed, err := consumer.Market.PlacedOrder(n.ctx, "job")
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
	s, err := n.clients[members[0]].Training.Run(n.ctx, "job")
	n.must(err)
	if s.Phase != progress.Done {
		n.t.Fatalf("the run is in phase %d: %s", s.Phase, s.Why)
	}
	return s
}

// ruling is a referee that knows the answer.
type ruling bool

func (r ruling) Parts(dispute.Claim) uint64 { return 1 }

func (r ruling) Judge(dispute.Claim, []byte) (dispute.Ruling, error) {
	return dispute.Ruling{Right: bool(r)}, nil
}

func (ruling) Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error) {
	return dispute.Config{
		Job: job, Round: d.Round, Unit: d.Index, Attempt: d.Attempt, Asserter: d.Worker, Challenger: challenger,
		Base: d.Base.Root, Segments: d.Commit.Segments, Update: d.Commit.Update,
		Steps: []uint32{1, 1}, Operators: 1, Parameters: 1, MoveBlocks: blocks,
	}, nil
}

func (ruling) Refute(work.Combination, []byte) (string, error) {
	return "", errors.New("nothing is shown")
}

func (ruling) Decidable(uint64) (uint64, error) { return 0, nil }

func (ruling) Bound(terms.Terms) error { return nil }

func (ruling) Bases() []canon.Digest { return nil }

func (r ruling) open(canon.Digest, []byte, uint32) (works.Case, error) { return r, nil }

// first is the amount that a first conviction takes of the stakes of these tests: half of the smallest.
const first = 500_000

func TestLiarIsConvicted(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(ruling(false))
	n.liar = key("w0").Address()
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 500)
	n.enlist("v0", crew.Verifier, 500)
	consumer := n.clients["consumer"]
	n.must(consumer.Market.Order(n.ctx, order("job"), nil))
	n.finish("v0", "w0", "w1")
	games, err := consumer.Training.Disputes(n.ctx, "job")
	n.must(err)
	left := uint64(stake)
	for i, g := range games {
		if g.Loser() != n.liar {
			t.Errorf("a dispute that the liar does not lose: %+v", g)
		}
		if i == 0 {
			left -= first
		} else {
			left -= left / 2
		}
	}
	all, err := consumer.Training.Receipts(n.ctx, "job")
	n.must(err)
	for _, r := range all {
		if r.Reason == reward.Restitution {
			left -= r.Amount // for the audits that its conviction caused
		}
	}
	p, err := consumer.Registry.Participant(n.ctx, n.liar)
	n.must(err)
	if len(games) == 0 || !p.Jailed || p.Stake != left || p.Slashed != stake-left {
		t.Errorf("the liar after the verdict: %+v", p)
	}
	n.balance("w0", funds-stake)
	n.checkMoney(consumer, []string{"w0", "w1", "v0"})
	n.refused(n.clients["w0"].Market.Offer(n.ctx, crew.Worker, 1, 1), chainmarket.ErrRole, "market", 4)
}

func TestFalseChallenge(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(ruling(true))
	n.liar = key("w0").Address()
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 500)
	n.enlist("v0", crew.Verifier, 500)
	consumer := n.clients["consumer"]
	n.must(consumer.Market.Order(n.ctx, order("job"), nil))
	s := n.until(consumer, "job", func(s run.State) bool {
		for _, name := range []string{"w0", "w1"} {
			for _, u := range s.Work(key(name).Address()) {
				n.must(n.clients[name].Work.Commit(n.ctx, "job", u.ID(s.Round), commitment(s.Round, u.Index)))
			}
		}
		return len(s.Audits(key("v0").Address())) > 0
	})
	v0, unit := n.clients["v0"], s.Audits(key("v0").Address())[0]
	n.refused(v0.Work.Challenge(n.ctx, "job", work.UnitID{Unit: unit.Index}, 99, unit.Commit.Digest()), dispute.ErrConfig,
		"training", 18)
	n.must(v0.Work.Challenge(n.ctx, "job", work.UnitID{Unit: unit.Index}, 0, unit.Commit.Digest()))
	leaf := dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}
	n.refused(n.clients["w0"].Work.Move(n.ctx, "job", work.UnitID{Unit: unit.Index}, leaf), dispute.ErrNotYours,
		"training", 20)
	n.refused(v0.Work.Move(n.ctx, "job", work.UnitID{Unit: unit.Index}, dispute.Move{Pick: &dispute.Pick{}}),
		dispute.ErrMove, "training", 22)
	n.must(v0.Work.Move(n.ctx, "job", work.UnitID{Unit: unit.Index}, leaf))
	p, err := v0.Registry.Participant(n.ctx, v0.Address())
	n.must(err)
	if !p.Jailed || p.Stake != stake-first {
		t.Errorf("the false challenger after the verdict: %+v", p)
	}
	n.refused(v0.Work.Move(n.ctx, "job", work.UnitID{Unit: unit.Index}, leaf), training.ErrNoDispute, "training", 17)
	// It was the only verifier of a run that wants audits, which waits for another.
	n.refused(v0.Work.Pass(n.ctx, "job", work.UnitID{Unit: unit.Index}, canon.Sum("seal")), refusal.ErrInactive,
		"training", 6)
	s, err = consumer.Training.Run(n.ctx, "job")
	n.must(err)
	if m, _ := s.Member(v0.Address()); s.Phase == progress.Halted || m.Active {
		t.Errorf("the run is in phase %s: %s, and the false challenger %+v", s.Phase, s.Why, m)
	}
}

// An account without a part in a run, and without a registration, challenges a unit with a bond from its balance,
// wins, and gets back its bond and the bounty. With right work it loses half of the bond.
func TestStrangerChallenges(t *testing.T) {
	t.Parallel()
	for _, lies := range []bool{true, false} {
		n := start(t, "consumer", "w0", "w1", "v0", "x")
		n.referee(ruling(!lies))
		for _, name := range []string{"w0", "w1"} {
			n.enlist(name, crew.Worker, 500)
		}
		n.enlist("v0", crew.Verifier, 500)
		consumer, x := n.clients["consumer"], n.clients["x"]
		n.must(consumer.Market.Order(n.ctx, order("job"), nil))
		s := n.until(consumer, "job", func(s run.State) bool {
			for _, name := range []string{"w0", "w1"} {
				for _, u := range s.Work(key(name).Address()) {
					n.must(n.clients[name].Work.Commit(n.ctx, "job", u.ID(s.Round), commitment(s.Round, u.Index)))
				}
			}
			return len(s.Audits(key("v0").Address())) > 0
		})
		unit := s.Audits(key("v0").Address())[0]
		n.must(x.Work.Challenge(n.ctx, "job", work.UnitID{Unit: unit.Index}, 0, unit.Commit.Digest()))
		bond := registry.DefaultParams().VerifierStake
		n.balance("x", funds-bond)
		n.must(x.Work.Move(n.ctx, "job", work.UnitID{Unit: unit.Index},
			dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}))
		p, err := x.Registry.Participant(n.ctx, x.Address())
		n.must(err)
		if lies {
			n.balance("x", funds-bond+first/2)
			if p.Jailed || p.Stake != bond {
				t.Errorf("the stranger who was right: %+v", p)
			}
			n.must(x.Registry.Unstake(n.ctx, bond))
			continue
		}
		if !p.Jailed || p.Stake != bond/2 {
			t.Errorf("the stranger who was wrong: %+v", p)
		}
		n.refused(x.Work.Challenge(n.ctx, "job", work.UnitID{Unit: unit.Index}, 0, unit.Commit.Digest()),
			chainregistry.ErrJailed, "registry", 16)
		// its audit continues
		n.must(n.clients["v0"].Work.Pass(n.ctx, "job", work.UnitID{Unit: unit.Index}, canon.Sum("seal")))
	}
}

// A worker plants a fault in every commitment; the verifier finds each, and neither loses stake.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(ruling(false))
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 500)
	n.enlist("v0", crew.Verifier, 500)
	consumer, v0 := n.clients["consumer"], n.clients["v0"]
	n.must(consumer.Market.Order(n.ctx, order("job"), nil))
	s := n.until(consumer, "job", func(s run.State) bool {
		for _, name := range []string{"w0", "w1"} {
			for i, u := range s.Work(key(name).Address()) {
				c := commitment(s.Round, u.Index)
				if i == 0 {
					c.Segments = audit.Plant(nonce(s.Round, u.Index), c.Segments)
				}
				n.must(n.clients[name].Work.Commit(n.ctx, "job", u.ID(s.Round), c))
			}
		}
		return len(s.Audits(v0.Address())) > 0
	})
	shown := 0
	for _, d := range s.Audits(v0.Address()) {
		worker, right := n.named(d.Worker), commitment(0, d.Index)
		show := func() error {
			return worker.Work.Unmask(n.ctx, "job", work.UnitID{Unit: d.Index}, nonce(0, d.Index), right.Segments)
		}
		if slices.Equal(d.Commit.Segments, right.Segments) {
			continue
		}
		n.refused(show(), refusal.ErrWrongPhase, "training", 9)
		n.must(v0.Work.Challenge(n.ctx, "job", work.UnitID{Unit: d.Index}, 1, d.Commit.Digest()))
		n.refused(worker.Work.Unmask(n.ctx, "job", work.UnitID{Unit: d.Index}, canon.Sum("another"), right.Segments),
			refusal.ErrBadPlant, "training", 26)
		n.must(show())
		n.refused(v0.Work.Challenge(n.ctx, "job", work.UnitID{Unit: d.Index}, 1, d.Commit.Digest()), refusal.ErrStale,
			"training", 7)
		shown++
	}
	games, err := consumer.Training.Disputes(n.ctx, "job")
	n.must(err)
	for _, g := range games {
		if g.Loser() != "" {
			t.Errorf("a dispute about a planted fault has a loser: %+v", g)
		}
	}
	after, err := consumer.Training.Run(n.ctx, "job")
	n.must(err)
	if shown == 0 || len(games) != shown || after.Disputed() || len(after.Audits(v0.Address())) < shown {
		t.Fatalf("%d faults shown, %d disputes, audits %+v", shown, len(games), after.Audits(v0.Address()))
	}
	unit := after.Audits(v0.Address())[0]
	n.must(v0.Work.Pass(n.ctx, "job", work.UnitID{Unit: unit.Index}, seal(after, 0, unit.Unit).Root()))
	asked := n.until(consumer, "job", func(s run.State) bool {
		l, _ := s.At(0)
		return !l.Units[unit.Index].Question.IsZero()
	})
	l, _ := asked.At(0)
	n.refused(v0.Work.Unseal(n.ctx, "job", work.UnitID{Unit: unit.Index}, audit.Opening{}), refusal.ErrBadOpening,
		"training", 24)
	n.unseal(n.ctx, v0, asked)
	now, err := consumer.Training.Run(n.ctx, "job")
	n.must(err)
	if l, _ = now.At(0); !l.Units[unit.Index].Passed {
		t.Errorf("after the opening: %+v", l.Units[unit.Index])
	}
	for _, name := range []string{"w0", "w1", "v0"} {
		if p, err := consumer.Registry.Participant(n.ctx, key(name).Address()); err != nil || p.Stake != stake {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	n.must(n.clients["w0"].Work.Suspect(n.ctx, "job", work.UnitID{Unit: unitOf(now, key("w1").Address())}))
}

// unitOf is a unit of round 0 of a worker.
func unitOf(s run.State, worker string) uint32 {
	l, _ := s.At(0)
	return l.Units[slices.IndexFunc(l.Units, func(u *work.Unit) bool { return u.Worker == worker })].Index
}

func (n *network) named(account string) *client.Client {
	for _, c := range n.clients {
		if c.Address() == account {
			return c
		}
	}
	n.t.Fatalf("nobody is %s", account)
	return nil
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

// checkLineage verifies every signature of every attested checkpoint, without the chain.
func (n *network) checkLineage(c *client.Client, s run.State) {
	n.t.Helper()
	for round := uint32(1); round <= s.Terms.Rounds; round++ {
		e, err := c.Training.Lineage(n.ctx, "job", round)
		n.must(err)
		if len(e.Votes) < 3 || len(e.Workers) != int(s.Terms.Units) {
			n.t.Errorf("round %d: %d votes, %d workers", round, len(e.Votes), len(e.Workers))
		}
		for _, v := range e.Votes {
			n.must(wallet.Verify(v.Member, v.PublicKey, e.Attestation.Digest(), v.Signature))
			if wallet.Verify(v.Member, v.PublicKey, canon.Sum("other"), v.Signature) == nil {
				n.t.Error("a signature over something else is taken")
			}
		}
	}
	if _, err := c.Training.Lineage(n.ctx, "job", s.Terms.Rounds+1); !errors.Is(err, client.ErrNotFound) {
		n.t.Errorf("a checkpoint after the last: %v", err)
	}
	seals, err := c.Training.Seals(n.ctx, "job", 0)
	n.must(err)
	if len(seals) != int(s.Terms.Units) {
		n.t.Errorf("%d seals of round 0, where every unit is audited", len(seals))
	}
}

// checkMoney compares receipts, escrow and balances to the last uzen.
func (n *network) checkMoney(c *client.Client, members []string) {
	n.t.Helper()
	escrow, err := c.Market.Escrow(n.ctx, "job")
	n.must(err)
	if escrow.Remaining() != 0 || escrow.Paid == 0 || escrow.Fee == 0 || escrow.Refunded == 0 {
		n.t.Errorf("escrow %+v", escrow)
	}
	receipts, err := c.Training.Receipts(n.ctx, "job")
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
		if r.Payer == "" {
			fee += r.Fee
		}
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
	got, err := n.clients[name].Coins.Balance(n.ctx, key(name).Address())
	n.must(err)
	if got != want {
		n.t.Errorf("%s has %d uzen, want %d", name, got, want)
	}
}
