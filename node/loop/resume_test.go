package loop

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/loop/order"
	"github.com/starling-network/starling/node/trainer"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/tinker"
)

// A process that leads a loop ends without warning, after a step and within one; the next one finds the run that
// waits, with the weights of the last step. A step that was asked for is taken once. The loop is the same as that on
// one machine, and the cost of the run counts when it is over.
func TestLoopAfterRestart(t *testing.T) {
	n := newNet(t)
	create := tinker.Create{Rank: 4, Seed: 5, Attention: true, Feed: true}
	own, first := begun(t, 4), begun(t, 4)
	loss := tinker.Loss{Name: tinker.CrossEntropy}
	e, s := n.led(first, asked)
	for seed := range 2 {
		step(t, own, seed, loss)
		step(t, e, seed, loss)
	}
	next := func() *Engine {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "base")
		jobtest.WriteBase(t, dir)
		tr, err := trainer.Open(dir, trainer.Options{Out: t.TempDir(), Context: 12})
		if err != nil {
			t.Fatal(err)
		}
		e := n.engine(tr, asked)
		if err := e.Resume("m", create); err != nil {
			t.Fatal(err)
		}
		if m := e.models["m"]; m.session == nil || m.session.ID != s.ID {
			t.Fatalf("the run %s is not found again: %+v", s.ID, m)
		}
		return e
	}
	s.detach()
	e = next()
	step(t, own, 2, loss)
	step(t, e, 2, loss)
	// It ends when the data of a step are in the record, and before their result is there.
	if _, err := e.Backward("m", batch(4), loss); err != nil {
		t.Fatal(err)
	}
	asks, m := rate, e.models["m"]
	asks.ID = "request-1"
	notes(t, m.session, asks.ID, m.tensors(shape, 3, asks.Adam))
	m.session.detach()
	e = next()
	for range 2 { // the second time as a client whose answer was lost
		p, err := e.Backward("m", batch(4), loss)
		if err != nil {
			t.Fatal(err)
		}
		metrics, err := e.Step("m", asks)
		if err != nil || metrics["round"] != 4 {
			t.Fatalf("%v, %v", metrics, err)
		}
		if got, err := p.Later(); err != nil || got.Loss == 0 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	step(t, own, 4, loss)
	mine, _ := trainer.StateOf(own, "m")
	theirs, _ := trainer.StateOf(e.Trainer, "m")
	if theirs.Steps != mine.Steps {
		t.Errorf("%d steps, and %d on one machine", theirs.Steps, mine.Steps)
	}
	for name, x := range mine.Trained {
		near(t, name, theirs.Trained[name].F32(), x.F32())
	}
	e.Unload("m")
	blocks, err := n.payer.Chain.Blocks(n.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		if spent, over := order.Settled(n.ctx, n.payer.Chain, s.ID, s.record.Until); over {
			if spent == 0 || spent >= wantBudget {
				t.Errorf("the run cost %d of %d", spent, wantBudget)
			}
			break
		}
	}
}

// The budget of a run counts against the limit of the token that asks for its first step, also after a restart.
func TestLimitOfToken(t *testing.T) {
	n := newNet(t)
	e := n.engine(begun(t, 4), asked)
	e.models["m"] = &model{}
	by := access.Caller{Token: "a", Limits: map[string]uint64{"": wantBudget * 3 / 2}}
	ask := func(e *Engine) string {
		t.Helper()
		if _, err := e.Backward("m", batch(0), tinker.Loss{Name: tinker.CrossEntropy}); err != nil {
			t.Fatal(err)
		}
		m := e.models["m"]
		defer func() { m.passes = nil }()
		s, err := trainer.StateOf(e.Trainer, "m")
		if err != nil {
			t.Fatal(err)
		}
		return code(e.begin("m", m, s, tinker.Step{Adam: rate.Adam, By: by}))
	}
	blocked := filepath.Join(e.shelf.dir, "file")
	e.account.Home.Dir, blocked = blocked, e.account.Home.Dir
	if err := errors.Join(os.MkdirAll(filepath.Dir(e.account.Home.Dir), 0o700),
		os.WriteFile(e.account.Home.Dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := ask(e); got != "ORDER_REFUSED" {
		t.Errorf("a run without a folder is answered with %q", got)
	}
	e.account.Home.Dir = blocked
	if got := ask(e); got != "" {
		t.Fatalf("after an order that failed, the first run is refused as %s", got)
	}
	o, err := n.payer.Chain.Market.PlacedOrder(n.ctx, e.models["m"].session.ID)
	if err != nil || o.Deadline < asked.Idle {
		t.Errorf("an order without members is open until block %d, %v", o.Deadline, err)
	}
	e.models["m"].session.detach()
	e.models["m"].session = nil
	if got := ask(e); got != "SPENDING_LIMIT" {
		t.Errorf("the second run, beyond the limit, is answered with %q", got)
	}
	again := n.engine(begun(t, 4), asked)
	again.models["m"] = &model{}
	if got := ask(again); got != "SPENDING_LIMIT" {
		t.Errorf("after a restart it is answered with %q", got)
	}
	by.Limits = nil
	again.options.Budget = 1 << 60
	if got := ask(again); got != "WALLET_EMPTY" {
		t.Errorf("a run beyond the coins of the account is answered with %q", got)
	}
}
