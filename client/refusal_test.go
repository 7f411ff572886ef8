package client_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/starling-network/starling/canon"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/training"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// TestRefusalsAreReadable: what the SDK says for its developers is left out, and amounts are in ZEN.
func TestRefusalsAreReadable(t *testing.T) {
	t.Parallel()
	const raw = "failed to execute message; message index: 0: spendable balance 5000038uzen is smaller than" +
		" 2000000000uzen: insufficient funds [cosmos/cosmos-sdk@v0.54.4/x/bank/keeper/send.go:324]"
	const want = "spendable balance 5.000038 ZEN is smaller than 2000 ZEN: insufficient funds"
	if err := transaction.Refusal("sdk", 5, raw); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0", "stranger")
	stranger, consumer, ctx := n.clients["stranger"], n.clients["consumer"], n.ctx
	worker := []crew.Role{crew.Worker}

	n.refused(stranger.Market.Offer(ctx, crew.Worker, 1, 1), chainmarket.ErrRole, "market", 4)
	n.refused(stranger.Registry.Register(ctx, registry.Participant{Roles: worker, PeerID: "", Stake: stake}),
		registry.ErrInvalid, "registry", 2)
	n.refused(stranger.Registry.Register(ctx, registry.Participant{Roles: worker, PeerID: "peer", Stake: 1}),
		registry.ErrStake, "registry", 3)
	n.refused(stranger.Registry.Register(ctx, registry.Participant{Roles: worker, PeerID: "peer", Stake: 2 * funds}),
		chainregistry.ErrFunds, "registry", 6)
	n.refused(stranger.Registry.UpdateAddresses(ctx, "peer", nil), chainregistry.ErrUnknown, "registry", 5)
	if _, err := stranger.Registry.Participant(ctx, stranger.Address()); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a refused registration: %v", err)
	}
	const unused = "starling1wwm6c5fjd95w3c5unwjz0n43077mkzeay98fqr" // an address without coins
	if _, err := stranger.Coins.Transactions(ctx, unused); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an account without coins: %v", err)
	}
	n.balance("stranger", funds)

	bad := order("job")
	bad.Budget = 0
	n.refused(consumer.Market.Order(ctx, bad, nil), market.ErrOrder, "market", 2)
	bad = order("job/../x")
	n.refused(consumer.Market.Order(ctx, bad, nil), chainmarket.ErrJob, "market", 6)
	bad = order("job")
	bad.Budget = 2 * funds
	n.refused(consumer.Market.Order(ctx, bad, nil), chainmarket.ErrFunds, "market", 10)
	n.must(consumer.Market.Order(ctx, order("job"), nil))
	n.refused(stranger.Market.Order(ctx, order("job"), nil), chainmarket.ErrTaken, "market", 5)
	// another account may take a name, or copy it from the pool of transactions, but not one that is kept for the account
	own := "job." + consumer.Address()
	n.refused(stranger.Market.Order(ctx, order(own), nil), chainmarket.ErrTaken, "market", 5)
	n.must(consumer.Market.Order(ctx, order(own), nil))
	n.must(consumer.Market.CancelOrder(ctx, own))
	n.refused(stranger.Market.CancelOrder(ctx, "job"), chainmarket.ErrNotYours, "market", 8)
	n.refused(stranger.Market.CancelOrder(ctx, "other"), chainmarket.ErrNoOrder, "market", 7)
	n.balance("consumer", funds-order("job").Budget-coin.Zen().WaitingFee(0))
	n.refused(stranger.Work.Missing(ctx, "job", work.UnitID{}, 0, false), training.ErrNoRun, "training", 2)

	n.enlist("w0", crew.Worker, 1)
	n.enlist("w1", crew.Worker, 1)
	n.enlist("v0", crew.Verifier, 1)
	n.refused(n.clients["v0"].Registry.Unstake(ctx, 2*stake), registry.ErrUnstake, "registry", 15)
	n.refused(stranger.Registry.Unstake(ctx, 1), chainregistry.ErrUnknown, "registry", 5)
	before := n.until(consumer, "job", func(s run.State) bool { return s.Phase == progress.Train })
	other := "w0"
	if before.Units[0].Worker == n.clients["w0"].Address() {
		other = "w1"
	}
	n.refused(consumer.Market.ResumeJob(ctx, "job"), chainmarket.ErrState, "market", 9)
	n.refused(stranger.Work.Commit(ctx, "job", work.UnitID{}, commitment(0, 0)), refusal.ErrNotMember, "training", 5)
	n.refused(n.clients[other].Work.Commit(ctx, "job", work.UnitID{}, commitment(0, 0)), refusal.ErrNotYours, "training",
		10)
	n.refused(n.clients[other].Work.Commit(ctx, "job", work.UnitID{Round: 1}, commitment(0, 0)), refusal.ErrStale,
		"training", 7)
	n.refused(n.clients[other].Work.Commit(ctx, "job", work.UnitID{Unit: 99}, commitment(0, 0)), refusal.ErrNoUnit,
		"training", 8)
	n.refused(n.clients["v0"].Work.Pass(ctx, "job", work.UnitID{}, canon.Sum("seal")), refusal.ErrWrongPhase, "training",
		9)
	n.refused(n.clients["v0"].Work.Attest(ctx, before.Attestation(terms.Checkpoint{Round: 1, Root: canon.Sum("r"),
		CID: "c"})), refusal.ErrWrongPhase, "training", 9)
	n.refused(n.clients["v0"].Work.Move(ctx, "job", work.UnitID{}, dispute.Move{Pick: &dispute.Pick{}}),
		training.ErrNoDispute, "training", 17)
	after, err := consumer.Training.Run(ctx, "job")
	n.must(err)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("refused messages changed the run from %+v to %+v", before, after)
	}
}

