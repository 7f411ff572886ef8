package loop

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/loop/record"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/tinker"
)

// until waits until a run is as it should be.
func (n *net) until(job string, is func(run.State) bool) {
	n.t.Helper()
	blocks, err := n.payer.Chain.Blocks(n.ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	for range blocks {
		state, err := n.payer.Chain.Training.Run(n.ctx, job)
		if err != nil {
			n.t.Fatal(err)
		}
		if is(state) {
			return
		}
	}
}

// notes has a session write the data of its next step into its record, as a process does that ends after that.
func notes(t *testing.T, s *Session, id string, data map[string]*tensor.Tensor) record.Feed {
	t.Helper()
	f, err := s.publish(t.Context(), uint32(len(s.record.Fed)), data)
	f.By = id
	s.record.Fed = append(s.record.Fed, f)
	if err = errors.Join(err, s.save()); err != nil {
		t.Fatal(err)
	}
	return f
}

// A network takes a step while no process leads the loop, and the run ends. A client that repeats its request, under
// its identifier or under another one with the same data, gets that step, and no other run is ordered for it.
func TestStepOfEndedRunIsPaidOnce(t *testing.T) {
	n := newNet(t)
	own := begun(t, 4)
	loss := tinker.Loss{Name: tinker.CrossEntropy}
	e, s := n.led(begun(t, 4), asked)
	step(t, own, 0, loss)
	step(t, e, 0, loss)
	if _, err := e.Backward("m", batch(2), loss); err != nil {
		t.Fatal(err)
	}
	asks, m := rate, e.models["m"]
	asks.ID = "request-1"
	f := notes(t, s, asks.ID, m.tensors(shape, 1, asks.Adam))
	if err := n.payer.Chain.Market.FeedJob(n.ctx, s.ID, 1, f.Root, f.CID); err != nil {
		t.Fatal(err)
	}
	n.until(s.ID, func(state run.State) bool { return state.Round == 2 })
	if err := n.payer.Chain.Market.CancelOrder(n.ctx, s.ID); err != nil {
		t.Fatal(err)
	}
	n.until(s.ID, run.State.Over)
	s.detach()

	dir := filepath.Join(t.TempDir(), "base")
	jobtest.WriteBase(t, dir)
	tr, err := trainer.Open(dir, trainer.Options{Out: t.TempDir(), Context: 12})
	if err != nil {
		t.Fatal(err)
	}
	e = n.engine(tr, asked)
	if err := e.Resume("m", tinker.Create{Rank: 4, Seed: 5, Attention: true, Feed: true}); err != nil {
		t.Fatal(err)
	}
	m = e.models["m"]
	if m.session != nil || m.before != s.ID {
		t.Fatalf("the run that ended is not found again: %+v", m)
	}
	// the data of another step are no repetition
	if _, err := e.Backward("m", batch(4), loss); err != nil {
		t.Fatal(err)
	}
	state, err := trainer.StateOf(tr, "m")
	if err != nil {
		t.Fatal(err)
	}
	other := rate
	other.ID = "request-2"
	if metrics, err := e.repeated("m", m, state, other); metrics != nil || err != nil {
		t.Fatalf("another step is answered with %v, %v", metrics, err)
	}
	m.passes = nil
	for _, id := range []string{"request-2", "request-1"} {
		p, err := e.Backward("m", batch(2), loss)
		if err != nil {
			t.Fatal(err)
		}
		asks.ID = id
		metrics, err := e.Step("m", asks)
		if err != nil || metrics["round"] != 2 || m.session != nil {
			t.Fatalf("%s: %v, %v, in the run %v", id, metrics, err, m.session)
		}
		if got, err := p.Later(); err != nil || got.Loss == 0 {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	step(t, own, 2, loss)
	mine, _ := trainer.StateOf(own, "m")
	theirs, _ := trainer.StateOf(tr, "m")
	if theirs.Steps != mine.Steps {
		t.Errorf("%d steps, and %d on one machine", theirs.Steps, mine.Steps)
	}
	for name, x := range mine.Trained {
		near(t, name, theirs.Trained[name].F32(), x.F32())
	}
}

// An order whose answer was lost may come in later. Its budget counts against the limit of the token until it has been
// taken back.
func TestLateOrderCounts(t *testing.T) {
	n := newNet(t)
	chain := n.payer.Chain
	var late []sdk.Msg
	lost := true
	n.payer.Chain = client.NewWithSubmitter(n.chain.Client(), n.homes["consumer"].Account(),
		func(ctx context.Context, msgs ...sdk.Msg) (transaction.Result, error) {
			if _, orders := msgs[0].(*marketpb.MsgOrder); orders && lost {
				late = msgs
				return transaction.Result{}, errors.New("the connection broke")
			}
			return chain.Submit(ctx, msgs...)
		})
	e := n.engine(begun(t, 4), asked)
	e.models["m"] = &model{}
	by := access.Caller{Token: "a", Limits: map[string]uint64{"": wantBudget * 3 / 2}}
	ask := func() string {
		t.Helper()
		m := e.models["m"]
		s, err := trainer.StateOf(e.Trainer, "m")
		if err != nil {
			t.Fatal(err)
		}
		return code(e.begin("m", m, s, tinker.Step{Adam: rate.Adam, By: by}))
	}
	if got := ask(); got != "ORDER_REFUSED" {
		t.Fatalf("an order whose answer is lost is answered with %q", got)
	}
	lost = false
	if got := ask(); got != "SPENDING_LIMIT" {
		t.Fatalf("while the first order may come in, a second one beyond the limit is answered with %q", got)
	}
	if _, err := chain.Submit(n.ctx, late...); err != nil {
		t.Fatal(err)
	}
	blocks, err := chain.Blocks(n.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		o, err := chain.Market.PlacedOrder(n.ctx, late[0].(*marketpb.MsgOrder).Terms.Job)
		if err != nil {
			t.Fatal(err)
		}
		if o.Status == "ended" {
			break
		}
	}
	for range blocks { // the budget is counted until the gateway has seen that
		if got := ask(); got == "" {
			break
		} else if got != "SPENDING_LIMIT" {
			t.Fatalf("after the first order was taken back, another one is answered with %q", got)
		}
	}
}