func TestAttestationNeedsTheSendersSignature(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", crew.Worker, 1)
	n.enlist("w1", crew.Worker, 1)
	n.enlist("v0", crew.Verifier, 1)
	o := order("job")
	o.Terms.AuditPPM = 0
	n.must(n.clients["consumer"].Market.Order(n.ctx, o, nil))
	w0 := n.clients["w0"]
	s := n.until(w0, "job", func(s run.State) bool {
		for _, name := range []string{"w0", "w1"} {
			for _, u := range s.Work(key(name).Address()) {
				n.must(n.clients[name].Work.Commit(n.ctx, "job", u.ID(s.Round), commitment(s.Round, u.Index)))
			}
		}
		return s.Phase == progress.Attest
	})
	next := terms.Checkpoint{Round: 1, Root: canon.Sum("r"), CID: "c"}
	digest := s.Attestation(next).Digest()
	foreign, err := key("w1").Sign(digest[:])
	n.must(err)
	_, err = w0.Submit(n.ctx, &trainingpb.MsgAttest{
		Sender: w0.Address(), Job: "job", Root: next.Root[:], CID: next.CID, Signature: foreign,
	})
	n.refused(err, training.ErrSignature, "training", 14)
	n.must(w0.Work.Attest(n.ctx, s.Attestation(next)))
	n.refused(w0.Work.Attest(n.ctx, s.Attestation(next)), refusal.ErrDuplicate, "training", 11)
}

func TestOrdersEndWithoutARun(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := n.clients["consumer"]
	n.must(c.Market.Order(n.ctx, order("cancelled"), nil))
	o := order("expired")
	b := n.height(c)
	o.Deadline = b + 10
	n.must(c.Market.Order(n.ctx, o, nil))
	open, err := c.Market.Orders(n.ctx)
	n.must(err)
	if len(open) != 2 || open[0].ID != "cancelled" || open[0].Status != "open" ||
		open[0].Why != string(market.TooFewWorkers) {
		t.Errorf("open orders: %+v", open)
	}
	n.must(c.Market.CancelOrder(n.ctx, "cancelled"))
	for n.height(c) <= o.Deadline {
	}
	for id, why := range map[string]string{"cancelled": chainmarket.Cancelled, "expired": chainmarket.Expired} {
		p, err := c.Market.PlacedOrder(n.ctx, id)
		n.must(err)
		e, err := c.Market.Escrow(n.ctx, id)
		n.must(err)
		if p.Status != "ended" || p.Why != why || e.Refunded != e.Budget-coin.Zen().WaitingFee(0) ||
			e.Fee != coin.Zen().WaitingFee(0) {
			t.Errorf("%s: %s %s, %+v", id, p.Status, p.Why, e)
		}
	}
	n.balance("consumer", funds-2*coin.Zen().WaitingFee(0)) // what is never matched was stored and tried, for nothing
	o = order("cheap")
	o.Budget = coin.Zen().WaitingFee(0) - 1
	n.refused(c.Market.Order(n.ctx, o, nil), market.ErrOrder, "market", 2)
}

// A job whose blobs are unavailable cannot be opened: its members leave without a missed deadline, and the consumer
// pays for the attempt.
func TestJobThatNobodyCanOpen(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", crew.Worker, 1)
	n.enlist("w1", crew.Worker, 1)
	n.enlist("v0", crew.Verifier, 1)
	c := n.clients["consumer"]
	n.must(c.Market.Order(n.ctx, order("job"), nil))
	n.until(c, "job", func(s run.State) bool { return s.Phase == progress.Train })
	n.must(n.clients["v0"].Work.Decline(n.ctx, "job"))
	n.must(n.clients["w0"].Work.Decline(n.ctx, "job"))
	n.refused(n.clients["w0"].Work.Decline(n.ctx, "job"), refusal.ErrWrongPhase, "training", 9)
	n.refused(c.Work.Decline(n.ctx, "job"), refusal.ErrNotMember, "training", 5)
	n.must(n.clients["w1"].Work.Decline(n.ctx, "job"))
	s, err := c.Training.Run(n.ctx, "job")
	n.must(err)
	if s.Phase != progress.Halted || s.Why != reason.Unopened {
		t.Errorf("the run is %s: %s", s.Phase, s.Why)
	}
	receipts, err := c.Training.Receipts(n.ctx, "job")
	n.must(err)
	last := receipts[len(receipts)-1]
	if last.Kind != reward.Refund || last.Reason != reason.Unopened || last.Fee != coin.Zen().WaitingFee(0) {
		t.Errorf("the last receipt: %+v", last)
	}
	n.balance("consumer", funds-coin.Zen().WaitingFee(0))
	e, err := c.Market.Escrow(n.ctx, "job")
	n.must(err)
	if e.Fee != coin.Zen().WaitingFee(0) || e.Remaining() != 0 || e.Paid != 0 {
		t.Errorf("escrow: %+v", e)
	}
}
